"""Several candidates, one lease, and everything that goes wrong between them.

True time is the simulation's. Each candidate has a clock that began anywhere and runs up to 15 % too
fast or too slow. Requests and answers take their time, overtake each other and get lost; candidates are
paused, die and are started again. What must hold: at no true time do two of them believe that they may write,
and when the trouble is over somebody leads.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from plimsoll.leadership.election import (
    Due,
    Election,
    Failed,
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.leadership.election import Event, Instruction

TERMS = Terms()

#: Seconds between two looks of a candidate at its clock while time passes.
STEP_S = 0.25

#: Exchanges that an attempt takes at most: read, write, and the rest that follows.
HOPS = 3

#: Deaf: what is asked happens, and no answer comes; mute: nothing arrives; slow: it arrives at any time.
LINKS = ("works", "slow", "deaf", "mute")

#: When clocks began, and how fast they run.
CLOCKS = st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0.85, 1.0, 1.15]))

#: Seconds after which a candidate waits for an answer no longer.
TIMEOUT_S = 5.0


@dataclass(slots=True)
class Server:
    """Keeps the lease as an API server does: who names the latest version may replace it."""

    lease: Lease | None = None
    versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def answer(self, asked: Read | WriteLease) -> Lease | bool | None:
        """A lease, None when it does not exist, False for a conflict."""
        if isinstance(asked, Read):
            return self.lease
        if asked.lease.version != (self.lease.version if self.lease else ""):
            return False
        self.lease = replace(asked.lease, version=str(next(self.versions)))
        return self.lease

    def relabel(self) -> None:
        """Give the lease a new version."""
        if self.lease is not None:
            self.lease = replace(self.lease, version=str(next(self.versions)))


@dataclass(slots=True)
class Process:
    """A candidate, its clock, and the one request that it waits for."""

    identity: str
    offset: float
    rate: float
    election: Election = field(init=False)
    instruction: Instruction = field(init=False)
    is_paused: bool = False
    link: str = "works"
    asked_at: float = 0.0
    ticket: int = -1

    def __post_init__(self) -> None:
        """Begin."""
        self.election = Election(self.identity, TERMS)
        self.instruction = Rest(-1e9)

    def clock(self, true: float) -> float:
        """What the candidate's clock shows."""
        return self.offset + self.rate * true

    def take(self, event: Event, true: float, fraction: float) -> None:
        """Let something happen to it."""
        self.instruction = self.election.handle(event, Now(self.clock(true), true, fraction))
        self.ticket = -1


@dataclass(slots=True)
class Message:
    """A request on its way, then its answer."""

    process: Process
    ticket: int
    asked: Read | WriteLease
    answer: Lease | bool | None = False
    is_answered: bool = False


class Candidates(RuleBasedStateMachine):
    """The simulation."""

    def __init__(self) -> None:
        super().__init__()
        self.true = 0.0
        self.server = Server()
        self.processes: list[Process] = []
        self.messages: list[Message] = []
        self.tickets = itertools.count()
        self.names = itertools.count()
        self.clocks: list[tuple[float, float]] = []

    @initialize(
        clocks=st.lists(
            st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0.85, 1.0, 1.15])), min_size=2, max_size=3
        )
    )
    def begin(self, clocks: list[tuple[float, float]]) -> None:
        """Start the candidates."""
        self.clocks = clocks
        self.processes = [self._process(each) for each in clocks]
        self._pass(6.0, 0.0)

    def _process(self, clock: tuple[float, float]) -> Process:
        return Process(f"candidate-{next(self.names)}", *clock)

    # -- what happens --------------------------------------------------------------------------------

    @rule(
        index=st.integers(0, 2),
        trouble=st.sampled_from([*LINKS, "pause", "wake", "restart", "label"]),
        seconds=st.sampled_from([25.0, 12.0, 6.0, 3.0, 1.0, 0.2]),
        fraction=st.floats(0, 1),
    )
    def something_changes(self, index: int, trouble: str, seconds: float, fraction: float) -> None:
        """A link; a candidate is paused, while its clock goes on, or started again; then time passes."""
        index %= len(self.processes)
        match trouble:
            case "pause" | "wake":
                self.processes[index].is_paused = trouble == "pause"
            case "restart":  # what it sent may arrive yet
                self.processes[index] = self._process(self.clocks[index])
            case "label":  # a new version that is not a renewal
                self.server.relabel()
            case _:
                self.processes[index].link = trouble
        self._pass(seconds, fraction)

    def _pass(self, seconds: float, fraction: float) -> None:
        """Candidates go on, and what is sent over links that work is answered immediately."""
        for _ in range(max(1, round(seconds / STEP_S))):
            self.true += min(seconds, STEP_S)
            for _ in range(HOPS):
                for process in self.processes:
                    self._go_on(process, fraction)
                for message in [each for each in self.messages if each.process.link == "works"]:
                    if not message.is_answered:
                        self._arrive(message)
                    self._hear(message, fraction)
            self.at_most_one_may_write()
            self.who_leads_holds_the_lease()

    @rule(index=st.integers(0, 20), fate=st.sampled_from(["arrives", "is heard", "is lost"]))
    def a_message_moves(self, index: int, fate: str) -> None:
        """A request arrives, maybe long after; an answer is heard, if it is waited for; or neither."""
        if not self.messages:
            return
        message = self.messages[index % len(self.messages)]
        if fate == "is lost":
            self.messages.remove(message)
        elif fate == "arrives" and not message.is_answered and message.process.link != "mute":
            self._arrive(message)
        elif fate == "is heard" and message.is_answered and message.process.link != "deaf":
            self._hear(message, 0.5)

    def _go_on(self, process: Process, fraction: float) -> None:
        if process.is_paused:
            return
        match process.instruction:
            case Rest(until):
                if process.clock(self.true) >= until:
                    process.take(Due(), self.true, fraction)
            case Read() | WriteLease() as asked if process.ticket < 0:
                process.ticket, process.asked_at = next(self.tickets), process.clock(self.true)
                self.messages.append(Message(process, process.ticket, asked))
            case Read() | WriteLease():
                if process.clock(self.true) - process.asked_at >= TIMEOUT_S:
                    process.take(Failed(), self.true, fraction)

    def _arrive(self, message: Message) -> None:
        message.answer, message.is_answered = self.server.answer(message.asked), True

    def _hear(self, message: Message, fraction: float) -> None:
        process = message.process
        if process.is_paused:
            return
        self.messages.remove(message)
        if process.ticket != message.ticket:
            return
        if isinstance(message.asked, Read):
            assert not isinstance(message.answer, bool)
            process.take(LeaseFound(message.answer), self.true, fraction)
        elif isinstance(message.answer, Lease):
            process.take(Stored(message.answer, process.asked_at), self.true, fraction)
        else:
            process.take(Failed(), self.true, fraction)

    # -- what must hold ------------------------------------------------------------------------------

    def _leaders(self) -> list[str]:
        return [each.identity for each in self.processes if each.election.is_leading(each.clock(self.true))]

    @invariant()
    def at_most_one_may_write(self) -> None:
        """Paused ones included: they look at their clock before they write."""
        assert len(self._leaders()) <= 1

    @invariant()
    def who_leads_holds_the_lease(self) -> None:
        """No candidate leads by a lease that another one has taken."""
        for leader in self._leaders():
            assert self.server.lease is not None
            assert self.server.lease.holder == leader

    def teardown(self) -> None:
        """Without trouble somebody leads within two leases, and stays."""
        self.messages.clear()
        for process in self.processes:
            process.is_paused, process.link = False, "works"
        led: list[list[str]] = []
        for _ in range(240):
            for index, process in enumerate(self.processes):
                if isinstance(process.instruction, Resign):
                    self.processes[index] = self._process(self.clocks[index])
            self._pass(STEP_S, 0.5)
            led.append(self._leaders())

        assert not self.processes or all(led[160:]), "no candidate leads"
        assert not self.processes or len({leaders[0] for leaders in led[160:]}) == 1, "they take turns"


TestCandidates = Candidates.TestCase
TestCandidates.settings = settings(max_examples=3 * settings.default.max_examples, stateful_step_count=20)
