"""One candidate, event by event: client-go's rules, on time that the test makes up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plimsoll.leadership.election import (
    RELEASED_S,
    Due,
    Election,
    Failed,
    Instruction,
    LeaseFound,
    Now,
    Read,
    Resign,
    Rest,
    Stored,
    Terms,
    WriteLease,
)
from plimsoll.ports.leases import Lease

THEIRS = Lease("they", 15, acquired=500.0, renewed=600.0, transitions=3, version="7", metadata={"uid": "u"})
RELEASED = replace(THEIRS, holder="", duration_s=RELEASED_S)


def at(monotonic: float, fraction: float = 0.0) -> Now:
    """A moment; the wall clock shows 1,000 s more."""
    return Now(monotonic, 1000.0 + monotonic, fraction)


@pytest.fixture
def election() -> Election:
    """A candidate with client-go's defaults."""
    return Election("we", Terms())


def led(election: Election, moment: float = 100.0) -> Lease:
    """Have the candidate become leader by the first lease; the lease."""
    assert election.handle(Due(), at(moment)) == Read()
    write = election.handle(LeaseFound(None), at(moment))
    assert isinstance(write, WriteLease)
    stored = replace(write.lease, version="1")
    election.handle(Stored(stored, moment), at(moment))
    return stored


def test_the_first_lease_is_created(election: Election) -> None:
    """With our identity, the duration in whole seconds, both times, and no transition."""
    election.handle(Due(), at(100))

    assert election.handle(LeaseFound(None), at(100)) == WriteLease(Lease("we", 15, 1100.0, 1100.0))


def test_it_leads_once_the_lease_is_stored_and_until_the_deadline(election: Election) -> None:
    """Counted from the sending: an answer that took three seconds gives seven."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(None), at(100))
    assert not election.is_leading(100)

    rest = election.handle(Stored(Lease("we", 15, 0, 0, version="1"), sent=100), at(103))

    assert rest == Rest(105)
    assert election.is_leading(109.9)
    assert not election.is_leading(110)


def test_a_lease_of_somebody_else_is_left_alone_until_it_expires(election: Election) -> None:
    """15 s by our clock after we first saw this version, whatever times it bears."""
    ancient = replace(THEIRS, renewed=0.0)
    election.handle(Due(), at(100))
    assert election.handle(LeaseFound(ancient), at(100)) == Rest(102)
    for moment in (102, 104, 114.9):
        election.handle(Due(), at(moment))
        assert isinstance(election.handle(LeaseFound(ancient), at(moment)), Rest)
    election.handle(Due(), at(115))

    taken = election.handle(LeaseFound(ancient), at(115))

    assert taken == WriteLease(
        Lease("we", 15, 1115.0, 1115.0, transitions=4, version="7", metadata={"uid": "u"})
    )


def test_every_new_version_is_a_sign_of_life(election: Election) -> None:
    """Also one that bears the same times: the holder's clock may stand still."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(THEIRS), at(100))
    election.handle(Due(), at(114))
    election.handle(LeaseFound(replace(THEIRS, version="8")), at(114))
    election.handle(Due(), at(116))

    assert isinstance(election.handle(LeaseFound(replace(THEIRS, version="8")), at(116)), Rest)


def test_the_duration_in_the_lease_counts_not_our_own(election: Election) -> None:
    """A leader that was started with other flags is waited for as it announces."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(replace(THEIRS, duration_s=60)), at(100))
    election.handle(Due(), at(159))
    assert isinstance(election.handle(LeaseFound(replace(THEIRS, duration_s=60)), at(159)), Rest)
    election.handle(Due(), at(160))

    assert isinstance(election.handle(LeaseFound(replace(THEIRS, duration_s=60)), at(160)), WriteLease)


def test_a_released_lease_is_taken_immediately(election: Election) -> None:
    """It has no holder."""
    election.handle(Due(), at(100))

    taken = election.handle(LeaseFound(replace(THEIRS, holder="", duration_s=1)), at(100))

    assert isinstance(taken, WriteLease)
    assert (taken.lease.holder, taken.lease.transitions) == ("we", 4)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(replace(THEIRS, holder="", version="8"), id="emptied"),
        pytest.param(Lease("", 0, acquired=0.0, renewed=0.0, version="8"), id="without-contents"),
        pytest.param(replace(THEIRS, holder="thief", duration_s=1, version="8"), id="stolen-and-expired"),
    ],
)
def test_a_lease_that_somebody_took_from_its_holder_is_left_until_that_one_is_through(
    election: Election, found: Lease
) -> None:
    """Its holder may not know yet, and writes until its own time is up."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(THEIRS), at(100))
    election.handle(Due(), at(102))
    election.handle(LeaseFound(found), at(102))
    election.handle(Due(), at(110))
    waits = election.handle(LeaseFound(found), at(110))
    election.handle(Due(), at(115))

    assert isinstance(waits, Rest)
    assert waits.until <= 115
    assert isinstance(election.handle(LeaseFound(found), at(115)), WriteLease)


def test_the_holder_from_whom_a_lease_was_taken_counts_when_the_thief_gives_it_back(
    election: Election,
) -> None:
    """The thief releases the lease; the earlier leader may still not know."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(THEIRS), at(100))
    election.handle(Due(), at(102))
    election.handle(LeaseFound(replace(THEIRS, holder="thief", version="8")), at(102))
    election.handle(Due(), at(104))
    given_back = replace(THEIRS, holder="", duration_s=1, version="9")

    assert isinstance(election.handle(LeaseFound(given_back), at(104)), Rest)
    election.handle(Due(), at(115))
    assert isinstance(election.handle(LeaseFound(given_back), at(115)), WriteLease)


def test_a_leader_takes_its_emptied_lease_back_immediately(election: Election) -> None:
    """A candidate that never saw a holder would take it."""
    stored = led(election)
    election.handle(Due(), at(102))
    election.handle(Failed(), at(102))

    found = replace(stored, holder="", version="2")
    assert isinstance(election.handle(LeaseFound(found), at(102)), WriteLease)


def test_a_candidate_waits_longer_by_jitter(election: Election) -> None:
    """From one retry period to 2.2 of them, but not beyond the lease's expiry."""
    election.handle(Due(), at(100, 1.0))
    assert election.handle(LeaseFound(THEIRS), at(100, 1.0)) == Rest(104.4)
    election.handle(Due(), at(112, 1.0))

    assert election.handle(LeaseFound(THEIRS), at(112, 1.0)) == Rest(115)


def test_somebody_who_was_faster_wins(election: Election) -> None:
    """A claim that is refused ends the attempt; the next one reads who it was."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(None), at(100))

    assert election.handle(Failed(), at(100)) == Rest(102)
    assert election.handle(Due(), at(102)) == Read()
    assert not election.is_leading(102)


def test_a_leader_renews_without_reading(election: Election) -> None:
    """The version that it wrote last, with the times of its taking over."""
    stored = led(election)

    assert election.handle(Due(), at(102)) == WriteLease(replace(stored, renewed=1102.0))


def test_a_renewal_that_fails_is_followed_by_a_look(election: Election) -> None:
    """Ours still, with a version that somebody's label gave it: renewed immediately."""
    stored = led(election)
    election.handle(Due(), at(102))
    assert election.handle(Failed(), at(102)) == Read()

    renewed = election.handle(LeaseFound(replace(stored, version="2")), at(102))

    assert renewed == WriteLease(replace(stored, version="2", renewed=1102.0))


def test_a_leader_that_finds_another_one_resigns_immediately(election: Election) -> None:
    """Somebody may have freed or deleted the lease by hand: then the other one has not waited."""
    led(election)
    election.handle(Due(), at(103))
    election.handle(Failed(), at(103))

    assert election.handle(LeaseFound(THEIRS), at(103)) == Resign()
    assert not election.is_leading(103)


@pytest.mark.parametrize("found", [None, replace(THEIRS, holder="", version="9")])
def test_a_leader_takes_its_lease_back_immediately(election: Election, found: Lease | None) -> None:
    """A replica that starts while it is deleted or empty knows of no holder, and would lead as well."""
    election.was_led = True
    election.handle(Due(), at(100))
    claimed = election.handle(LeaseFound(RELEASED), at(100))
    assert isinstance(claimed, WriteLease)
    election.handle(Stored(replace(claimed.lease, version="8"), sent=100), at(100))
    election.handle(Due(), at(102))
    election.handle(Failed(), at(102))

    assert isinstance(election.handle(LeaseFound(found), at(102)), WriteLease)


def test_a_lease_that_was_deleted_is_awaited_as_long_as_its_holder_may_write(election: Election) -> None:
    """Who had it does not know yet that it is gone."""
    election.handle(Due(), at(100))
    for moment in (100, 105, 110):
        election.handle(LeaseFound(THEIRS), at(moment))

    assert election.handle(LeaseFound(None), at(114)) == Rest(115)
    assert isinstance(election.handle(LeaseFound(None), at(115)), WriteLease)


@pytest.mark.parametrize(
    "taken",
    [
        pytest.param(replace(THEIRS, holder="", version="8"), id="emptied"),
        pytest.param(replace(THEIRS, holder="thief", duration_s=1, version="8"), id="stolen"),
    ],
)
def test_a_lease_that_was_taken_and_then_deleted_is_awaited_for_as_long(
    election: Election, taken: Lease
) -> None:
    """Its first holder knows of neither."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(THEIRS), at(100))
    for moment in (102, 106, 110):
        election.handle(LeaseFound(taken), at(moment))

    assert election.handle(LeaseFound(None), at(114)) == Rest(115)
    assert isinstance(election.handle(LeaseFound(None), at(115)), WriteLease)


def test_a_lease_that_was_deleted_before_the_first_look_is_awaited_for_as_long() -> None:
    """The last leader renewed it right before, does not know yet that it is gone, and writes until 110."""
    leader, candidate = Election("they", Terms()), Election("we", Terms())
    leader.handle(LeaseFound(None), at(99))
    leader.handle(Stored(THEIRS, sent=100), at(100))
    candidate.was_led = True

    candidate.handle(Due(), at(100))
    assert candidate.handle(LeaseFound(None), at(100)) == Rest(102)
    candidate.handle(Due(), at(114))
    assert candidate.handle(LeaseFound(None), at(114)) == Rest(115)
    assert leader.is_leading(109.9)
    candidate.handle(Due(), at(115))
    assert isinstance(candidate.handle(LeaseFound(None), at(115)), WriteLease)
    assert not leader.is_leading(110.0)


def test_the_wait_for_a_deleted_lease_begins_before_a_candidate_stands() -> None:
    """While it lists the cluster it looks already; one that has the lease by then is seen."""
    election = Election("we", Terms(), stands=False)
    election.handle(Due(), at(100))
    election.handle(LeaseFound(None), at(100))
    election.stands = election.was_led = True

    election.handle(Due(), at(115))
    assert isinstance(election.handle(LeaseFound(None), at(115)), WriteLease)
    election.handle(Failed(), at(116))
    assert isinstance(election.handle(LeaseFound(THEIRS), at(117)), Rest)


def test_what_was_listed_before_a_first_lease_is_listed_again() -> None:
    """Between two looks that found none, another one may have been created, used and deleted."""
    election = Election("we", Terms(), stands=False)
    for moment in (100, 103):
        election.handle(Due(), at(moment))
        assert isinstance(election.handle(LeaseFound(None), at(moment)), Rest)
    election.stands = True
    election.handle(Due(), at(137))
    created = election.handle(LeaseFound(None), at(137))
    assert isinstance(created, WriteLease)

    election.handle(Stored(replace(created.lease, version="9"), sent=137), at(138))

    assert election.led_from == 138


def test_what_was_listed_since_a_lease_was_free_is_complete() -> None:
    """Its version excludes another holder in between."""
    election, free = Election("we", Terms(), stands=False), RELEASED
    for moment in (100, 103):
        election.handle(Due(), at(moment))
        election.handle(LeaseFound(free), at(moment))
    election.stands = True
    election.handle(Due(), at(137))
    claimed = election.handle(LeaseFound(free), at(137))
    assert isinstance(claimed, WriteLease)

    election.handle(Stored(replace(claimed.lease, version="9"), sent=137), at(138))

    assert election.led_from == 100


def test_a_deleted_lease_is_not_awaited_for_68_years(election: Election) -> None:
    """Whatever time it named: deleting it is how people end that."""
    election.handle(Due(), at(100))
    for moment in (100, 105, 110):
        election.handle(LeaseFound(replace(THEIRS, duration_s=2**31 - 1)), at(moment))

    assert isinstance(election.handle(LeaseFound(None), at(115)), WriteLease)


def test_a_lease_that_is_deleted_a_second_time_is_awaited_too() -> None:
    """Another candidate created it in between, and led."""
    election = Election("we", Terms(), stands=False)
    election.handle(LeaseFound(None), at(100))
    election.handle(LeaseFound(THEIRS), at(103))
    election.stands = True

    assert isinstance(election.handle(LeaseFound(None), at(106)), Rest)
    assert election.handle(LeaseFound(None), at(117)) == Rest(118)
    assert isinstance(election.handle(LeaseFound(None), at(118)), WriteLease)


EMPTIED = replace(THEIRS, holder="", version="8")


@pytest.mark.parametrize("found", [None, EMPTIED], ids=["deleted", "emptied"])
def test_a_lease_that_is_gone_before_the_first_look_is_awaited(
    election: Election, found: Lease | None
) -> None:
    """Its last holder may write on until its deadline; one that was released has no such holder."""
    election.was_led = True

    assert isinstance(election.handle(LeaseFound(found), at(100)), Rest)
    assert election.handle(LeaseFound(found), at(113)) == Rest(115)
    assert isinstance(election.handle(LeaseFound(found), at(115)), WriteLease)


@pytest.mark.parametrize("found", [None, EMPTIED], ids=["deleted", "emptied"])
def test_a_lease_that_is_gone_after_a_candidate_was_cut_off_is_awaited(
    election: Election, found: Lease | None
) -> None:
    """Its holder may have renewed it right before: what was seen 14 seconds ago says nothing of that."""
    election.handle(LeaseFound(THEIRS), at(100))

    assert isinstance(election.handle(LeaseFound(found), at(114)), Rest)
    assert election.handle(LeaseFound(found), at(128)) == Rest(129)
    assert isinstance(election.handle(LeaseFound(found), at(129)), WriteLease)


@pytest.mark.parametrize(("free", "since"), [(RELEASED, 100), (EMPTIED, 138), (None, 138)])
def test_only_a_released_lease_says_that_what_was_listed_is_complete(free: Lease | None, since: int) -> None:
    """The holder of one that was emptied or deleted writes on until it notices."""
    election = Election("we", Terms(), stands=False)
    for moment in (100, 105):
        election.handle(LeaseFound(free), at(moment))
    election.stands = True
    claimed = election.handle(LeaseFound(free), at(137))
    assert isinstance(claimed, WriteLease)

    election.handle(Stored(replace(claimed.lease, version="9"), sent=137), at(138))

    assert election.led_from == since


def test_transitions_are_counted_from_the_beginning_again(election: Election) -> None:
    """The API server refuses a number that is no int32: no candidate could lead again."""
    election.handle(Due(), at(100))

    taken = election.handle(LeaseFound(replace(THEIRS, holder="", transitions=2**31 - 1)), at(100))

    assert isinstance(taken, WriteLease)
    assert taken.lease.transitions == 0


def test_a_leader_that_cannot_renew_resigns_at_its_deadline(election: Election) -> None:
    """It tries every two seconds, and never beyond ten."""
    led(election)
    tried = []
    moment = 100.0
    instruction: Instruction = Rest(102)
    while isinstance(instruction, Rest):
        moment = instruction.until
        tried.append(moment)
        instruction = election.handle(Due(), at(moment))
        if isinstance(instruction, WriteLease):
            assert election.handle(Failed(), at(moment)) == Read()
            instruction = election.handle(Failed(), at(moment))

    assert isinstance(instruction, Resign)
    assert tried == [102, 104, 106, 108, 110]


def test_a_process_that_was_paused_resigns_when_it_wakes(election: Election) -> None:
    """Its lease may be somebody else's by now."""
    led(election)

    assert election.handle(Due(), at(120)) == Resign()


def test_a_renewal_whose_answer_came_late_does_not_count(election: Election) -> None:
    """Stored it was, but sent too long ago."""
    stored = led(election)
    election.handle(Due(), at(102))

    assert election.handle(Stored(replace(stored, version="2"), sent=102), at(113)) == Resign()


def test_our_own_lease_that_we_did_not_hear_of_is_renewed_before_we_lead(election: Election) -> None:
    """A claim that was taken, and whose answer was lost: what we read grants nothing."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(None), at(100))
    election.handle(Failed(), at(100))
    election.handle(Due(), at(104))

    ours = Lease("we", 15, 1100.0, 1100.0, version="1")
    assert election.handle(LeaseFound(ours), at(104)) == WriteLease(replace(ours, renewed=1104.0))
    assert not election.is_leading(104)


def test_a_leader_that_ends_leaves_the_lease_to_anybody(election: Election) -> None:
    """As client-go does: no holder, one second, the transitions kept."""
    led(election)

    left = election.released(at(103))

    assert left is not None
    assert (left.holder, left.duration_s, left.transitions, left.version) == ("", 1, 0, "1")
    assert election.released(at(110)) is None, "it may be somebody else's"


def test_who_does_not_lead_has_nothing_to_leave(election: Election) -> None:
    """Another one's lease stays."""
    election.handle(Due(), at(100))
    election.handle(LeaseFound(THEIRS), at(100))

    assert election.released(at(101)) is None
