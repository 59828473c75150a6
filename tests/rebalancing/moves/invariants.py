"""Invariants of moves, of bundles and of what is known about replacements, checked after each step."""

from collections import Counter
from collections.abc import Mapping

from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.names import BundleKey, RecordKey
from plimsoll.rebalancing.moves.events import Event
from plimsoll.rebalancing.moves.instructions import Instruction
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.outcomes import is_in_flight
from plimsoll.rebalancing.moves.sightings import ReplacementSightings
from plimsoll.rebalancing.moves.state import IN_FLIGHT, BundleState, MoveStage, MoveState, TimerName
from plimsoll.records.record import PREEMPTION

#: The phases that a record can have in each stage.
PHASES: Mapping[MoveStage, tuple[Phase | None, ...]] = {
    MoveStage.PROPOSED: (Phase.PLANNED,),
    MoveStage.WAITING: (None, Phase.PLANNED),
    MoveStage.OPENING: (Phase.PLANNED,),
    MoveStage.CHECKING: (Phase.PLANNED,),
    MoveStage.COMMITTING: (Phase.EVICTING, Phase.SURGING),
    MoveStage.READY: (Phase.EVICTING,),
    MoveStage.EVICTING: (Phase.EVICTING,),
    MoveStage.SURGING: (Phase.SURGING,),
    MoveStage.REVERTING: (Phase.SURGING,),
    MoveStage.REPLACING: (Phase.EVICTED,),
    MoveStage.LEAVING: (Phase.EVICTED,),
    MoveStage.CLOSED: FINISHED,
}

#: What a stage waits for: a response, or a deadline.
_ENDS: Mapping[MoveStage, tuple[str, ...]] = {
    MoveStage.OPENING: ("record",),
    MoveStage.CHECKING: ("planner",),
    MoveStage.COMMITTING: ("record",),
    MoveStage.EVICTING: ("eviction", TimerName.RETRY, TimerName.DEFERRAL),
    MoveStage.SURGING: ("rollout", *TimerName),
    MoveStage.REVERTING: ("rollout", *TimerName),
    MoveStage.REPLACING: (TimerName.REPLACEMENT,),
    MoveStage.LEAVING: (TimerName.LEAVING,),
}


class BrokenInvariantError(AssertionError):
    """An invariant between two events is violated."""


def validated(moves: Mapping[RecordKey, MoveState], bundles: Mapping[BundleKey, BundleState]) -> None:
    """Check the invariants.

    Raises:
        BrokenInvariantError: An invariant is violated; names the move or the bundle.
    """
    for state in moves.values():
        _validate_move(state)
    _at_most_once("replacement", _credited(moves))
    sent = [each for each in moves.values() if each.stage in IN_FLIGHT - {MoveStage.REPLACING}]
    _at_most_once("pod that is sent", [each.pod_uid for each in sent if each.spec.strategy != PREEMPTION])
    for bundle in bundles.values():
        _validate_bundle(bundle, moves)


def _validate_move(state: MoveState) -> None:
    stage = state.stage
    _hold(stage is not MoveStage.NEW, state.key, "a move that is known has a stage")
    _hold(state.phase in PHASES[stage], state.key, f"phase {state.phase} in stage {stage.name}")
    may_hold = stage in IN_FLIGHT | {MoveStage.WAITING, MoveStage.OPENING, MoveStage.CHECKING}
    _hold(may_hold or not state.holds, state.key, f"a target is reserved in stage {stage.name}")
    ends = _ENDS.get(stage)
    found = ends is None or any(end in state.awaits or end in state.timers for end in ends)
    _hold(found, state.key, f"stage {stage.name} waits for nothing")
    _hold(stage is not MoveStage.CLOSED or not state.timers, state.key, "a move that is over has deadlines")


def _credited(moves: Mapping[RecordKey, MoveState]) -> list[str]:
    return [
        each.replacement.uid
        for each in moves.values()
        if each.replacement is not None and each.stage is not MoveStage.CLOSED
    ]


def _at_most_once(what: str, uids: list[str]) -> None:
    for uid, times in Counter(uids).items():
        _hold(times == 1, uid, f"{what} of {times} moves")


def _validate_bundle(bundle: BundleState, moves: Mapping[RecordKey, MoveState]) -> None:
    _hold(len(set(bundle.members)) == len(bundle.members), bundle.key, "a member twice")
    if bundle.due:
        busy = (MoveStage.OPENING, MoveStage.CHECKING, MoveStage.COMMITTING)
        count = sum(key in moves and moves[key].stage in busy for key in bundle.members)
        _hold(count <= 1, bundle.key, f"{count} moves are about to be sent")


def _hold(holds: bool, what: str, problem: str) -> None:
    if not holds:
        raise BrokenInvariantError(f"{what}: {problem}")


def _recount(machine: MoveMachine) -> None:
    """What is counted move by move is what a count of all moves finds."""
    states = list(machine.open.values())
    flying = Counter(each.workload for each in states if is_in_flight(each))
    begun = [each.move for each in states if each.move and each.stage is not MoveStage.PROPOSED]
    emptied = {move.source for move in begun if machine._around.empties(move)}
    _hold(machine.in_flight() == flying, "moves in flight", f"{machine.in_flight()}, counted {flying}")
    _hold(machine.emptied() == emptied, "nodes", f"{set(machine.emptied())} are emptied, counted {emptied}")
    for policy in {each.policy for each in machine.moves.values()} | machine._replaced.keys():
        replaced = {}
        for state in machine.moves.values():
            if state.policy == policy:
                replaced[Holder(HolderKind.REPLACEMENT, state.key).uid] = state.pod_uid
                if state.replacement is not None:
                    replaced[state.replacement.uid] = state.pod_uid
        found = machine.replaced(policy)
        _hold(found == replaced, policy, f"{found} take places, counted {replaced}")


def checked(machine: MoveMachine) -> MoveMachine:
    """The machine, which from now on checks its invariants after each event."""
    handle = machine.handle

    def handled(event: Event, now: float) -> tuple[Instruction, ...]:
        orders = handle(event, now)
        validated(machine.moves, machine.bundles)
        _recount(machine)
        return orders

    machine.handle = handled  # type: ignore[method-assign] # of this machine only
    return machine


def check_sightings(sightings: ReplacementSightings) -> None:
    """Check that each credited pod is credited to one move that waits, and is not spent.

    Raises:
        AssertionError: An invariant is violated.
    """
    for uid, followed in sightings._credited.items():
        if followed.reported is None or followed.reported.uid != uid or uid in sightings._spent:
            raise AssertionError(f"pod {uid} is credited to {followed.key}, which has {followed.reported}")
    reported = [
        each.reported.uid for waiting in sightings._waiting.values() for each in waiting if each.reported
    ]
    if sorted(reported) != sorted(sightings._credited):
        raise AssertionError(f"{sorted(sightings._credited)} are credited, moves have {sorted(reported)}")
