"""Step is one transition of a move in the making; MoveTable says which one an event causes in which stage.

A transition takes a step and an event. It changes the step's state, adds instructions, and reads nothing but
the event, the state, the time and the surroundings. A cell that is missing cannot happen.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.rebalancing.moves.events import (
    EvictionAnswered,
    RecordRefused,
    RecordWritten,
    RequestAnswered,
    RequestProgressed,
    Revalidated,
    RevalidationRefused,
    RolloutAnswered,
)
from plimsoll.rebalancing.moves.instructions import (
    CancelTimer,
    CreateRecord,
    Evict,
    InspectRequest,
    Instruction,
    RequestEviction,
    RetryAt,
    Revalidate,
    RevertRollout,
    StartRollout,
    WriteRecord,
)
from plimsoll.rebalancing.moves.state import (
    Landing,
    MoveStage,
    MoveState,
    PodFacts,
    Surroundings,
    TimerName,
    Way,
)

#: What the instructions ask that are answered with an event.
ASKS: Mapping[type, str] = MappingProxyType(
    {
        CreateRecord: "record",
        WriteRecord: "record",
        Revalidate: "planner",
        Evict: "eviction",
        RequestEviction: "request",
        InspectRequest: "inspection",
        StartRollout: "rollout",
        RevertRollout: "rollout",
    }
)

#: What the events answer.
ANSWERS: Mapping[type, str] = MappingProxyType(
    {
        RecordWritten: "record",
        RecordRefused: "record",
        Revalidated: "planner",
        RevalidationRefused: "planner",
        EvictionAnswered: "eviction",
        RequestAnswered: "request",
        RequestProgressed: "inspection",
        RolloutAnswered: "rollout",
    }
)


@dataclass(slots=True)
class Step:
    """One transition in the making.

    Attributes:
        state: Of the move: as it was, then as it becomes.
        now: Seconds of the monotonic clock.
        around: The world at this moment.
        peers: Other moves of the same pod.
        evicted: How many moves of the same run have been made.
        instructions: What is to be done, in order.
    """

    state: MoveState
    now: float
    around: Surroundings
    peers: Sequence[MoveState] = ()
    evicted: int = 0
    instructions: list[Instruction] = field(default_factory=list)

    def become(self, stage: MoveStage | None = None, **changes: Any) -> None:
        """Change the state; a stage of None keeps the present one."""
        self.state = replace(self.state, stage=stage or self.state.stage, **changes)

    def order(self, *instructions: Instruction) -> None:
        """Add instructions."""
        self.instructions.extend(instructions)
        asked = {ASKS[type(each)] for each in instructions if type(each) in ASKS}
        if asked:
            self.become(awaits=self.state.awaits | asked)

    def wait(self, timer: TimerName, seconds: float) -> None:
        """Set a deadline from now on."""
        at = self.now + seconds
        self.become(timers=MappingProxyType({**self.state.timers, timer: at}))
        self.order(RetryAt(self.state.key, timer, at))

    def wait_no_more(self, *timers: TimerName) -> None:
        """End deadlines: those given, else all."""
        ended = [name for name in self.state.timers if not timers or name in timers]
        left = {name: at for name, at in self.state.timers.items() if name not in ended}
        self.become(timers=MappingProxyType(left))
        self.order(*(CancelTimer(self.state.key, name) for name in ended))

    def write(
        self,
        phase: Phase,
        reason: str,
        message: str = "",
        *,
        blocked_by: str = "",
        replacement: PodFacts | None = None,
    ) -> None:
        """Have the record say something; nothing is ordered when it says so already."""
        state = self.state
        if (state.phase, state.reason, state.message) == (phase, reason, message):
            return
        self.become(phase=phase, reason=reason, message=message)
        self.order(WriteRecord(state.key, phase, reason, message, blocked_by, replacement))

    def close(self, landing: Landing) -> None:
        """The move is over: its record says so if there is one, no deadline is left."""
        self.wait_no_more()
        if self.state.recorded:
            self.write(
                landing.phase,
                landing.reason,
                landing.message,
                blocked_by=landing.blocked_by,
                replacement=landing.replacement,
            )
        self.become(MoveStage.CLOSED, landing=None, ending=None)


Transition = Callable[[Step, Any], None]

#: What follows once the record announces that a pod is about to be moved.
Begin = Callable[[Step], None]


def nothing(step: Step, event: object) -> None:
    """The cell ``·``: the event may arrive late or twice; nothing changes, nothing is sent."""


@dataclass(frozen=True, slots=True)
class MoveTable:
    """What one way of moving pods contributes to the machine.

    Attributes:
        transitions: By stage and type of the event.
        begins: What follows once it is on record that a pod is about to be moved in a way.
    """

    transitions: Mapping[tuple[MoveStage, type], Transition]
    begins: Mapping[Way, Begin] = field(default_factory=dict)
