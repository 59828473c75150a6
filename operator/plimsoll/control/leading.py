"""Leading: carries the election out, opens and closes the fence, says who leads.

A process leads at most once: what it knows is fit for a leader from the moment it takes over, and a deposed
leader's memory (assumed pods, moves under way) is not. So it ends, as kube-scheduler does, and the next
process starts from the API alone.
"""

import asyncio
from typing import Protocol

from plimsoll.control.electing import (
    Due,
    Election,
    Event,
    Failed,
    Found,
    Instruction,
    Now,
    Read,
    Resign,
    Rest,
    Stored,
    Write,
)
from plimsoll.control.fencing import Fence
from plimsoll.control.ports import Clock, LeasePort, Note, Randomness, Recorder
from plimsoll.framework import PlimsollError
from plimsoll.framework.observer import Observer

#: Seconds that writes under way get before a leader that ends gives the lease away, and between two looks.
DRAIN_S, PACE_S = 3.0, 0.02

REPORTER = "plimsoll"


class LeadershipLost(PlimsollError):
    """The lease could not be renewed in time; the process must end."""


class Leadership(Protocol):
    """Whether this process leads."""

    @property
    def since(self) -> float | None:
        """The monotonic time at which it became leader, None before."""

    @property
    def standing(self) -> str:
        """In words for people, such as ``leading``."""

    @property
    def tried(self) -> asyncio.Event:
        """Set once it is known whether there is another leader just now."""

    @property
    def acquired(self) -> asyncio.Event:
        """Set once this process leads."""

    async def run(self) -> None:
        """Take part for ever.

        Raises:
            LeadershipLost: It led, and may not any more.
        """

    async def drain(self) -> None:
        """Send nothing more, and wait a little for what was sent."""

    async def release(self) -> None:
        """Give the lease away, if nothing of ours can be under way any more."""


class Elected:
    """Leads when elected.

    Args:
        name: Of the lease, in metrics.
        election: The candidate.
        leases: Reads and writes the lease.
        fence: Open for as long as the lease is surely ours.
        clock: Time; must go on while the machine sleeps.
        randomness: Jitter.
        recorder: Records who became leader.
        observer: Told who leads, and of failures.
    """

    def __init__(
        self,
        name: str,
        election: Election,
        leases: LeasePort,
        *,
        fence: Fence,
        clock: Clock,
        randomness: Randomness,
        recorder: Recorder,
        observer: Observer,
    ) -> None:
        self.tried = asyncio.Event()
        self.acquired = asyncio.Event()
        self.since: float | None = None
        self._name = name
        self._election = election
        self._leases = leases
        self._fence = fence
        self._clock = clock
        self._randomness = randomness
        self._recorder = recorder
        self._observer = observer
        self._problem = ""
        self._holder = ""

    @property
    def standing(self) -> str:
        """In words."""
        if self._election.is_leading(self._clock.monotonic()):
            return f"leading as {self._election.identity}"
        if self._problem:
            return f"standing by; {self._problem}"
        return f"standing by for {self._holder or 'nobody'}"

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
        raise LeadershipLost(f"leader election lost: {self._problem or 'the lease was not renewed in time'}")

    def _now(self) -> Now:
        return Now(self._clock.monotonic(), self._clock.now(), self._randomness.fraction())

    async def _carry_out(self, instruction: Instruction) -> Event:
        match instruction:
            case Rest(until):
                await self._clock.sleep(max(0.0, until - self._clock.monotonic()))
                return Due()
            case Read():
                answer, lease = await self._leases.read()
                if answer.is_done:
                    return Found(lease)
            case Write(claim):
                sent = self._clock.monotonic()
                answer, lease = await self._leases.write(claim)
                if answer.is_done and lease is not None:
                    return Stored(lease, sent)
            case Resign():
                raise AssertionError("the election is over")
        self._report(answer.message)
        return Failed()

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._observer.failed("election", f"the lease {self._name}: {problem}")
        self._problem = problem

    def _take_effect(self, event: Event, instruction: Instruction) -> None:
        if isinstance(event, Stored):
            self._problem = ""
            self._fence.open(self._election.held_until)
            if not self.acquired.is_set():
                self._become_leader()
        elif isinstance(event, Found):
            self._problem = ""
        if self._election.holder != self._holder:
            self._holder = self._election.holder
            self._observer.leader_seen(self._name, self._holder)
        if isinstance(instruction, Rest):
            self.tried.set()

    def _become_leader(self) -> None:
        self.since = self._clock.monotonic()
        self.acquired.set()
        self._observer.leadership_changed(self._name, is_leading=True)
        text = f"{self._election.identity} became leader"
        self._recorder.record(
            Note(self._leases.reference, "LeaderElection", "LeaderElection", text, reporter=REPORTER)
        )

    # -- the end -------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Send nothing more, and wait a little for what was sent."""
        self._fence.shut()
        deadline = self._clock.monotonic() + DRAIN_S
        while self._fence.under_way and self._clock.monotonic() < deadline:
            await self._clock.sleep(PACE_S)

    async def release(self) -> None:
        """Give the lease away, unless a write of ours may still happen: then it expires by itself.

        Called after ``run`` has been cancelled.
        """
        self._fence.shut()
        lease = self._election.released(self._now())
        if lease is not None and self._fence.is_quiet(self._election.terms.margin_s):
            await self._leases.write(lease)


class Unchallenged:
    """Leads always: for a single process that takes no part in an election.

    Args:
        fence: Opened for ever.
        clock: Time.
    """

    standing = "leading, without an election"

    def __init__(self, fence: Fence, clock: Clock) -> None:
        self.tried = asyncio.Event()
        self.acquired = asyncio.Event()
        self.since: float | None = clock.monotonic()
        self._fence = fence
        fence.open(float("inf"))
        self.tried.set()
        self.acquired.set()

    async def run(self) -> None:
        """Nothing to do, for ever."""
        await asyncio.Event().wait()

    async def drain(self) -> None:
        """Nobody waits for the end of what was sent."""
        self._fence.shut()

    async def release(self) -> None:
        """There is no lease."""
