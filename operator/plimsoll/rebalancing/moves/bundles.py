"""Decides which move of a bundle is next: the moves of a bundle are made in order, all or none.

A bundle is reviewed after each event that may concern it. The only state is in the bundle and its moves. When
a move is not made, or ends other than Settled while others wait for their turn, the rest is not made: its
room is released and its node is opened. Where moves make room for another move of the bundle, its target is
reserved before the first of them. The moves of a whole group are all announced, with their targets
reserved, before its first pod is evicted. A move that waits for another move of its workload blocks no other
bundle.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.names import BundleKey, NodeName, PodUid, RecordKey
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.moves.events import Event, MoveDropped, PodGone, RoomAwaited, TurnReached
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


def bundle_of(spec: EvictionSpec, record: RecordKey) -> BundleKey:
    """Key of a move's bundle: of its policy and name, or of the record of a single move."""
    return BundleKey(record if spec.bundle is None else f"{spec.policy}/{spec.bundle.name}")


def beneficiaries_of(move: Move) -> tuple[tuple[PodUid, NodeName], ...]:
    """The beneficiaries of a move: uid of the pod, and its node."""
    given = move.beneficiary
    return () if given is None else tuple((each.pod.uid, NodeName(each.node)) for each in given.all)


class BundleReview(Struct, frozen=True):
    """The result of a review of a bundle."""

    bundle: BundleState | None  #: its new state; None when it is over
    instructions: tuple[Instruction, ...] = ()
    events: tuple[Event, ...] = ()  #: the events for its moves


class BundleView(Struct, frozen=True):
    """A bundle, its moves, and the other inputs that decide which move is next."""

    state: BundleState
    moves: Mapping[
        RecordKey, MoveState
    ]  #: all moves by key; moves without a record are dropped when they end
    around: Surroundings
    in_flight: Callable[[str], int]  #: number of moves before their replacement, by workload key
    now: float  #: in monotonic seconds

    @property
    def left(self) -> list[RecordKey]:
        """Keys of the moves that are neither begun nor skipped."""
        begun = {key for key in self.state.members if key in self.moves and self.moves[key].begun}
        return [key for key in self.state.members if key not in begun | self.state.skipped]


def look(here: BundleView) -> BundleReview:
    """Decide which move of a bundle is next, or that the bundle is over."""
    if not here.state.arrived.issuperset(here.state.members):
        return BundleReview(here.state)
    return _made_in_order(here) if here.state.due else _proposed(here)


# -- making moves ----------------------------------------------------------------------------------------


def _made_in_order(here: BundleView) -> BundleReview:  # noqa: PLR0911 - one check after the other, in their order
    bundle, left = here.state, here.left
    if not left:
        return BundleReview(None, (NodeDone(bundle.empties, reopen=False),) if bundle.closed else ())
    move = _next(here, left)
    if move is None or move.stage is MoveStage.CLOSED:
        return _broken(here)
    if move.stage not in (MoveStage.WAITING, MoveStage.READY) or bundle.closing:
        return BundleReview(replace(bundle, parked=False))
    if bundle.broken or _has_failed(here):
        return _broken(here)
    if move.move is not None and _is_awaited(here, move.move):
        return BundleReview(replace(bundle, parked=True))
    bundle = replace(bundle, parked=False)
    if _is_needless(here, move):
        skipped = bundle.skipped | {move.key}
        return BundleReview(replace(bundle, skipped=skipped), events=(MoveDropped(move.key, GONE),))
    if not all(here.around.waits(uid) for uid, _ in bundle.beneficiaries):
        return _broken(here)
    orders: tuple[Instruction, ...] = ()
    if bundle.beneficiaries:
        leaving = frozenset(here.moves[key].pod_uid for key in bundle.members if key in here.moves)
        orders = (ReserveRoom(bundle.key, bundle.beneficiaries, leaving),)
    if bundle.empties and not bundle.closed:
        return BundleReview(replace(bundle, closing=True), (*orders, CloseNode(bundle.key, bundle.empties)))
    awaited = [RoomAwaited(key) for key in _await_room(here) if key != move.key]
    return BundleReview(bundle, orders, (*awaited, TurnReached(move.key)))


def _await_room(here: BundleView) -> list[RecordKey]:
    """The moves whose targets other moves leave, and that have none reserved; a whole group has no such."""
    moves = [here.moves[key] for key in here.state.members if key in here.moves]
    left = {each.spec.from_node for each in moves if not here.state.whole}
    waiting = (each for each in moves if each.stage is MoveStage.WAITING and not each.holds)
    return [each.key for each in waiting if each.move is not None and each.move.target in left]


def _next(here: BundleView, left: Sequence[RecordKey]) -> MoveState | None:
    """The move that is made next, or is under way; None if a record is missing.

    Of a whole group, a move that is over while its pod stays ends the bundle, unless another one is being
    announced. Otherwise the first that is not announced is the next; once all are, the first of them.
    """
    moves = [here.moves.get(key) for key in left]
    if not here.state.whole:
        return moves[0]
    known = [move for move in moves if move is not None]
    announcing = next((move for move in known if move.stage is MoveStage.COMMITTING), None)
    if announcing is not None:
        return announcing
    if len(known) < len(moves) or any(move.stage is MoveStage.CLOSED for move in known):
        return None
    return next((move for move in known if move.stage is not MoveStage.READY), known[0])


def _is_awaited(here: BundleView, move: Move) -> bool:
    """Whether a move is under way that it waits for: of its workload, or of its bundle off its target.

    A group that leaves whole waits for none of its own: no member may run again before all have left.
    """
    if move.waits and here.in_flight(move.workload.key):
        return True
    members = (here.moves[key] for key in here.state.members if key in here.moves)
    leaving = (each for each in members if each.begun and each.spec.from_node == move.target)
    return not here.state.whole and any(
        each.stage is not MoveStage.CLOSED or _takes_room(here, each) for each in leaving
    )


def _takes_room(here: BundleView, move: MoveState) -> bool:
    """Whether the pod of a move is still there, such as while it terminates, and is not stuck."""
    pod = here.around.pod(move.pod_uid)
    return pod is not None and not pod.has_ended and here.now < move.leaves_until


def _has_failed(here: BundleView) -> bool:
    """Whether a move that was made has failed, or one that waits was cancelled."""
    left = here.left
    for key in here.state.members:
        move = here.moves.get(key)
        if move is None or key in here.state.skipped:
            if key in left:
                return True
        elif move.stage is MoveStage.CLOSED and (not move.begun or move.phase is not Phase.SETTLED):
            return True
    return False


def _is_needless(here: BundleView, move: MoveState) -> bool:
    """Whether the pod has left its node by itself."""
    has_begun = len(here.left) + len(here.state.skipped) < len(here.state.members)
    pod = here.around.pod(move.pod_uid)
    return here.state.closed and has_begun and (pod is None or pod.node != move.spec.from_node)


def _broken(here: BundleView, cause: Landing | None = None) -> BundleReview:
    """Drop the remaining moves."""
    bundle, why = here.state, cause or _cause(here)
    orders: list[Instruction] = []
    if bundle.beneficiaries:
        orders.append(ReleaseRoom(bundle.key))
    if bundle.closed:
        orders.append(NodeDone(bundle.empties, reopen=True))
    still = [here.moves[key] for key in here.left if key in here.moves]
    dropped = [MoveDropped(move.key, why) for move in still if move.stage is not MoveStage.CLOSED]
    return BundleReview(None, tuple(orders), tuple(dropped))


def _cause(here: BundleView) -> Landing:
    """Why the rest is not made, from the record of the failed move."""
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


def _proposed(here: BundleView) -> BundleReview:
    bundle = here.state
    known = [here.moves[key] for key in bundle.members if key in here.moves]
    if any(move.stage is MoveStage.OPENING for move in known):
        return BundleReview(bundle)
    waiting = [move for move in known if move.stage is MoveStage.PROPOSED]
    if not waiting:
        return BundleReview(None)
    gone = next((move for move in waiting if here.around.pod(move.pod_uid) is None), None)
    if len(waiting) == len(bundle.members) and gone is not None:
        return BundleReview(bundle, events=(PodGone(gone.key),))
    if len(waiting) != bundle.size:
        return _broken(here)
    if not all(move.approved for move in waiting):
        return BundleReview(replace(bundle, parked=False))
    if here.around.held_up(bundle.policy) or any(here.in_flight(move.workload) for move in waiting):
        return BundleReview(replace(bundle, parked=True))
    return _carried_out(here, waiting)


def _carried_out(here: BundleView, waiting: Sequence[MoveState]) -> BundleReview:
    """Make the moves like those of a run, as all are approved."""
    found = here.around.proposed([move.spec for move in waiting])
    if found is None:
        return _broken(here, FOR_NO_POD)
    pairs = sorted(zip(waiting, found, strict=True), key=lambda pair: pair[1].waits)
    first = pairs[0][1]
    due = replace(
        here.state,
        due=True,
        parked=False,
        members=tuple(state.key for state, _ in pairs),
        empties=first.source if here.around.empties(first) else "",
        beneficiaries=beneficiaries_of(first),
        whole=bool(first.whole),
    )
    return BundleReview(due, events=tuple(TurnReached(state.key, move) for state, move in pairs))
