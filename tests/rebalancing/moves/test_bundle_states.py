"""Bundles in the move machine: order, all or none, rooms, closed nodes, proposals."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.framework.descheduling.proposals import Beneficiary
from plimsoll.model.names import RecordKey
from plimsoll.planning.moves import Move
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.instructions import (
    CloseNode,
    CreateRecord,
    Evict,
    NodeDone,
    ReleaseRoom,
    ReleaseTarget,
    ReserveRoom,
    ReserveTarget,
    Revalidate,
    WriteRecord,
)
from plimsoll.rebalancing.moves.outcomes import cancelled
from plimsoll.rebalancing.moves.state import EvictionMethod, MoveStage
from rebalancing.moves.moves_world import DONE, LOST, POLICY, Play, a_move, a_replacement, together

REFUSED = WriteResult(WriteOutcome.REFUSED, "no")


def ordered(play: Play, *kinds: type) -> list[Any]:
    """The instructions of these kinds so far."""
    return [each for each in play.ordered if isinstance(each, kinds)]


def ends(play: Play) -> dict[str, tuple[str, str]]:
    """The last reason and message of each record that was closed, by key."""
    return {
        each.key: (each.reason, each.message)
        for each in ordered(play, WriteRecord)
        if each.phase in (Phase.CANCELLED, Phase.BLOCKED, Phase.FAILED)
    }


def make(play: Play, key: RecordKey, move: Move, answer: WriteResult = DONE) -> None:
    """Answer all that is asked for a move until its eviction is answered."""
    if play.stage(key) is MoveStage.OPENING:
        play.tell(events.RecordAnswered(key, Phase.PLANNED, DONE))
    play.tell(
        events.Revalidated(key, move, EvictionMethod.EVICT),
        events.RecordAnswered(key, Phase.EVICTING, DONE),
        events.EvictionAnswered(key, answer),
    )


def settle(play: Play, key: RecordKey, number: int = 9) -> None:
    """The replacement of a move is ready."""
    play.tell(events.ReplacementReady(key, a_replacement(number)))


def for_pending(*moves: Move) -> tuple[tuple[Move, ...], str]:
    """The same moves, made for a pending pod."""
    pod = a_move(7).pod
    return tuple(replace(move, beneficiary=Beneficiary(pod, "good")) for move in moves), pod.uid


def test_moves_are_made_one_after_the_other() -> None:
    """The next one is recorded when its predecessor's eviction was accepted."""
    play, moves = Play(), together(a_move(1), a_move(2))
    first, second = play.plan(*moves)
    before = play.stage(second)

    make(play, first, moves[0])

    assert (before, play.stage(second)) == (MoveStage.WAITING, MoveStage.OPENING)
    make(play, second, moves[1])
    assert not play.machine.bundles


@pytest.mark.parametrize("way", ["eviction", "check", "record", "announcement"])
def test_a_move_that_is_not_made_ends_its_bundle(way: str) -> None:
    """Whatever it fails at; those that have no record leave none."""
    play, moves = Play(), together(a_move(1), a_move(2), a_move(3))
    first, *_ = play.plan(*moves)
    match way:
        case "record":
            play.tell(events.RecordAnswered(first, Phase.PLANNED, LOST))
        case "check":
            play.tell(events.RecordAnswered(first, Phase.PLANNED, DONE))
            play.tell(events.RevalidationRefused(first, cancelled("NoPlace", "nowhere")))
        case "announcement":
            play.tell(events.RecordAnswered(first, Phase.PLANNED, DONE))
            play.tell(events.Revalidated(first, moves[0], EvictionMethod.EVICT))
            play.tell(events.RecordAnswered(first, Phase.EVICTING, LOST))
        case _:
            make(play, first, moves[0], REFUSED)

    assert len(ordered(play, CreateRecord)) == 1
    assert not play.machine.bundles
    assert set(play.machine.moves) <= {first}


def test_a_move_that_waits_has_its_target_kept_and_holds_up_no_other_bundle() -> None:
    """It goes when the other move of its workload has settled."""
    play = Play()
    moves = together(a_move(1), a_move(2, waits=True))
    first, second = play.plan(*moves)
    make(play, first, moves[0])
    parked = play.machine.is_quiet(play.state(second).bundle)
    (other,) = play.plan(a_move(3, owner="ReplicaSet/api"))
    meanwhile = (play.stage(second), play.stage(other))

    settle(play, first)

    assert parked
    assert [each.key for each in ordered(play, ReserveTarget)] == [second, first]
    assert meanwhile == (MoveStage.WAITING, MoveStage.OPENING)
    assert play.stage(second) is MoveStage.OPENING


def test_a_pod_goes_where_others_of_its_bundle_leave_only_when_they_have_settled() -> None:
    """Its target has room for it only then: pods that terminate still take theirs."""
    play = Play()
    small, large = a_move(1), a_move(2, owner="ReplicaSet/large", source="hot", target="bad")
    first, second = play.plan(*together(small, large))
    reserved = [each.key for each in ordered(play, ReserveTarget)]
    make(play, first, small)
    before = play.stage(second)

    settle(play, first)
    terminating = play.stage(second)
    play.world.pods.pop(small.pod.uid)
    play.tell(events.PodGone(first))

    assert reserved == [second]
    assert (before, terminating) == (MoveStage.WAITING, MoveStage.WAITING)
    assert play.stage(second) is MoveStage.OPENING
    assert second not in [each.key for each in ordered(play, ReleaseTarget)]


def test_the_room_is_released_when_a_move_that_makes_it_is_not_made() -> None:
    """The other pod stays, and others may have what is free."""
    play = Play()
    small, large = a_move(1), a_move(2, owner="ReplicaSet/large", source="hot", target="bad")
    first, second = play.plan(*together(small, large))
    play.tell(events.RecordAnswered(first, Phase.PLANNED, DONE))

    play.tell(events.RevalidationRefused(first, cancelled("NoPlace", "nowhere")))

    assert [each.key for each in ordered(play, ReleaseTarget)] == [second]
    assert not play.machine.bundles


def test_members_of_a_group_that_take_each_other_s_places_leave_together() -> None:
    """None of them runs again before all have left."""
    play = Play()
    one, two = a_move(1), a_move(2, source="good", target="bad")
    moves = together(one, two, whole=frozenset({one.pod.uid, two.pod.uid}))
    first, second = play.plan(*moves)
    for key, move in ((first, moves[0]), (second, moves[1])):
        play.tell(
            events.RecordAnswered(key, Phase.PLANNED, DONE),
            events.Revalidated(key, move, EvictionMethod.EVICT),
            events.RecordAnswered(key, Phase.EVICTING, DONE),
        )

    play.tell(events.EvictionAnswered(first, DONE))

    assert [each.key for each in ordered(play, Evict)] == [first, second]


def test_a_move_that_ends_badly_ends_what_is_left_of_its_bundle() -> None:
    """No further pod is moved for a plan that has not worked."""
    play = Play()
    moves = together(a_move(1), a_move(2, waits=True))
    first, second = play.plan(*moves)
    make(play, first, moves[0])

    play.tell(events.ReplacementReturned(first, a_replacement(node="bad")))

    assert play.state(second) is None
    assert not play.machine.bundles


def test_a_record_that_is_deleted_ends_its_bundle_though_another_move_is_next() -> None:
    """The second waits for the first one's replacement when the record of the third goes."""
    play = Play()
    moves = together(a_move(1), a_move(2, waits=True), a_move(3))
    first, second, third = play.plan(*moves)
    make(play, first, moves[0])
    before = play.stage(second)

    play.tell(events.RecordDeleted(third))

    assert before is MoveStage.WAITING
    assert not play.machine.bundles
    assert {*play.machine.moves} == {first}


def test_two_bundles_that_wait_for_one_workload_do_not_go_together() -> None:
    """What follows for one is carried out before the other is looked at."""
    play = Play()
    (flying,) = play.plan(a_move(1))
    make(play, flying, a_move(1))
    (one,) = play.plan(a_move(2, waits=True))
    (two,) = play.plan(a_move(3, waits=True))

    settle(play, flying)

    assert {play.stage(one), play.stage(two)} == {MoveStage.OPENING, MoveStage.WAITING}


def test_a_node_is_closed_before_its_pods_go_and_left_to_the_records_after_it() -> None:
    """Opened again only when not all of them go."""
    play, moves = Play(), together(a_move(1), a_move(2))
    first, second = play.plan(*moves, empties="bad")
    closing, waiting = ordered(play, CloseNode), play.stage(first)
    play.tell(events.NodeClosed(closing[0].bundle))
    make(play, first, moves[0])
    make(play, second, moves[1])

    assert waiting is MoveStage.WAITING
    assert ordered(play, CloseNode, NodeDone) == [*closing, NodeDone("bad", reopen=False)]


def test_a_node_that_cannot_be_closed_keeps_its_pods() -> None:
    """Nothing is recorded."""
    play, moves = Play(), together(a_move(1), a_move(2))
    play.plan(*moves, empties="bad")
    (closing,) = ordered(play, CloseNode)

    play.tell(events.NodeClosed(closing.bundle, succeeded=False))

    assert not play.machine.moves
    assert not ordered(play, CreateRecord)


def test_a_node_is_opened_when_a_move_is_not_made() -> None:
    """New pods may come again."""
    play, moves = Play(), together(a_move(1), a_move(2))
    first, _ = play.plan(*moves, empties="bad")
    play.tell(events.NodeClosed(ordered(play, CloseNode)[0].bundle))

    make(play, first, moves[0], REFUSED)

    assert ordered(play, NodeDone) == [NodeDone("bad", reopen=True)]


def test_a_pod_that_has_left_a_closed_node_need_not_be_moved() -> None:
    """It counts as done, and the rest goes on."""
    play, moves = Play(), together(a_move(1), a_move(2), a_move(3))
    first, second, third = play.plan(*moves, empties="bad")
    play.tell(events.NodeClosed(ordered(play, CloseNode)[0].bundle))
    del play.world.pods[moves[1].pod.uid]

    make(play, first, moves[0])

    assert play.state(second) is None
    assert play.stage(third) is MoveStage.OPENING


def test_room_is_kept_for_a_pending_pod_and_free_when_a_move_is_not_made() -> None:
    """From the first move on."""
    play = Play()
    moves, uid = for_pending(*together(a_move(1), a_move(2)))
    play.world.waiting = {uid}
    first, _ = play.plan(*moves)
    (kept,) = ordered(play, ReserveRoom)

    make(play, first, moves[0], REFUSED)

    assert kept.pods == ((uid, "good"),)
    assert kept.leaving == {move.pod.uid for move in moves}
    assert ordered(play, ReleaseRoom) == [ReleaseRoom(kept.bundle)]


def test_no_pod_is_moved_for_one_that_waits_no_longer() -> None:
    """It was asked before each move."""
    play = Play()
    moves, uid = for_pending(*together(a_move(1), a_move(2)))
    play.world.waiting = {uid}
    first, second = play.plan(*moves)
    play.world.waiting = set()

    make(play, first, moves[0])

    assert play.state(second) is None
    assert ordered(play, ReleaseRoom)


@pytest.mark.parametrize("is_judged", [True, False])
def test_a_policy_that_changes_calls_off_what_waits(is_judged: bool) -> None:
    """The one that is sent goes on."""
    play, moves = Play(), together(a_move(1), a_move(2), a_move(3))
    first, *_ = play.plan(*moves)
    if not is_judged:
        play.tell(events.RecordAnswered(first, Phase.PLANNED, DONE))
        play.tell(events.RevalidationRefused(first, cancelled("NotRevalidated", "broke")))
    else:
        make(play, first, moves[0])
        play.tell(events.PolicyChanged(POLICY, Mode.ENFORCE))

    assert all(state.stage is not MoveStage.WAITING for state in play.machine.moves.values())
    assert len(ordered(play, Evict)) == int(is_judged)


# -- proposals -------------------------------------------------------------------------------------------


def proposals(*moves: Move, size: int | None = None) -> tuple[Play, list[RecordKey]]:
    """A play with proposals that are on record, and their keys."""
    play = Play()
    keys = play.plan(*moves, mode=Mode.APPROVE, size=size)
    play.tell(*(events.RecordAnswered(key, Phase.PLANNED, DONE) for key in keys))
    return play, keys


def test_proposals_of_a_bundle_are_made_when_all_are_approved() -> None:
    """In their order."""
    play, (first, second) = proposals(*together(a_move(1), a_move(2)))
    play.tell(events.ProposalAnswered(second, approved=True))
    early = ordered(play, Revalidate)

    play.tell(events.ProposalAnswered(first, approved=True))

    assert early == []
    assert [each.key for each in ordered(play, Revalidate)] == [first]
    assert play.stage(second) is MoveStage.WAITING


def test_approved_moves_wait_until_nothing_holds_them_up() -> None:
    """The answers keep."""
    play, (key,) = proposals(a_move())
    play.world.hold_up = "the stop button is pressed"
    play.tell(events.ProposalAnswered(key, approved=True))
    early = play.stage(key)
    play.world.hold_up = ""

    play.tell(events.HoldUpsChanged())

    assert (early, play.stage(key)) == (MoveStage.PROPOSED, MoveStage.CHECKING)


def test_approved_moves_wait_for_a_move_of_one_of_their_workloads() -> None:
    """Of the first pod's or of the second's: a bundle goes whole."""
    for busy in ("ReplicaSet/web", "ReplicaSet/api"):
        play, keys = proposals(*together(a_move(1), a_move(2, owner="ReplicaSet/api")))
        (other,) = play.plan(a_move(3, owner=busy))

        play.tell(*(events.ProposalAnswered(key, approved=True) for key in keys))

        assert [each.key for each in ordered(play, Revalidate)] == [], busy
        make(play, other, a_move(3, owner=busy))
        settle(play, other)
        assert [each.key for each in ordered(play, Revalidate)] == [other, keys[0]], busy


@pytest.mark.parametrize(
    ("event", "own", "others"),
    [
        (partial(events.ProposalAnswered, approved=False), "Rejected", "was rejected"),
        (events.PodGone, "Gone", "is gone already"),
        (events.RecordDeleted, None, "another record of its bundle is gone"),
        (events.MoveUnplanned, "NoLongerPlanned", "the latest run does not plan the move"),
    ],
)
def test_what_ends_one_proposal_ends_its_bundle(
    event: Callable[[RecordKey], events.MoveEvent], own: str | None, others: str
) -> None:
    """And each record says why."""
    play, (first, second) = proposals(*together(a_move(1), a_move(2)))

    play.tell(event(first))

    said = ends(play)
    assert said.get(first, (None,))[0] == own
    assert others in said[second][1]
    assert not play.machine.bundles


def test_a_policy_that_still_asks_keeps_its_proposals() -> None:
    """Whatever else has changed in it; a policy that asks no longer calls them off."""
    play, (key,) = proposals(a_move())
    play.tell(events.PolicyChanged(POLICY, Mode.APPROVE))
    kept = play.stage(key)

    play.tell(events.PolicyChanged(POLICY, Mode.ENFORCE))

    assert kept is MoveStage.PROPOSED
    assert ends(play)[key][0] == "PolicyChanged"


def test_an_incomplete_bundle_of_an_earlier_process_is_called_off() -> None:
    """A record of it is gone."""
    play, keys = proposals(*together(a_move(1), a_move(2)), size=3)

    assert set(ends(play)) == set(keys)


def test_a_proposal_for_a_pod_that_is_gone_is_called_off() -> None:
    """The pod that room was to be made for."""
    play, (key,) = proposals(a_move())
    play.world.has_no_beneficiary = True

    play.tell(events.ProposalAnswered(key, approved=True))

    assert ends(play)[key] == ("NotAll", "the pod that the moves make room for is gone")


def test_an_answer_that_comes_before_the_record_is_known_counts() -> None:
    """The watch may be faster than the answer to the creation."""
    play = Play()
    (yes,) = play.plan(a_move(1), mode=Mode.APPROVE)
    (no,) = play.plan(a_move(2), mode=Mode.APPROVE)

    play.tell(events.ProposalAnswered(yes, approved=True), events.ProposalAnswered(no, approved=False))
    play.tell(events.RecordAnswered(yes, Phase.PLANNED, DONE), events.RecordAnswered(no, Phase.PLANNED, DONE))

    assert play.stage(yes) is MoveStage.CHECKING
    assert ends(play)[no][0] == "Rejected"


def test_moves_of_a_proposal_are_counted_apart_from_its_run() -> None:
    """Budgets of the policy hold for each of them."""
    play, (first, second) = proposals(*together(a_move(1), a_move(2)))
    play.tell(events.ProposalAnswered(first, approved=True), events.ProposalAnswered(second, approved=True))
    make(play, first, play.world.moves[first])

    assert [each.evicted for each in ordered(play, Revalidate)] == [0, 1]
