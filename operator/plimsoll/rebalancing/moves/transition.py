"""Defines a transition of a move as a step under construction, and the tables that select transitions.

A transition receives a step and an event. It changes the step's state, adds instructions, and reads nothing
but the event, the state, the time and the surroundings. An event without a cell for its stage is invalid.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.instructions import (
    CancelTimer,
    Instruction,
    MoveInstruction,
    RetryAt,
    WriteRecord,
)
from plimsoll.rebalancing.moves.state import (
    EvictionMethod,
    Landing,
    MoveStage,
    MoveState,
    Surroundings,
    TimerName,
)


class Step(Struct):
    """A transition under construction."""

    state: MoveState  #: the move's state, before and then after
    now: float  #: monotonic seconds
    around: Surroundings  #: the present cluster and policies
    evicted: int = 0  #: number of moves of the same run that were made
    group_leaves: bool = False  #: whether others of the group that leaves whole have left, or were sent
    instructions: list[Instruction] = field(default_factory=list)  #: the instructions, in order

    def become(self, stage: MoveStage | None = None, **changes: Any) -> None:
        """Change the state; a stage of None keeps the present one."""
        self.state = replace(self.state, stage=stage or self.state.stage, **changes)

    def order(self, *instructions: Instruction) -> None:
        """Add instructions."""
        self.instructions.extend(instructions)
        asked = {each.asks for each in instructions if isinstance(each, MoveInstruction) and each.asks}
        if asked:
            self.become(awaits=self.state.awaits | asked)

    def wait(self, timer: TimerName, seconds: float) -> None:
        """Set a deadline, in seconds from now."""
        at = self.now + seconds
        self.become(timers=MappingProxyType({**self.state.timers, timer: at}))
        self.order(RetryAt(self.state.key, timer, at))

    def wait_no_more(self, *timers: TimerName) -> None:
        """Cancel the given deadlines, or all."""
        ended = [name for name in self.state.timers if not timers or name in timers]
        left = {name: at for name, at in self.state.timers.items() if name not in ended}
        self.become(timers=MappingProxyType(left))
        self.order(*(CancelTimer(self.state.key, name) for name in ended))

    def write(self, phase: Phase, reason: str, message: str = "", landing: Landing | None = None) -> None:
        """Write the record's phase; orders nothing if the record has it already."""
        state = self.state
        if (state.phase, state.reason, state.message) == (phase, reason, message):
            return
        self.become(phase=phase, reason=reason, message=message)
        further = () if landing is None else (landing.blocked_by, landing.replacement)
        self.order(WriteRecord(state.key, phase, reason, message, *further))

    def close(self, landing: Landing) -> None:
        """Close the move: write the landing if it has a record, and cancel all deadlines."""
        self.wait_no_more()
        if self.state.recorded:
            self.write(landing.phase, landing.reason, landing.message, landing)
        self.become(MoveStage.CLOSED, landing=None, ending=None)


Transition = Callable[[Step, Any], None]

#: Follows once the record announces the move.
Begin = Callable[[Step], None]


class MoveTable(Struct, frozen=True):
    """The transitions of one way of moving pods."""

    transitions: Mapping[tuple[MoveStage, type], Transition]
    begins: Mapping[EvictionMethod, Begin] = field(default_factory=dict)  #: what follows the record, by way


def nothing(step: Step, event: object) -> None:
    """The cell ``·``: the event may arrive late or twice; nothing changes."""


_PR, _WA, _OP, _CH = MoveStage.PROPOSED, MoveStage.WAITING, MoveStage.OPENING, MoveStage.CHECKING
_CO, _EV, _RE, _LE = MoveStage.COMMITTING, MoveStage.EVICTING, MoveStage.REPLACING, MoveStage.LEAVING
_RD, _CL = MoveStage.READY, MoveStage.CLOSED
_ALL = (_PR, _WA, _OP, _CH, _CO, _RD, _EV, _RE, _LE, _CL)
_UNFOLLOWED = (_PR, _WA, _OP, _CH, _CO, _RD, _LE, _CL)

#: Events that may arrive late or twice, by stage; the optional ways of moving pods have their own tables.
_LATE: Mapping[type, tuple[MoveStage, ...]] = {
    events.MovePlanned: _ALL,
    events.RecordAnswered: (_PR, _WA, _CH, _RD, _EV, _RE, _LE, _CL),
    events.RecordDeleted: (_OP, _CO, _EV, _RE, _LE, _CL),
    events.ProposalAnswered: (_CH, _CO, _RD, _EV, _RE, _LE, _CL),
    events.MoveUnplanned: (_WA, _OP, _CH, _CO, _RD, _EV, _RE, _LE, _CL),
    events.PolicyChanged: (_CO, _EV, _RE, _LE, _CL),
    events.StopPressed: tuple(each for each in _ALL if each is not _RD),
    events.MoveDropped: (_CO, _EV, _RE, _LE, _CL),
    events.Revalidated: (_CL,),
    events.RevalidationRefused: (_CL,),
    events.EvictionAnswered: (_RE, _LE, _CL),
    events.PodTerminating: (_PR, _WA, _OP, _CH, _CO, _RE, _CL),
    events.PodGone: (_WA, _OP, _CH, _CO, _CL),
    events.EvictionMarked: tuple(each for each in MoveStage if each not in (MoveStage.NEW, _EV)),
    events.ReplacementSeen: _UNFOLLOWED,
    events.ReplacementRunning: _UNFOLLOWED,
    events.ReplacementReady: _UNFOLLOWED,
    events.ReplacementReturned: _UNFOLLOWED,
    events.ReplacementLost: _UNFOLLOWED,
    events.TimedOut: (_PR, _WA, _OP, _CH, _CO, _CL),
}

LATE = MoveTable({(stage, event): nothing for event, stages in _LATE.items() for stage in stages})
