"""Counts the transitions of records, moves and elections that a run goes through, and enumerates all of them.

The latter come from the operator's own state machines: the phases that may follow each other, the table of
the move machine, and all that the election answers when everything that can happen to it does.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import SUCCESSORS, Phase, may_follow
from plimsoll.leadership.election import (
    Due,
    Election,
    Event,
    Failed,
    Instruction,
    LeaseFound,
    Now,
    Read,
    Rest,
    Stored,
    Terms,
    WriteLease,
)
from plimsoll.model.names import RecordKey
from plimsoll.ports.leases import Lease
from plimsoll.rebalancing.moves import eviction, preparation, recovery
from plimsoll.rebalancing.moves.events import MovePlanned, ProcessRestarted, RecordAnswered
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.state import MoveStage
from plimsoll.rebalancing.moves.transition import LATE, nothing
from plimsoll.rebalancing.surges import transitions as surges

#: What decides about moves in the operator; ``recovery`` needs rules that change nothing here.
TABLES = (LATE, preparation.TABLE, eviction.TABLE, surges.TABLE, recovery.table())


# -- records -------------------------------------------------------------------------------------------------


def of_record(before: str, after: str) -> str:
    """The name of a transition of a record; the phase is "" before it is created."""
    return f"{before or 'new'} -> {after}"


#: What the phases allow and the operator never writes, with the reason.
NO_RECORDS = {
    "Planned -> Failed": (
        "a move that is not announced is called off: whatever ends it in stages Opening, Proposed, Waiting,"
        " Checking and Committing lands on Cancelled, or on Blocked where a budget has closed"
    ),
    "Evicted -> Cancelled": (
        "the pod is gone or goes: stages Replacing and Leaving end by their replacement, by its time or"
        " by the pod's departure, as Settled, Returned or Failed"
    ),
}


@cache
def of_records() -> frozenset[str]:
    """Those that the operator writes."""
    first = {of_record("", phase) for phase in Phase if may_follow(None, phase)}
    allowed = {of_record(before, after) for before in SUCCESSORS for after in SUCCESSORS[before]}
    return frozenset((first | allowed) - NO_RECORDS.keys())


# -- moves ---------------------------------------------------------------------------------------------------


def of_move(stage: MoveStage, event: type, way: str = "") -> str:
    """The name of a cell of the move machine's table."""
    return f"{stage.name} + {event.__name__}{f' ({way})' if way else ''}"


#: Cells that some runs meet and 300 seeds may not: somebody deletes the record of a move that is under way,
#: at the very moment when the next move of its bundle is being recorded or checked.
RARE_MOVES = frozenset(("OPENING + MoveDropped", "CHECKING + MoveDropped"))


@cache
def of_moves() -> frozenset[str]:
    """The cells in which something is decided; in the others an event is late and changes nothing."""
    cells = {
        of_move(stage, event)
        for table in TABLES
        for (stage, event), decides in table.transitions.items()
        if decides is not nothing
    }
    begins = {
        of_move(MoveStage.COMMITTING, RecordAnswered, way.value) for table in TABLES for way in table.begins
    }
    return frozenset((cells | begins) - RARE_MOVES)


@cache
def of_late_events() -> frozenset[str]:
    """The other cells."""
    cells = {of_move(stage, event) for table in TABLES for stage, event in table.transitions}
    return frozenset(cells) - of_moves() - RARE_MOVES


# -- elections -----------------------------------------------------------------------------------------------


def standing(election: Election, at: float) -> str:
    """The state of an election, in words."""
    if election.is_leading(at):
        return "leads"
    if election._has_led:
        return "has led"
    return "stands" if election.stands else "observes"


def of_election(before: str, event: Event, instruction: Instruction, identity: str) -> str:
    """The name of a step of an election in that state."""
    match event:
        case LeaseFound(None):
            what = "no lease"
        case LeaseFound(Lease(holder="")):
            what = "a free lease"
        case LeaseFound(Lease(holder=holder)):
            what = "its own lease" if holder == identity else "another's lease"
        case _:
            what = type(event).__name__
    return f"{before}: {what} -> {type(instruction).__name__}"


@dataclass(frozen=True, slots=True)
class _Moment:
    """An election and its latest instruction."""

    election: Election
    at: float
    told: Instruction


#: Seconds that answers take, and for which processes are paused: none to speak of, so long that what was sent
#: by a leader is answered after its lease was to end, and longer than any lease.
_DELAYS_S = (0.01, 9.0, 30.0)


@cache
def of_elections() -> frozenset[str]:
    """All steps of an election: each answer to each instruction, in time or late, until nothing new comes."""
    begun = []
    for stands, was_led in itertools.product((False, True), (False, True)):
        election = Election("we", Terms(), stands=stands)
        election.was_led = was_led
        begun.append(_Moment(election, 0.0, Rest(0.0)))
    found: set[str] = set()
    known: set[tuple[Any, ...]] = set()
    left = deque(begun)
    versions = iter(range(1, 1_000_000))
    while left:
        moment = left.popleft()
        for event, at, stands in _events(moment, str(next(versions))):
            election = copy.deepcopy(moment.election)
            election.stands = election.stands or stands
            before = standing(election, at)
            told = election.handle(event, Now(at, at))
            name = of_election(before, event, told, election.identity)
            found.add(name)
            state = (name, *_essence(election, at))
            if state not in known:
                known.add(state)
                left.append(_Moment(election, at, told))
    return frozenset(found)


def _events(moment: _Moment, version: str) -> Iterator[tuple[Event, float, bool]]:
    """What may happen next, when, and whether the candidate may stand meanwhile."""
    at, election = moment.at, moment.election
    match moment.told:
        case Rest(until):
            for delay_s in _DELAYS_S:
                yield Due(), max(at, until) + delay_s, False
                yield Due(), at + 0.01, True
        case Read():
            seen = election._observed
            leases = [None, Lease("", 1, 0.0, 0.0, version=version)]
            leases += [Lease(who, 15, 0.0, 0.0, version=version) for who in ("we", "they")]
            leases += [] if seen is None else [seen]
            for delay_s in _DELAYS_S:
                yield from ((LeaseFound(lease), at + delay_s, False) for lease in leases)
                yield Failed(), at + delay_s, False
        case WriteLease(lease):
            for delay_s in _DELAYS_S:
                yield Stored(replace(lease, version=version), at), at + delay_s, False
                yield Failed(), at + delay_s, False


def _essence(election: Election, at: float) -> tuple[Any, ...]:
    """What of an election decides about what follows."""
    return (
        election.stands,
        election.is_leading(at),
        election._has_led,
        election._writes,
        election._reads_again,
        election.holder,
        election.is_leading(at) or at < election._expiry(),
        election._observed is None,
        election._free is None,
        election.was_led,
    )


# -- counting ------------------------------------------------------------------------------------------------


@contextmanager
def counted(counts: Counter[str]) -> Iterator[None]:
    """Count the steps of all move machines and elections."""
    step, handle = MoveMachine._step, Election.handle

    def stepped(self: MoveMachine, key: RecordKey, event: Any, now: float) -> Any:
        state = self.moves.get(key)
        stage = MoveStage.NEW if state is None else state.stage
        ordered = step(self, key, event, now)
        is_begun = stage is MoveStage.COMMITTING and isinstance(event, RecordAnswered)
        if state is None and not isinstance(event, MovePlanned | ProcessRestarted):
            return ordered  # of a move that is not known, or is forgotten
        counts[f"move: {of_move(stage, type(event), state.way if state and is_begun else '')}"] += 1
        return ordered

    def handled(self: Election, event: Event, now: Now) -> Instruction:
        before = standing(self, now.monotonic)
        instruction = handle(self, event, now)
        counts[f"election: {of_election(before, event, instruction, self.identity)}"] += 1
        return instruction

    MoveMachine._step, Election.handle = stepped, handled  # type: ignore[method-assign] # undone below
    try:
        yield
    finally:
        MoveMachine._step, Election.handle = step, handle  # type: ignore[method-assign] # as it was
