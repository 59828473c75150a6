"""Carries out the election, opens and closes the fence, and reports the leader.

It runs in its own thread (:mod:`plimsoll.app.candidacy`), so that the rest of the process cannot delay a
renewal. Shared with other threads are the fence, whose end is one number; ``tried`` and ``acquired``, which
are set through ``notify``; and the reports to users, which are read only.

A process leads at most once. What it knows is fit for a leader from the moment it takes over; a deposed
leader's memory (assumed pods, moves under way) is not. So it ends, as kube-scheduler does, and the next
process starts from the API alone.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from msgspec import Struct

from plimsoll.framework.errors import PlimsollError
from plimsoll.leadership.election import (
    Due,
    Election,
    Event,
    Failed,
    Instruction,
    LeaseFound,
    Now,
    Read,
    Resign,
    Rest,
    Stored,
    WriteLease,
)
from plimsoll.leadership.fence import Fence
from plimsoll.ports.clock import Clock, Randomness
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.leases import LeasePort
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: Seconds that an ending leader waits for writes under way before it releases the lease; interval of checks.
DRAIN_S = 3.0

REPORTER = "plimsoll"

#: Minimum delay that is reported, in seconds.
LATE_S = 0.5


class LeadershipLost(PlimsollError):
    """The lease could not be renewed in time; the process must end."""


class Leadership(Protocol):
    """Whether this process leads."""

    @property
    def since(self) -> float | None:
        """The monotonic time since which no other process has led; None before this process leads."""

    @property
    def standing(self) -> str:
        """The state in words, such as ``leading``."""

    @property
    def tried(self) -> asyncio.Event:
        """Set once it is known whether another process leads at the moment."""

    @property
    def acquired(self) -> asyncio.Event:
        """Set once this process leads."""

    def stand(self, *, was_led: bool = False) -> None:
        """Claim the lease from now on: everything that a leader must know is known.

        Args:
            was_led: Whether another process may have led before. If so, a lease that is missing or empty, and
                whose holder this process never saw, is claimed only when its last holder must have noticed.
        """

    def overdue_s(self) -> float:
        """Seconds by which the election's next step is overdue; 0 while it is in time."""

    async def run(self) -> None:
        """Take part in the election until cancelled.

        Raises:
            LeadershipLost: This process led, and may not lead any more.
        """

    async def drain(self) -> None:
        """Stop sending writes, and wait a little for those under way."""

    async def release(self) -> None:
        """Release the lease if no write of ours can be under way any more."""


class ElectedProcess(Struct, frozen=True):
    """The process that is to lead, as the election sees it.

    Attributes:
        hindrance: Why the lease must not be written although it could be, "" when it may be: a process that
            cannot work must not lead.
        pressure: What slowed the process down, in words.
        notify: Runs a call in the main loop of the process.
    """

    hindrance: Callable[[], str] = str
    pressure: Callable[[], str] = str
    notify: Callable[[Callable[[], None]], object] = lambda call: call()


class LeaderElector:
    """Leads when elected; opens the fence while this process certainly holds the lease."""

    def __init__(
        self,
        election: Election,
        leases: LeasePort,
        fence: Fence,
        process: ElectedProcess,
        clock: Clock,
        randomness: Randomness,
        recorder: EventRecorder,
        observer: Observer,
    ) -> None:
        self.tried = asyncio.Event()
        self.acquired = asyncio.Event()
        self.since: float | None = None
        self._election = election
        self._leases = leases
        self._name = leases.reference["name"]
        self._fence = fence
        self._process = process
        self._clock = clock
        self._randomness = randomness
        self._recorder = recorder
        self._observer = observer
        self._problem = ""
        self._holder = ""
        self._was_tried = False
        self._stood = Signal()
        #: When the current step should have ended, the current renewal was due, and the last one was sent.
        self._step_due = self._due = self._renewed = clock.monotonic()
        self._woken_late_s = 0.0

    def stand(self, *, was_led: bool = False) -> None:
        """Claim the lease from now on."""
        self._election.was_led |= was_led
        self._election.stands = True
        self._stood.notify()

    def overdue_s(self) -> float:
        """Seconds by which the current step is overdue."""
        return max(0.0, self._clock.monotonic() - self._step_due)

    @property
    def standing(self) -> str:
        """The state in words."""
        if self._election.is_leading(self._clock.monotonic()):
            return f"leading as {self._election.identity}"
        if self._problem:
            return f"standing by; {self._problem}"
        if not self._election.stands:
            leader = f"the leader is {self._holder}" if self._holder else "no leader is known"
            return f"not a candidate yet; {leader}"
        return f"standing by for {self._holder}" if self._holder else "standing by; no leader is known"

    async def run(self) -> None:
        """Take part until cancelled or deposed."""
        self._observer.leadership_changed(self._name, is_leading=False)
        instruction: Instruction = Rest(self._clock.monotonic())
        try:
            while not isinstance(instruction, Resign):
                event = await self._carry_out(instruction)
                instruction = self._election.handle(event, self._now())
                self._take_effect(event, instruction)
        finally:
            self._observer.leadership_changed(self._name, is_leading=False)
        self._fence.shut()
        ago_s = self._clock.monotonic() - self._renewed
        why = self._problem or self._lateness() or self._loss()
        raise LeadershipLost(f"leader election lost: {why}; last renewed {ago_s:.1f} s ago")

    def _now(self) -> Now:
        return Now(self._clock.monotonic(), self._clock.now(), self._randomness.fraction())

    async def _carry_out(self, instruction: Instruction) -> Event:
        match instruction:
            case Rest(until):
                await self._rest(until)
                return Due()
            case Read():
                self._step_due = self._clock.monotonic() + self._election.terms.request_s
                answer, lease = await self._leases.read()
                if answer.is_done:
                    return LeaseFound(lease)
            case WriteLease(claim):
                sent = self._clock.monotonic()
                self._step_due = sent + self._election.terms.request_s
                if hindrance := self._process.hindrance():
                    self._report(f"not written, because {hindrance}")
                    return Failed()
                answer, lease = await self._leases.write(claim)
                if answer.is_done and lease is not None:
                    return Stored(lease, sent)
                if answer.verdict is WriteOutcome.CONFLICT and self._election.is_leading(sent):
                    return Failed()  # another client wrote it: the next read shows the holder
            case Resign():
                raise AssertionError("the election is over")
        self._report(answer.message)
        return Failed()

    async def _rest(self, until: float) -> None:
        self._step_due = self._due = until
        # A candidate that may now stand does not wait for the end of its rest.
        await first_of(self._clock.sleep(max(0.0, until - self._clock.monotonic())), self._stood.wait())
        self._woken_late_s = max(0.0, self._clock.monotonic() - until)

    def _lateness(self) -> str:
        """Why the current attempt to renew is late, "" when it is not."""
        late_s = self._clock.monotonic() - self._due
        if late_s < self._election.terms.retry_period_s:
            return ""
        answered_s = late_s - self._woken_late_s
        parts = []
        if self._woken_late_s > LATE_S:
            parts.append(f"the election's thread ran {self._woken_late_s:.1f} s late")
        if answered_s > LATE_S:
            parts.append(f"the API server took {answered_s:.1f} s to answer")
        if self._problem:
            parts.append(self._problem)
        if pressure := self._process.pressure():
            parts.append(pressure)
        return "; ".join(parts)

    def _loss(self) -> str:
        """Why a lease that could be read and written in time is no longer ours."""
        holder = self._election.holder
        if holder in ("", self._election.identity):
            return "the lease was not renewed in time"
        return f"{holder} has taken the lease {self._name}"

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._observer.failed("election", f"the lease {self._name}: {problem}")
        self._problem = problem

    def _take_effect(self, event: Event, instruction: Instruction) -> None:
        if isinstance(event, Stored):
            if self.since is not None and (why := self._lateness()):
                late_s = self._clock.monotonic() - self._due
                self._observer.renewal_delayed(self._name, late_s, why)
            self._problem = ""
            self._renewed = event.sent
            self._fence.open(self._election.held_until)
            if self.since is None:
                self._become_leader()
        elif isinstance(event, LeaseFound):
            self._problem = ""
        if self._election.holder != self._holder:
            self._holder = self._election.holder
            self._observer.leader_seen(self._name, self._holder)
        if isinstance(instruction, Rest) and not self._was_tried:
            self._was_tried = True
            self._process.notify(self.tried.set)

    def _become_leader(self) -> None:
        self.since = self._election.led_from
        self._process.notify(self.acquired.set)
        self._observer.leadership_changed(self._name, is_leading=True)
        text = f"{self._election.identity} became leader"
        note = EventNote(self._leases.reference, "LeaderElection", "LeaderElection", text, reporter=REPORTER)
        self._process.notify(partial(self._recorder.record, note))

    async def drain(self) -> None:
        """Stop sending writes, and wait a little for those under way."""
        self._fence.shut()
        await first_of(self._fence.until_answered(), self._clock.sleep(DRAIN_S))

    async def release(self) -> None:
        """Release the lease after ``run``; it expires instead if a write of ours may still happen."""
        self._fence.shut()
        lease = self._election.released(self._now())
        if lease is not None and self._fence.is_quiet(self._election.terms.margin_s):
            await self._leases.write(lease)


class NoElection:
    """Always leads: for a single process without an election."""

    standing = "leading, without an election"

    def __init__(self, fence: Fence, clock: Clock) -> None:
        self.tried = asyncio.Event()
        self.acquired = asyncio.Event()
        self.since: float | None = clock.monotonic()
        self._fence = fence
        fence.open(float("inf"))
        self.tried.set()
        self.acquired.set()

    def stand(self, *, was_led: bool = False) -> None:
        """Do nothing: it leads already."""

    def overdue_s(self) -> float:
        """0: there is no election."""
        return 0.0

    async def run(self) -> None:
        """Do nothing until cancelled."""
        await asyncio.Event().wait()

    async def drain(self) -> None:
        """Shut the fence; does not wait for writes under way."""
        self._fence.shut()

    async def release(self) -> None:
        """Do nothing: there is no lease."""
