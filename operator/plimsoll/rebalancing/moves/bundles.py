"""Bundles couple moves: they are made in order, all or none, and this module says which one is next.

A bundle is looked at after each event that may concern it. Nothing is kept besides what its state and the
states of its moves say. When a move is not made, or ends other than Settled while others wait for their turn,
the rest is not made: its room is free again, its node is opened. A move that waits for another one of its
workload holds up no other bundle.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.moves.events import BundleBroken, Event, MoveSkipped, PodGone, TurnReached
from plimsoll.rebalancing.moves.instructions import CloseNode, Instruction, NodeDone, ReleaseRoom, ReserveRoom
from plimsoll.rebalancing.moves.outcomes import (
    FOR_NO_POD,
    GONE,
    NOT_JUDGED,
    NOT_MADE,
    NOT_PROPOSED,
    NOT_REVALIDATED,
    REJECTED,
    not_all,
)
from plimsoll.rebalancing.moves.state import BundleState, Landing, MoveStage, MoveState, Surroundings


def bundle_key(policy: str, bundle: str, record: str) -> str:
    """Key of the bundle of a move: of its policy and name, or of the record of a move that stands alone."""
    return f"{policy}/{bundle}" if bundle else record


def bundle_of(spec: EvictionSpec, record: str) -> str:
    """The same, as the record says."""
    return bundle_key(spec.policy, spec.bundle.name if spec.bundle is not None else "", record)


@dataclass(frozen=True, slots=True)
class Look:
    """What follows from a look at a bundle.

    Attributes:
        bundle: Its state afterwards; None when it is over.
        instructions: What is to be done.
        events: What this means for its moves.
    """

    bundle: BundleState | None
    instructions: tuple[Instruction, ...] = ()
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class _Bundle:
    """A bundle with the states of its moves."""

    state: BundleState
    moves: Mapping[str, MoveState]
    around: Surroundings
    in_flight: Callable[[str], int]
    is_asked: Callable[[str], bool]
    left: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        left = [key for key in self.state.members if not self._is_over(key)]
        object.__setattr__(self, "left", left)

    def _is_over(self, key: str) -> bool:
        move = self.moves.get(key)
        return key in self.state.skipped or (move is not None and move.begun)


def look(
    bundle: BundleState,
    moves: Mapping[str, MoveState],
    around: Surroundings,
    in_flight: Callable[[str], int],
    is_asked: Callable[[str], bool],
) -> Look:
    """See which move of a bundle is next, or whether it is over.

    Args:
        bundle: Its state.
        moves: All moves by key; those that were never recorded are dropped when they end.
        around: The world at this moment.
        in_flight: How many moves of a workload, by uid, wait for their replacement.
        is_asked: Whether a pod, by uid, was asked to leave by an EvictionRequest.
    """
    if not bundle.arrived.issuperset(bundle.members):
        return Look(bundle)
    here = _Bundle(bundle, moves, around, in_flight, is_asked)
    return _made_in_order(here) if bundle.due else _proposed(here)


# -- moves that are made ---------------------------------------------------------------------------------


def _made_in_order(here: _Bundle) -> Look:  # noqa: PLR0911 - one check after the other, in their order
    bundle = here.state
    if not here.left:
        done = (NodeDone(bundle.empties, reopen=False),) if bundle.closed else ()
        return Look(None, done)
    move = here.moves.get(here.left[0])
    if move is None or move.stage is MoveStage.CLOSED:
        return _broken(here)
    if move.stage is not MoveStage.WAITING or bundle.closing:
        return Look(replace(bundle, parked=False))
    if bundle.broken or _has_failed(here):
        return _broken(here)
    planned = move.move
    if planned is not None and planned.waits and here.in_flight(planned.workload.uid):
        return Look(replace(bundle, parked=True))
    bundle = replace(bundle, parked=False)
    if _is_needless(here, move):
        return Look(replace(bundle, skipped=bundle.skipped | {move.key}), events=(MoveSkipped(move.key),))
    if not all(here.around.waits(uid) for uid, _ in bundle.beneficiaries):
        return _broken(here)
    orders: list[Instruction] = []
    if bundle.beneficiaries:
        leaving = frozenset(here.moves[key].pod_uid for key in bundle.members if key in here.moves)
        orders.append(ReserveRoom(bundle.key, bundle.beneficiaries, leaving))
        bundle = replace(bundle, keeps_room=True)
    if bundle.empties and not bundle.closed:
        orders.append(CloseNode(bundle.key, bundle.empties))
        return Look(replace(bundle, closing=True), tuple(orders))
    return Look(bundle, tuple(orders), (TurnReached(move.key),))


def _has_failed(here: _Bundle) -> bool:
    """Whether a move that was made has ended badly, or one that waits was called off."""
    for key in here.state.members:
        move = here.moves.get(key)
        if move is None or key in here.state.skipped:
            if key in here.left:
                return True
        elif move.stage is MoveStage.CLOSED and (not move.begun or move.phase is not Phase.SETTLED):
            return True
    return False


def _is_needless(here: _Bundle, move: MoveState) -> bool:
    """Whether the pod has left its node by itself, or an earlier run has asked it to leave."""
    if not move.recorded and here.is_asked(move.pod_uid):
        return True
    has_begun = len(here.left) + len(here.state.skipped) < len(here.state.members)
    pod = here.around.pod(move.pod_uid)
    return here.state.closed and has_begun and (pod is None or pod.node != move.spec.from_node)


def _broken(here: _Bundle, cause: Landing | None = None) -> Look:
    """The moves that are left are not made."""
    bundle = here.state
    why = cause or _cause(here)
    orders: list[Instruction] = []
    if bundle.keeps_room:
        orders.append(ReleaseRoom(bundle.key))
    if bundle.closed:
        orders.append(NodeDone(bundle.empties, reopen=True))
    still = (here.moves.get(key) for key in here.left)
    events = tuple(
        BundleBroken(move.key, why)
        for move in still
        if move is not None and move.stage is not MoveStage.CLOSED
    )
    return Look(None, tuple(orders), events)


def _cause(here: _Bundle) -> Landing:
    """Why the rest is not made, from the record of the move that was not."""
    for key in here.left:
        move = here.moves.get(key)
        if move is None or move.stage is not MoveStage.CLOSED:
            continue
        if move.reason == REJECTED:
            return not_all(f"record {key} of its bundle was rejected")
        if move.reason == NOT_REVALIDATED:
            return NOT_JUDGED
        if not here.state.due:
            is_gone = move.reason == GONE.reason
            return not_all(f"the pod of record {key} is gone already") if is_gone else NOT_PROPOSED
    return NOT_MADE if here.state.due else NOT_PROPOSED


# -- proposals -------------------------------------------------------------------------------------------


def _proposed(here: _Bundle) -> Look:
    bundle, moves = here.state, [here.moves.get(key) for key in here.state.members]
    known = [move for move in moves if move is not None]
    if any(move.stage is MoveStage.OPENING for move in known):
        return Look(bundle)
    waiting = [move for move in known if move.stage is MoveStage.PROPOSED]
    if not waiting:
        return Look(None)
    gone = next((move for move in waiting if here.around.pod(move.pod_uid) is None), None)
    if len(waiting) == len(moves) and gone is not None:
        return Look(bundle, events=(PodGone(gone.key),))
    if len(waiting) != bundle.size:
        return _broken(here)
    if not all(move.approved for move in waiting):
        return Look(replace(bundle, held=False))
    if here.around.held_up(bundle.policy) or any(here.in_flight(move.workload) for move in waiting):
        return Look(replace(bundle, held=True))
    return _carried_out(here, waiting)


def _carried_out(here: _Bundle, waiting: Sequence[MoveState]) -> Look:
    """All are approved: from now on they are made like those of a run."""
    found = here.around.proposed([move.spec for move in waiting])
    if found is None:
        return _broken(here, FOR_NO_POD)
    pairs = sorted(zip(waiting, found, strict=True), key=lambda pair: pair[1].waits)
    first = pairs[0][1]
    due = replace(
        here.state,
        due=True,
        held=False,
        members=tuple(state.key for state, _ in pairs),
        empties=first.source if here.around.empties(first) else "",
        beneficiaries=beneficiaries_of(first),
    )
    return Look(due, events=tuple(TurnReached(state.key, move) for state, move in pairs))


def beneficiaries_of(move: Move) -> tuple[tuple[str, str], ...]:
    """For whom a move makes room: uid of the pod, and its node."""
    return (
        () if move.beneficiary is None else tuple((each.pod.uid, each.node) for each in move.beneficiary.all)
    )
