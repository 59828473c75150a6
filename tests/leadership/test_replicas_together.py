"""Three replicas with one lease: everything happens twice, is handed over, cut off, late, or undone.

The oracle is a table of moments: who might write when, by each replica's fence. No two
might simultaneously; a leader lists what was written before it led; each replica says of itself what the
table says.
"""

import asyncio
import math
import random
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll.leadership.election import Election, Terms
from plimsoll.leadership.fence import Fence
from plimsoll.leadership.leader import DRAIN_S, ElectedProcess, LeaderElector, LeadershipLost
from plimsoll.ports.leases import Lease
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.fakes import (
    FakeClock,
    FakeLeases,
    FakeRandomness,
    FakeRecorder,
    RememberingObserver,
)

TERMS = Terms()
REPLICAS, STEPS = 3, 24

#: Turns of the event loop after which every task waits.
TURNS = 12

#: Seconds between two looks.
PACE_S = 0.5

TROUBLES = (
    *("cut", "cut", "silent", "whole", "whole", "hindered", "free", "stand", "stop", "kill", "relabel"),
    *("deleted", "emptied", "taken", "hiccup", "hiccup", "unheard"),
)

AWAY = WriteResult(WriteOutcome.UNKNOWN, "connection refused")
FORBIDDEN = WriteResult(WriteOutcome.REFUSED, "leases are forbidden")
SILENCE = WriteResult(WriteOutcome.UNKNOWN, "no answer")
HANGS = "the event loop has not run for 61 s"


class Clock(FakeClock):
    """Its wall clock is far from its monotonic one, as on any machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.time + 1.7e9

    async def advance(self, seconds: float) -> None:
        """Advance by steps in which no task does more than a few things."""
        until = self.time + seconds
        due = [until]
        while due:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            due = sorted(at for at, over in self._sleepers if at <= until and not over.done())
            if due:
                self.time = max(self.time, due[0])
                for at, over in self._sleepers:
                    if at <= self.time and not over.done():
                        over.set_result(None)
                self._sleepers = [each for each in self._sleepers if not each[1].done()]
        self.time = until


class Link:
    """A replica's way to the lease.

    Attributes:
        trouble: What requests get as an answer; None lets them arrive.
        is_silent: Whether requests hang until it speaks again.
    """

    reference = FakeLeases.reference

    def __init__(self, leases: FakeLeases, clock: Clock) -> None:
        self.leases, self.clock = leases, clock
        self.trouble: WriteResult | None = None
        self.is_silent = False
        self.troubles: list[str] = []
        self.written: list[str] = []

    async def _passes(self, request: Any) -> Any:
        late = self.clock.monotonic() + TERMS.request_s
        while self.is_silent and self.clock.monotonic() < late:
            await self.clock.sleep(PACE_S)
        trouble = SILENCE if self.is_silent else self.trouble
        self.troubles.append(trouble.message if trouble else "")
        if trouble:
            return trouble, None
        return await request()

    async def read(self) -> Any:
        """The lease."""
        return await self._passes(self.leases.read)

    async def write(self, lease: Lease) -> Any:
        """Store it."""
        self.written.append(lease.holder)
        return await self._passes(lambda: self.leases.write(lease))


class Observed(RememberingObserver):
    """Remembers what was said about the election."""

    def __init__(self) -> None:
        super().__init__()
        self.leads: list[bool] = []
        self.seen: list[str] = []
        self.delays: list[tuple[float, str]] = []

    def leadership_changed(self, lease: str, *, is_leading: bool) -> None:
        """Remember it."""
        assert lease == "plimsoll"
        self.leads.append(is_leading)

    def leader_seen(self, lease: str, holder: str) -> None:
        """Remember it."""
        assert lease == "plimsoll"
        self.seen.append(holder)

    def renewal_delayed(self, lease: str, seconds: float, why: str) -> None:
        """Remember it."""
        assert lease == "plimsoll"
        self.delays.append((seconds, why))


class Replica:
    """A process that takes part."""

    def __init__(self, name: str, clock: Clock, leases: FakeLeases, *, stands: bool, was_led: bool) -> None:
        self.name, self.clock = name, clock
        self.link = Link(leases, clock)
        self.fence, self.recorder, self.observer = Fence(clock), FakeRecorder(), Observed()
        self.hindrance = ""
        self.unheard_at = -math.inf
        self.conflicts = 0
        self.was_led = was_led
        self.wrote_from: float | None = None
        self.wrote_until: float | None = None
        self.election = Election(name, TERMS, stands=stands)
        self.election.was_led = was_led
        self.leadership = LeaderElector(
            self.election,
            self.link,
            self.fence,
            ElectedProcess(lambda: self.hindrance, lambda: "load 9.0 on 2 CPUs"),
            clock,
            FakeRandomness(),
            self.recorder,
            self.observer,
        )
        self.task = asyncio.create_task(self.leadership.run())

    @property
    def may_write(self) -> bool:
        """Whether a write would pass."""
        return self.fence.seconds_left() > 0

    def writes_unheard(self) -> None:
        """A write is sent, and its caller stops waiting."""
        self.fence.begin()
        self.fence.end(answered=False)
        self.unheard_at = self.clock.monotonic()

    def check(self) -> None:
        """What it says of itself is so."""
        now, led = self.clock.monotonic(), self.wrote_from is not None
        is_over = self.task.done()
        assert self.leadership.acquired.is_set() is led
        assert (self.leadership.since is not None) is led
        assert self.recorder.said("LeaderElection") == [f"{self.name} became leader"] * led
        assert self.observer.leads == [False, *([True] * led), *([False] * is_over)]
        conflicts = sum("modified" in problem for _, problem in self.observer.failures)
        if self.may_write:
            assert conflicts == self.conflicts, "a leader whose lease another client wrote reads it first"
        self.conflicts = conflicts
        holder = self.election.holder
        assert (self.observer.seen or [""])[-1] == holder
        assert all(
            one != other for one, other in zip(self.observer.seen, self.observer.seen[1:], strict=False)
        )
        if self.may_write:
            assert self.fence.seconds_left() <= TERMS.renew_deadline_s
            assert self.leadership.standing == f"leading as {self.name}"
        elif not led and not is_over:
            self._check_standing(holder)
        for seconds, why in self.observer.delays:
            assert TERMS.retry_period_s <= seconds <= TERMS.renew_deadline_s
            assert re.match(
                r"the API server took \d+\.\d s to answer(; |$)|connection|leases|not written|no answer", why
            )
            assert why.endswith("load 9.0 on 2 CPUs")
        if not is_over:
            assert self.leadership.overdue_s() == 0, "a request that has time is not overdue"
        elif now and not self.task.cancelled() and self.task.exception() is not None:
            ended = self.task.exception()
            assert isinstance(ended, LeadershipLost)
            assert led
            assert not self.may_write

    def _check_standing(self, holder: str) -> None:
        standing, problem = self.leadership.standing, next(reversed(self.link.troubles), "")
        by = f"for {holder}" if holder else "no leader is known"
        if problem:
            assert standing == f"standing by; {problem}"
        elif self.hindrance or standing.startswith("standing by; "):
            assert (
                standing in (f"standing by; not written, because {HANGS}", f"standing by; {by}")
                or problem == ""
            )
        elif self.election.stands:
            assert standing == f"standing by {by}"
        else:
            leader = f"the leader is {holder}" if holder else by
            assert standing == f"not a candidate yet; {leader}"


class World:
    """The replicas, their lease, and who wrote when."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.clock, self.leases = draw, Clock(), FakeLeases()
        self.number = 0
        self.last_write: dict[str, float] = {}
        self.replicas: list[Replica] = []
        self.replicas = [self.start(stands=draw.random() < 0.7, was_led=False) for _ in range(REPLICAS)]

    def start(self, *, stands: bool = True, was_led: bool = True) -> Replica:
        """A process of a new name."""
        self.number += 1
        return Replica(f"r{self.number}", self.clock, self.leases, stands=stands, was_led=was_led)

    async def passes(self, seconds: float) -> None:
        """Time passes; after each step the table is looked at."""
        for _ in range(round(seconds / PACE_S)):
            await self.clock.advance(PACE_S)
            self.look()

    def look(self) -> None:
        """Write down who may write, and compare."""
        now = self.clock.monotonic()
        writing = [each for each in self.replicas if each.may_write]
        assert len(writing) <= 1, [each.name for each in writing]
        for each in writing:
            if each.wrote_from is None:
                each.wrote_from = now
                since = each.leadership.since
                assert since is not None
                others = [at for name, at in self.last_write.items() if name != each.name]
                assert max(others, default=since) <= since <= now, "what was listed before is complete"
            self.last_write[each.name] = now
            lease = self.leases.lease
            assert lease is None or lease.holder in (each.name, "", "an-outsider")
        for each in self.replicas:
            if each.wrote_from is None and each.leadership.acquired.is_set():
                each.wrote_from = now  # it led for less than a step
            each.check()

    async def something(self) -> None:
        """One event, to one replica."""
        place = self.draw.randrange(REPLICAS)
        one = self.replicas[place]
        match self.draw.choice(TROUBLES):
            case "cut":
                one.link.trouble = self.draw.choice((AWAY, FORBIDDEN))
            case "silent":
                one.link.is_silent = True
            case "whole":
                one.link.trouble, one.link.is_silent = None, False
            case "hiccup":
                await self.hiccup()
            case "unheard":
                for each in self.replicas:
                    if each.may_write:
                        each.writes_unheard()
            case "hindered" | "free" as what:
                one.hindrance = HANGS if what == "hindered" else ""
            case "stand":
                one.leadership.stand(was_led=one.was_led or bool(self.last_write))
            case "stop":
                await self.stopped(place)
            case "kill":
                await self.ended(one)
                self.replicas[place] = self.start()
            case what:
                self.written(what)

    def written(self, what: str) -> None:
        """Another client writes the lease."""
        lease = self.leases.lease
        if lease is None or not (what == "relabel" or self._is_known()):
            return
        version, holder = f"{what}-{self.clock.time}", {"emptied": "", "taken": "an-outsider"}
        self.leases.lease = (
            None
            if what == "deleted"
            else replace(lease, holder=holder.get(what, lease.holder), version=version)
        )

    async def hiccup(self) -> None:
        """The leader's renewal is answered late, once; that is reported with how late it was."""
        for one in [each for each in self.replicas if each.may_write and not each.hindrance]:
            one.link.trouble, one.link.is_silent = None, True
            before = len(one.observer.delays)
            await self.passes(TERMS.retry_period_s + 3)
            one.link.is_silent = False
            await self.passes(PACE_S)
            assert len(one.observer.delays) <= before + 1

    def _is_known(self) -> bool:
        """Whether each replica has seen the present holder: what another client wrote is noticed then."""
        holder = self.leases.lease.holder if self.leases.lease else ""
        return all(each.election.holder == holder for each in self.replicas)

    async def stopped(self, place: int) -> None:
        """A replica ends as at a rollout, with or without a write under way, and a new one starts."""
        one = self.replicas[place]
        led, is_linked = one.may_write, one.link.trouble is None and not one.link.is_silent
        is_writing, is_heard = self.draw.random() < 0.5, self.draw.random() < 0.5
        if is_writing:
            one.fence.begin()
        draining = asyncio.create_task(one.leadership.drain())
        await self.clock.advance(0)
        assert not one.may_write
        assert draining.done() is not is_writing
        if is_writing and is_heard:
            one.fence.end(answered=True)
        await self.passes(DRAIN_S + PACE_S)
        assert draining.done()
        await self.ended(one)
        before, at = self.leases.lease, self.clock.monotonic()
        releasing = asyncio.create_task(one.leadership.release())
        await self.passes(TERMS.request_s + PACE_S)
        assert releasing.done()
        is_recent = at - one.unheard_at < TERMS.margin_s
        may_still_write = is_recent or (is_writing and not is_heard)
        assert not ("" in one.link.written and (one.leadership.since is None or may_still_write))
        if led and is_linked and not one.hindrance and not may_still_write and before is not None:
            assert ("" in one.link.written) is (before.holder == one.name), "it gives away what it holds"
        self.replicas[place] = self.start()

    async def ended(self, one: Replica) -> None:
        """Its process ends."""
        one.task.cancel()
        await asyncio.gather(one.task, return_exceptions=True)
        one.fence.shut()

    async def ends_well(self) -> None:
        """Without trouble one leads after two leases at most, and stays."""
        for place, each in enumerate(self.replicas):
            each.link.trouble, each.link.is_silent, each.hindrance = None, False, ""
            each.leadership.stand(was_led=True)
            if each.task.done():
                self.replicas[place] = self.start()
        await self.passes(TERMS.request_s + 2 * TERMS.lease_duration_s)
        for place, each in enumerate(self.replicas):
            if each.task.done():
                self.replicas[place] = self.start()
        await self.passes(2 * TERMS.lease_duration_s)
        leaders = {each.name for each in self.replicas if each.may_write}
        assert len(leaders) == 1
        await self.passes(5)
        assert {each.name for each in self.replicas if each.may_write} == leaders


async def told(seed: int) -> None:
    """A story."""
    draw = random.Random(seed)
    world = World(draw)
    try:
        await world.passes(PACE_S)
        for _ in range(STEPS):
            await world.something()
            await world.passes(draw.choice((0.5, 1, 2, 3, 6, 11, 16)))
            for place, each in enumerate(world.replicas):
                if each.task.done() and draw.random() < 0.5:
                    await world.ended(each)
                    world.replicas[place] = world.start()
        await world.ends_well()
    finally:
        for each in world.replicas:
            each.task.cancel()
        await asyncio.gather(*(each.task for each in world.replicas), return_exceptions=True)


@given(seed=st.integers(0, 2**32))
def test_replicas_hand_the_lease_over_and_tell_what_they_do(seed: int) -> None:
    asyncio.run(told(seed))


async def test_an_election_that_never_began_is_overdue() -> None:
    """By the clock that goes on while the machine sleeps."""
    clock = Clock()
    one = Replica("r", clock, FakeLeases(), stands=True, was_led=False)
    one.task.cancel()
    clock.time += 10

    assert one.leadership.overdue_s() == 10


async def test_a_renewal_that_is_answered_late_says_how_late() -> None:
    clock = Clock()
    one = Replica("r", clock, FakeLeases(), stands=True, was_led=False)
    await clock.advance(1)
    one.link.is_silent = True
    await clock.advance(5)
    one.link.is_silent = False
    await clock.advance(PACE_S)
    one.task.cancel()

    ((seconds, why),) = one.observer.delays
    assert 4 <= seconds <= 4.5
    assert re.fullmatch(r"the API server took 4\.\d s to answer; load 9\.0 on 2 CPUs", why)
