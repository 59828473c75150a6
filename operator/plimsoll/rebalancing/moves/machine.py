"""The state machine of moves: turns events into instructions, without I/O, clock or randomness.

::

                   ┌─(approved)─┐                               ┌▶ Evicting ───▶ Replacing, Leaving ┐
    plan ─▶ Opening ─▶ Proposed  ▼                              │                                   │
      └────────────────────▶ Waiting ─▶ Checking ─▶ Committing ─┤                                   ├▶ Closed
                                └▶ Opening ─┘                   └▶ Surging ──┬──────────────────────┤
                                                                             └▶ Reverting ──────────┘

Victims of preemption go through Leaving. docs/reference/moves.md says what follows from every event in every
stage. The transitions are in :mod:`~plimsoll.rebalancing.moves.preparation`,
:mod:`~plimsoll.rebalancing.moves.eviction` and the tables of the optional packages. After each event, the
bundles that it may concern are reviewed (:mod:`~plimsoll.rebalancing.moves.bundles`).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.names import BundleKey, PodUid, PolicyName, RecordKey
from plimsoll.ports.writes import WriteOutcome
from plimsoll.rebalancing.moves import bundles, events, eviction, preparation
from plimsoll.rebalancing.moves.instructions import Instruction
from plimsoll.rebalancing.moves.outcomes import is_in_flight
from plimsoll.rebalancing.moves.state import (
    BEFORE_LEAVING,
    BundleState,
    EvictionMethod,
    MoveStage,
    MoveState,
    Surroundings,
)
from plimsoll.rebalancing.moves.transition import LATE, Begin, MoveTable, Step, Transition

#: Number of runs whose moves are counted.
_RUNS = 1_000

#: Number of events per move that are kept for the story of an invalid one.
_STORY = 30


class InvalidTransition(Exception):
    """An event that is invalid in a stage; ``story`` has the move's earlier events."""

    def __init__(self, state: MoveState, event: events.Event, story: Sequence[str]) -> None:
        super().__init__(state, event, story)
        self.state = state
        self.event = event
        self.story = tuple(story)

    def __str__(self) -> str:
        came = type(self.event).__name__
        return f"{came} cannot happen to {self.state.key} in {self.state.stage.name}: {' '.join(self.story)}"


class MoveMachine:
    """Holds the states of all moves and bundles.

    Args:
        around: Reads the present cluster and policies.
        tables: Transitions of the optional ways of moving pods.

    Raises:
        ValueError: Two tables decide the same cell.
    """

    def __init__(self, around: Surroundings, tables: Iterable[MoveTable] = ()) -> None:
        self._around = around
        self._transitions: dict[tuple[MoveStage, type], Transition] = {}
        self._begins: dict[EvictionMethod, Begin] = {}
        for table in (LATE, preparation.TABLE, eviction.TABLE, *tables):
            twice = self._transitions.keys() & table.transitions.keys()
            if twice or self._begins.keys() & table.begins.keys():
                raise ValueError(f"two tables decide the same: {sorted(map(str, twice))}")
            self._transitions.update(table.transitions)
            self._begins.update(table.begins)
        self._moves: dict[RecordKey, MoveState] = {}
        self._open: dict[RecordKey, MoveState] = {}
        self._of_pod: defaultdict[PodUid, set[RecordKey]] = defaultdict(set)  #: keys of open moves by pod uid
        self._flying: Counter[str] = Counter()  #: open moves that wait for their replacement, by workload key
        #: open moves, proposals apart, that empty their node, by node
        self._emptying: Counter[str] = Counter()
        #: by policy: pods that it moves or has moved, by the uids of what takes their places
        self._replaced: defaultdict[PolicyName, dict[str, PodUid]] = defaultdict(dict)
        self._next: dict[RecordKey, MoveState] = {}  #: open moves that are opened or checked, by key
        self._unrecorded: set[RecordKey] = set()  #: keys of open moves whose records were deleted
        self._bundles: dict[BundleKey, BundleState] = {}
        self._stories: dict[RecordKey, deque[str]] = {}
        self._made: Counter[str] = Counter()  #: number of moves made, by run

    # -- reads ---------------------------------------------------------------------------------------

    @property
    def moves(self) -> Mapping[RecordKey, MoveState]:
        """All moves by key, including ended ones that have records."""
        return MappingProxyType(self._moves)

    @property
    def open(self) -> Mapping[RecordKey, MoveState]:
        """The moves that have not ended; a live view."""
        return MappingProxyType(self._open)

    @property
    def bundles(self) -> Mapping[BundleKey, BundleState]:
        """The bundles that are not over, by key."""
        return MappingProxyType(self._bundles)

    def in_flight(self) -> dict[str, int]:
        """Number of moves that wait for their replacement, by workload uid."""
        return dict(self._flying)

    def emptied(self) -> frozenset[str]:
        """The nodes that bundles under way empty; proposals are not."""
        return frozenset(self._emptying)

    def replacements(self) -> frozenset[PodUid]:
        """Uids of the pods that are credited to open moves."""
        return frozenset(
            state.replacement.uid for state in self._open.values() if state.replacement is not None
        )

    def replaced(self, policy: PolicyName) -> dict[str, PodUid]:
        """Uids of the pods that a policy moves or has moved, by the uids of what takes their places."""
        return dict(self._replaced.get(policy, {}))

    def moving(self) -> frozenset[PodUid]:
        """Uids of the pods that open moves will take off their nodes, or have just asked to leave."""
        return frozenset(state.pod_uid for state in self._open.values() if state.stage in BEFORE_LEAVING)

    def of_pod(self, pod: PodUid) -> list[MoveState]:
        """The open moves of a pod, by uid."""
        return [self._open[key] for key in self._of_pod.get(pod, ())]

    def concerning(self, pod: PodUid) -> list[RecordKey]:
        """Keys of a pod's moves that are open or in a bundle that waits: it matters there that it is gone."""
        waiting = (key for each in self._bundles.values() if each.parked for key in each.members)
        ended = [key for key in waiting if key in self._moves and self._moves[key].pod_uid == pod]
        return [*self._of_pod.get(pod, ()), *(key for key in ended if key not in self._open)]

    def is_quiet(self, bundle: BundleKey) -> bool:
        """Whether a bundle is over, or its next move waits for another move of the workload."""
        state = self._bundles.get(bundle)
        return state is None or state.parked or not state.due

    def left(self, policy: str) -> int:
        """Number of a policy's moves that wait for their turn."""
        waiting = [state for state in self._open.values() if state.stage is MoveStage.WAITING]
        return sum(state.policy == policy for state in waiting)

    # -- events --------------------------------------------------------------------------------------

    def handle(self, event: events.Event, now: float) -> tuple[Instruction, ...]:
        """The instructions that follow from an event; ``now`` is in monotonic seconds.

        Raises:
            InvalidTransition: The event is invalid in its move's stage.
        """
        orders: list[Instruction] = []
        left = deque([event])
        touched: set[str] = set()
        while left:
            current = left.popleft()
            touched |= self._touched(current)
            for key in self._concerned(current):
                orders += self._step(key, current, now)
                if key in self._moves:
                    touched.add(self._moves[key].bundle)
            if not left:
                left += self._look(touched, orders, now)
        return tuple(orders)

    def _touched(self, event: events.Event) -> set[str]:
        """Keys of the bundles that an event concerns; updates these bundles."""
        known = self._bundles
        match event:
            case events.BundlePlanned(bundle):
                known.setdefault(bundle.key, bundle)
                return {bundle.key}
            case events.MovePlanned() | events.ProcessRestarted():
                key = bundles.bundle_of(event.spec, event.key)
                if key in known:
                    known[key] = replace(known[key], arrived=known[key].arrived | {event.key})
                return {key}
            case events.NodeClosed(key, succeeded) if key in known:
                known[key] = replace(known[key], closing=False, closed=succeeded, broken=not succeeded)
                return {key}
            case events.MoveEvent(key):
                return {self._moves[key].bundle} if key in self._moves else set()
            case _:
                return set(known)

    def _concerned(self, event: events.Event) -> Sequence[RecordKey]:
        """Keys of the moves that an event concerns."""
        match event:
            case events.MoveUnplanned(key) if key in self._moves:
                bundle = self._bundles.get(self._moves[key].bundle)
                return (key,) if bundle is None else bundle.members
            case events.MoveEvent(key):
                return (key,)
            case events.PolicyChanged(policy):
                return [key for key, state in self._open.items() if state.policy == policy]
            case events.StopPressed():
                return list(self._open)
            case _:
                return ()

    def _step(self, key: RecordKey, event: events.Event, now: float) -> list[Instruction]:
        """One transition of one move."""
        state = self._moves.get(key)
        if state is None:
            if not isinstance(event, events.MovePlanned | events.ProcessRestarted):
                return []  # its record is gone, and so is the move
            state = MoveState(key, MoveStage.NEW, event.spec, bundle=bundles.bundle_of(event.spec, key))
            self._stories[key] = deque(maxlen=_STORY)
        if isinstance(event, events.TimedOut) and event.timer not in state.timers:
            return []  # an outdated deadline
        self._stories[key].append(f"{state.stage.name}:{type(event).__name__}")
        step = Step(state, now, self._around, self._made[state.run], self._group_leaves(state))
        if isinstance(event, events.MoveEvent) and event.answers:
            step.become(awaits=state.awaits - {event.answers})
        if state.stage is MoveStage.COMMITTING and isinstance(event, events.RecordAnswered):
            eviction.committed(step, event, self._begins[state.way])
        elif (state.stage, type(event)) in self._transitions:
            self._transitions[state.stage, type(event)](step, event)
        else:
            raise InvalidTransition(state, event, self._stories[key])
        if step.state.begun and not state.begun:
            self._made[state.run] += 1
            if len(self._made) > _RUNS:
                del self._made[next(iter(self._made))]
        if state.recorded and _says_deleted(event):
            self._unrecorded.add(key)
        self._keep(step.state)
        return step.instructions

    def _group_leaves(self, state: MoveState) -> bool:
        """Whether other members of the move's group have left, or their evictions were sent."""
        bundle = self._bundles.get(state.bundle)
        if state.stage not in (MoveStage.READY, MoveStage.EVICTING) or bundle is None or not bundle.whole:
            return False
        others = (self._moves.get(key) for key in bundle.members if key != state.key)
        return any(each is not None and (each.begun or each.stage is MoveStage.EVICTING) for each in others)

    def _keep(self, state: MoveState) -> None:
        """Store a move's state; drop a move that has ended and has no record."""
        key = state.key
        has_ended = state.stage is MoveStage.CLOSED
        is_dropped = has_ended and (key in self._unrecorded or not state.recorded)
        self._replace(self._moves.get(key), None if is_dropped else state)
        self._count(self._open.get(key), None if has_ended else state)
        if is_dropped:
            self._unrecorded.discard(key)
            self._moves.pop(key, None)
            self._stories.pop(key, None)
        else:
            self._moves[key] = state
        if has_ended:
            self._open.pop(key, None)
            self._of_pod[state.pod_uid].discard(key)
            if not self._of_pod[state.pod_uid]:
                del self._of_pod[state.pod_uid]
        else:
            self._open[key] = state
            self._of_pod[state.pod_uid].add(key)

    def _replace(self, before: MoveState | None, after: MoveState | None) -> None:
        """Note what takes the place of a move's pod; nothing does any more for one that is dropped."""
        for state in (before, after):
            if state is None:
                continue
            found = self._replaced[state.policy]
            holders = [Holder(HolderKind.REPLACEMENT, state.key).uid]
            holders += [] if state.replacement is None else [state.replacement.uid]
            for uid in holders:
                if state is after:
                    found[uid] = state.pod_uid
                else:
                    found.pop(uid, None)
            if not found:
                del self._replaced[state.policy]

    def _count(self, before: MoveState | None, after: MoveState | None) -> None:
        """Count an open move that has changed: counts are read at each event, of however many moves."""
        if before is not None:
            self._next.pop(before.key, None)
        if after is not None and after.stage in (MoveStage.OPENING, MoveStage.CHECKING):
            self._next[after.key] = after
        for state, change in ((before, -1), (after, 1)):
            if state is None:
                continue
            if is_in_flight(state):
                _add(self._flying, state.workload, change)
            move = state.move
            if move is not None and state.stage is not MoveStage.PROPOSED and self._around.empties(move):
                _add(self._emptying, move.source, change)

    # -- bundles -------------------------------------------------------------------------------------

    def _look(self, touched: Iterable[str], orders: list[Instruction], now: float) -> list[events.Event]:
        """Review the bundles that were touched, and those that wait for other moves.

        One bundle's consequences are carried out before the next review: they may concern the same workload.
        """
        found = [key for key, bundle in self._bundles.items() if bundle.parked or key in touched]
        flights = self._about_to_fly()
        for key in found:
            view = bundles.BundleView(self._bundles[key], self._moves, self._around, flights, now)
            seen = bundles.look(view)
            if seen.bundle is None:
                del self._bundles[key]
            else:
                self._bundles[key] = seen.bundle
            orders += seen.instructions
            if seen.events:
                return list(seen.events)
        return []

    def _about_to_fly(self) -> Callable[[str], int]:
        """By workload key: moves that wait for their replacement, or soon will."""
        soon = Counter[str]()
        for state in self._next.values():
            bundle = self._bundles.get(state.bundle)
            soon[state.workload] += bundle is not None and bundle.due
        return lambda workload: self._flying[workload] + soon[workload]


def _add(counted: Counter[str], key: str, change: int) -> None:
    """Change a count; one that is 0 is not kept."""
    counted[key] += change
    if not counted[key]:
        del counted[key]


def _says_deleted(event: events.Event) -> bool:
    """Whether an event shows that the move's record is gone; the watch may never show the deletion."""
    match event:
        case events.RecordDeleted():
            return True
        case events.RecordAnswered(answer=answer):
            return answer.verdict is WriteOutcome.GONE
        case _:
            return False
