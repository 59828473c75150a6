"""The shell of the election: leadership, the fence, and the end of a leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.leadership.election import Election, Terms
from plimsoll.leadership.fence import Fence
from plimsoll.leadership.leader import ElectedProcess, LeaderElector, LeadershipLost, NoElection
from plimsoll.ports.leases import Lease
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.fakes import (
    FakeClock,
    FakeLeases,
    FakeRandomness,
    FakeRecorder,
    RememberingObserver,
)

AWAY = WriteResult(WriteOutcome.UNKNOWN, "connection refused")


class Candidate:
    """One process's part in the election."""

    def __init__(
        self, clock: FakeClock, leases: FakeLeases, identity: str = "we", *, stands: bool = True
    ) -> None:
        self.hindrance = ""
        self.clock = clock
        self.fence = Fence(clock)
        self.recorder = FakeRecorder()
        self.observer = RememberingObserver()
        self.leadership = LeaderElector(
            Election(identity, Terms(), stands=stands),
            leases,
            self.fence,
            ElectedProcess(lambda: self.hindrance, lambda: "load 9.0 on 2 CPUs"),
            clock,
            FakeRandomness(),
            self.recorder,
            self.observer,
        )

    @property
    def may_write(self) -> bool:
        """Whether a write would pass."""
        return self.fence.seconds_left() > 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Any]:
        """Take part; yields the task."""
        task = asyncio.create_task(self.leadership.run())
        await self.clock.advance(0)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_single_candidate_leads_immediately_and_stays() -> None:
    """It also reports that it leads."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    assert not one.may_write
    async with one.running():
        assert one.leadership.acquired.is_set()
        assert one.leadership.standing == "leading as we"
        assert one.recorder.said("LeaderElection") == ["we became leader"]
        for _ in range(30):
            await clock.advance(1.9)

            assert one.may_write
            assert one.fence.seconds_left() > 7.9
            assert clock.now() - 2.5 < leases.lease.renewed <= clock.now()
        assert leases.lease.acquired < leases.lease.renewed


async def test_a_second_candidate_stands_by_until_the_first_is_gone() -> None:
    """Then it leads as soon as the lease expires."""
    clock, leases = FakeClock(), FakeLeases()
    one, two = Candidate(clock, leases, "one"), Candidate(clock, leases, "two")
    async with one.running() as first, two.running():
        await clock.advance(20)
        assert two.leadership.tried.is_set()
        assert two.leadership.standing == "standing by for one"
        assert not two.may_write
        first.cancel()
        await clock.advance(14)
        assert not two.may_write
        await clock.advance(3)

        assert two.may_write
        assert leases.lease.transitions == 1


async def test_a_leader_without_an_api_server_stops_writing_and_ends() -> None:
    """At its deadline, five seconds before anybody else may lead."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running() as task:
        await clock.advance(2)
        leases.trouble = AWAY
        await clock.advance(9.9)
        assert one.may_write
        await clock.advance(0.2)
        assert not one.may_write

        with pytest.raises(LeadershipLost, match="connection refused"):
            await task
    leases.trouble = None
    assert one.observer.failures == [("election", "the lease plimsoll: connection refused")]


async def test_a_leader_whose_lease_was_taken_ends_and_says_by_whom() -> None:
    """Although it has renewed in time."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running() as task:
        assert leases.lease is not None
        leases.lease = replace(leases.lease, holder="somebody-else", version="stolen")
        await clock.advance(2.5)
        assert not one.may_write

        with pytest.raises(LeadershipLost, match="lost: somebody-else has taken the lease"):
            await task


async def test_a_short_outage_is_survived() -> None:
    """Seven and a half seconds without an answer; the lease is renewed at the next attempt."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running() as task:
        leases.trouble = AWAY
        await clock.advance(7.5)
        leases.trouble = None
        await clock.advance(4)

        assert one.may_write
        assert not task.done()


async def test_writes_stop_although_the_renewal_hangs() -> None:
    """The fence closes by the clock alone, without any event."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running():
        leases.before = asyncio.Event().wait  # type: ignore[assignment] # a fake differs on purpose
        await clock.advance(10)

        assert not one.may_write


async def test_a_paused_leader_may_not_write_when_it_wakes() -> None:
    """Time has passed, and no task has run yet."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running() as task:
        clock.time += 20
        assert not one.may_write
        await clock.advance(0)

        with pytest.raises(LeadershipLost):
            await task


async def test_who_cannot_read_the_lease_says_why_once() -> None:
    """Such as a missing role; it goes on trying."""
    clock, leases = FakeClock(), FakeLeases()
    leases.trouble = WriteResult(WriteOutcome.REFUSED, 'leases "plimsoll" is forbidden')
    one = Candidate(clock, leases)
    async with one.running():
        await clock.advance(20)
        assert len(one.observer.failures) == 1
        assert "is forbidden" in one.leadership.standing
        leases.trouble = None
        await clock.advance(2)

        assert one.may_write


async def test_a_leader_that_ends_gives_the_lease_away() -> None:
    """So that the next one need not wait for it to expire."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running():
        await one.leadership.drain()
        assert not one.may_write
        await clock.advance(3)
        assert not one.may_write, "a renewal must not open it again"
    await one.leadership.release()

    assert leases.lease.holder == ""


async def test_a_leader_that_ends_waits_for_what_it_has_sent() -> None:
    """Up to three seconds."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running():
        one.fence.begin()
        draining = asyncio.create_task(one.leadership.drain())
        await clock.advance(1)
        assert not draining.done()
        one.fence.end(answered=True)
        await clock.advance(0.1)
        assert draining.done()
    await one.leadership.release()

    assert leases.lease.holder == ""


@pytest.mark.parametrize("is_under_way", [True, False])
async def test_a_lease_is_kept_while_a_write_may_still_happen(is_under_way: bool) -> None:
    """One that is under way, or was given up without an answer: the lease expires by itself."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running():
        one.fence.begin()
        if not is_under_way:
            one.fence.end(answered=False)
        draining = asyncio.create_task(one.leadership.drain())
        await clock.advance(3.1)
        assert draining.done()
    await one.leadership.release()

    assert leases.lease.holder == "we"


async def test_who_never_led_gives_nothing_away() -> None:
    """The lease is somebody else's."""
    clock = FakeClock()
    leases = FakeLeases(Lease("they", 15, 0, 0, version="1"))
    one = Candidate(clock, leases)
    async with one.running():
        pass
    await one.leadership.release()

    assert leases.lease.holder == "they"


async def test_without_an_election_everything_passes() -> None:
    """For ever, and until the end."""
    clock = FakeClock()
    fence = Fence(clock)
    one = NoElection(fence, clock)
    assert one.acquired.is_set()
    await clock.advance(1e6)
    assert fence.seconds_left() > 0

    await one.drain()

    assert fence.seconds_left() == 0


# -- before it stands --------------------------------------------------------------------------------


async def test_a_candidate_that_has_not_synced_only_looks() -> None:
    """The lease is free, and stays so until a synced candidate takes it."""
    clock, leases = FakeClock(), FakeLeases()
    one, two = Candidate(clock, leases, "one", stands=False), Candidate(clock, leases, "two", stands=False)
    async with one.running(), two.running():
        await clock.advance(20)
        assert one.leadership.tried.is_set(), "so lists may begin"
        assert leases.lease is None
        assert one.leadership.standing == "not a candidate yet; no leader is known"
        two.leadership.stand()
        await clock.advance(0.01)

        assert two.may_write, "it need not wait for its turn"
        assert not one.may_write
        one.leadership.stand()
        await clock.advance(10)
        assert one.leadership.standing == "standing by for two"


@pytest.mark.parametrize("was_led", [False, True])
async def test_two_write_only_if_the_second_believes_that_it_is_the_first(*, was_led: bool) -> None:
    """The lease is deleted right after a renewal, its holder is cut off, and another process starts."""
    clock, leases, away = FakeClock(), FakeLeases(), FakeLeases()
    away.trouble = AWAY
    old, new = Candidate(clock, leases, "old"), Candidate(clock, leases, "new", stands=False)
    async with old.running():
        leases.lease = None
        old.leadership._leases = away
        async with new.running():
            new.leadership.stand(was_led=was_led)
            writers = []
            for _ in range(200):
                writers.append({each for each in (old, new) if each.may_write})
                await clock.advance(0.1)

            assert {old} in writers
            assert {new} in writers
            assert ({old, new} in writers) is not was_led


async def test_a_lease_that_was_free_before_the_lists_began_saves_the_second_list() -> None:
    """Nothing was written since; if another one led meanwhile, what was listed before may be incomplete."""
    clock, leases = FakeClock(), FakeLeases()
    leases.lease = Lease("", 1, 0.0, 0.0, version="1")
    one, two = Candidate(clock, leases, "one", stands=False), Candidate(clock, leases, "two", stands=False)
    async with one.running() as first:
        listed = clock.monotonic()
        await clock.advance(20)
        one.leadership.stand()
        await clock.advance(0.01)
        assert one.leadership.since is not None
        assert one.leadership.since <= listed
        async with two.running():
            listed = clock.monotonic()
            two.leadership.stand()
            await clock.advance(5)
            await one.leadership.drain()
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await one.leadership.release()
            await clock.advance(5)

            assert two.leadership.since is not None
            assert two.leadership.since > listed


async def test_a_lease_that_expired_while_it_was_listing_needs_a_second_list() -> None:
    """Its holder may have written until shortly before."""
    clock, leases = FakeClock(), FakeLeases()
    one, two = Candidate(clock, leases, "one"), Candidate(clock, leases, "two", stands=False)
    async with one.running() as first:
        await clock.advance(5)
        first.cancel()
    async with two.running():
        listed = clock.monotonic()
        await clock.advance(40)
        assert not two.may_write
        two.leadership.stand()
        await clock.advance(0.01)

        assert two.may_write, "it has observed for long enough"
        assert two.leadership.since is not None
        assert two.leadership.since > listed + 39


# -- delays ------------------------------------------------------------------------------------------


async def test_a_late_renewal_is_reported_with_its_cause() -> None:
    """How late it was, and what the machine was busy with."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    told = []
    one.observer.renewal_delayed = lambda name, late_s, why: told.append((name, late_s, why))  # type: ignore[method-assign] # replaced for this test
    async with one.running():
        await clock.advance(10)
        assert told == []
        clock.time += 5
        await clock.advance(0.1)

    ((name, late_s, why),) = told
    assert name == "plimsoll"
    assert 2.9 < late_s < 6
    assert why.startswith("the election's thread ran ")
    assert why.endswith("s late; load 9.0 on 2 CPUs")


async def test_a_leader_that_could_not_renew_says_since_when() -> None:
    """And why: there was no answer, or it did not run."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running() as task:
        await clock.advance(3)
        clock.time += 11
        await clock.advance(0)
        with pytest.raises(
            LeadershipLost, match=r"lost: the election's thread ran 1\d\.\d s late; .*; last renewed 1\d"
        ):
            await task


async def test_a_process_that_cannot_work_does_not_keep_the_lease() -> None:
    """Its main loop hangs: another one takes over, though the election's thread runs on."""
    clock, leases = FakeClock(), FakeLeases()
    one, two = Candidate(clock, leases, "one"), Candidate(clock, leases, "two")
    async with one.running() as task, two.running():
        await clock.advance(5)
        one.hindrance = "the event loop has not run for 61 s"
        await clock.advance(11)
        assert not one.may_write
        with pytest.raises(LeadershipLost, match="not written, because the event loop has not run for 61 s"):
            await task
        await clock.advance(10)
        assert two.may_write


async def test_an_election_that_makes_no_step_is_overdue() -> None:
    """A probe says so; while it rests, or waits for an answer that has time, it is not."""
    clock, leases = FakeClock(), FakeLeases()
    one = Candidate(clock, leases)
    async with one.running() as task:
        for _ in range(10):
            await clock.advance(1)
            assert one.leadership.overdue_s() == 0
        task.cancel()
        await clock.advance(10)
        assert one.leadership.overdue_s() > 7


async def test_a_problem_of_the_lease_is_said_again_when_it_is_back() -> None:
    """Once as long as it lasts, for leaders and for those that stand by."""
    clock, leases = FakeClock(), FakeLeases()
    one, two = Candidate(clock, leases, "one"), Candidate(clock, leases, "two")
    async with one.running(), two.running():
        await clock.advance(3)
        for times in (1, 2):
            leases.trouble = AWAY
            await clock.advance(6)
            leases.trouble = None
            await clock.advance(4)

            assert len(one.observer.failures) == times
            assert len(two.observer.failures) == times
