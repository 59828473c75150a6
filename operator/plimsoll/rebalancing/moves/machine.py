"""MoveMachine turns events of moves into instructions: no I/O, no clock, no randomness.

::

                   ┌─(approved)─┐                               ┌▶ Evicting ───▶ Replacing, Leaving ┐
    plan ─▶ Opening ─▶ Proposed  ▼                              │                                   │
      └────────────────────▶ Waiting ─▶ Checking ─▶ Committing ─┼▶ Requesting ─▶ Replacing ─────────┼▶ Closed
                                └▶ Opening ─┘                   └▶ Surging ──┬──────────────────────┤
                                                                             └▶ Reverting ──────────┘

Victims of preemption take Leaving. The table of every event in every stage is in docs/adr/0024-two-wings.md,
section 3; the transitions are in :mod:`~plimsoll.rebalancing.moves.preparation`,
:mod:`~plimsoll.rebalancing.moves.eviction` and the tables of the optional packages. After each event the
bundles that it may concern are looked at (:mod:`~plimsoll.rebalancing.moves.bundles`).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from plimsoll.rebalancing.moves import bundles, eviction, late, outcomes, preparation
from plimsoll.rebalancing.moves.events import (
    BundlePlanned,
    Event,
    MoveEvent,
    MovePlanned,
    MoveUnplanned,
    NodeClosed,
    NodeNotClosed,
    PolicyChanged,
    ProcessRestarted,
    RecordDeleted,
    RecordWritten,
    StopPressed,
    TimedOut,
)
from plimsoll.rebalancing.moves.instructions import Instruction
from plimsoll.rebalancing.moves.state import BundleState, MoveStage, MoveState, Surroundings, Way
from plimsoll.rebalancing.moves.transition import ANSWERS, Begin, MoveTable, Step, Transition
from plimsoll.rebalancing.moves.validation import validated

#: Stages of a move whose replacement other moves of the workload wait for.
IN_FLIGHT = frozenset(
    {
        MoveStage.COMMITTING,
        MoveStage.EVICTING,
        MoveStage.REQUESTING,
        MoveStage.SURGING,
        MoveStage.REVERTING,
        MoveStage.REPLACING,
    }
)

K = TypeVar("K")
V = TypeVar("V")

#: Runs whose moves are counted.
_RUNS = 1_000

#: Events kept of each move for the story of one that cannot happen.
_STORY = 30


class InvalidTransition(Exception):
    """An event that cannot happen in a stage.

    Attributes:
        state: Of the move.
        event: That came.
        story: The events that the move has seen, oldest first.
    """

    def __init__(self, state: MoveState, event: Event, story: Sequence[str]) -> None:
        super().__init__(state, event, story)
        self.state = state
        self.event = event
        self.story = tuple(story)

    def __str__(self) -> str:
        came = type(self.event).__name__
        return f"{came} cannot happen to {self.state.key} in {self.state.stage.name}: {' '.join(self.story)}"


class MoveMachine:
    """The states of all moves and bundles.

    Args:
        around: The world at any moment.
        tables: What the optional ways of moving pods contribute.
        validates: Whether the invariants are checked after each event.
    """

    def __init__(
        self, around: Surroundings, tables: Iterable[MoveTable] = (), *, validates: bool = False
    ) -> None:
        self._around = around
        self._validates = validates
        self._transitions: dict[tuple[MoveStage, type], Transition] = {}
        self._begins: dict[Way, Begin] = {}
        for table in (late.TABLE, preparation.TABLE, eviction.TABLE, *tables):
            _add(self._transitions, table.transitions)
            _add(self._begins, table.begins)
        self._moves: dict[str, MoveState] = {}
        self._open: dict[str, MoveState] = {}
        self._of_pod: defaultdict[str, set[str]] = defaultdict(set)  #: keys of open moves by pod uid
        self._bundles: dict[str, BundleState] = {}
        self._stories: dict[str, deque[str]] = {}
        self._made: Counter[str] = Counter()  #: moves that were made, by run

    # -- reads ---------------------------------------------------------------------------------------

    @property
    def moves(self) -> Mapping[str, MoveState]:
        """All moves by key, also those that have ended and whose records are there."""
        return MappingProxyType(self._moves)

    @property
    def bundles(self) -> Mapping[str, BundleState]:
        """The bundles that are not over, by key."""
        return MappingProxyType(self._bundles)

    def in_flight(self) -> dict[str, int]:
        """Moves that wait for their replacement, by workload uid."""
        found: defaultdict[str, int] = defaultdict(int)
        for state in self._open.values():
            if _is_in_flight(state):
                found[state.workload] += 1
        return dict(found)

    def is_asked(self, pod: str) -> bool:
        """Whether a pod, by uid, was asked to leave by an EvictionRequest, and is still there."""
        return preparation.is_asked(self._of(pod))

    def of_pod(self, pod: str) -> tuple[MoveState, ...]:
        """The moves of a pod, by uid, that have not ended."""
        return tuple(self._of(pod))

    def is_quiet(self, bundle: str) -> bool:
        """Whether a bundle is over, or its next move waits for another one of the workload."""
        state = self._bundles.get(bundle)
        return state is None or state.parked or not state.due

    def left(self, policy: str) -> int:
        """How many moves of a policy wait for their turn."""
        return sum(
            state.stage is MoveStage.WAITING and state.policy == policy for state in self._open.values()
        )

    # -- events --------------------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> tuple[Instruction, ...]:
        """What is to be done about an event; ``now`` in seconds of the monotonic clock.

        Raises:
            InvalidTransition: The event cannot happen in the stage that its move is in.
        """
        orders: list[Instruction] = []
        events = deque([event])
        touched: set[str] = set()
        while events:
            current = events.popleft()
            touched |= self._note(current)
            for key in self._concerned(current):
                orders += self._step(key, current, now)
                if key in self._moves:
                    touched.add(self._moves[key].bundle)
            if not events:
                events += self._look(touched, orders)
        if self._validates:
            validated(self._moves, self._bundles)
        return tuple(orders)

    def _note(self, event: Event) -> set[str]:
        """Bring the bundles up to date; the keys of those that the event concerns."""
        known = self._bundles
        match event:
            case BundlePlanned():
                known.setdefault(
                    event.bundle,
                    BundleState(
                        event.bundle,
                        event.policy,
                        event.members,
                        event.size,
                        proposed=event.proposed,
                        due=not event.proposed,
                        empties=event.empties,
                        beneficiaries=event.beneficiaries,
                    ),
                )
                return {event.bundle}
            case MovePlanned() | ProcessRestarted():
                bundle = bundles.bundle_of(event.spec, event.key)
                if bundle in known:
                    known[bundle] = replace(known[bundle], arrived=known[bundle].arrived | {event.key})
                return {bundle}
            case NodeClosed(bundle) if bundle in known:
                known[bundle] = replace(known[bundle], closing=False, closed=True)
                return {bundle}
            case NodeNotClosed(bundle) if bundle in known:
                known[bundle] = replace(known[bundle], closing=False, broken=True)
                return {bundle}
            case MoveEvent():
                state = self._moves.get(event.key)
                return {state.bundle} if state is not None else set()
            case _:
                return set(known)

    def _concerned(self, event: Event) -> Sequence[str]:
        """Keys of the moves that an event is about."""
        match event:
            case MoveUnplanned(key):
                state = self._moves.get(key)
                bundle = None if state is None else self._bundles.get(state.bundle)
                return (key,) if bundle is None else bundle.members
            case MoveEvent(key):
                return (key,)
            case PolicyChanged(policy):
                return [key for key, state in self._open.items() if state.policy == policy]
            case StopPressed():
                return list(self._open)
            case _:
                return ()

    def _step(self, key: str, event: Event, now: float) -> list[Instruction]:
        """One transition of one move."""
        state = self._moves.get(key)
        if state is None:
            if not isinstance(event, MovePlanned | ProcessRestarted):
                return []  # its record is gone, and with it the move
            state = MoveState(key, MoveStage.NEW, event.spec, bundle=bundles.bundle_of(event.spec, key))
            self._stories[key] = deque(maxlen=_STORY)
        if isinstance(event, TimedOut) and event.timer not in state.timers:
            return []  # a deadline that holds no longer
        self._stories[key].append(f"{state.stage.name}:{type(event).__name__}")
        peers = [each for each in self._of(state.pod_uid) if each.key != key]
        step = Step(state, now, self._around, peers, self._made[state.run])
        answer = ANSWERS.get(type(event))
        if answer is not None:
            step.become(awaits=state.awaits - {answer})
        if state.stage is MoveStage.COMMITTING and isinstance(event, RecordWritten):
            eviction.committed(step, event, self._begins[state.way])
        else:
            transition = self._transitions.get((state.stage, type(event)))
            if transition is None:
                raise InvalidTransition(state, event, self._stories[key])
            transition(step, event)
        if step.state.begun and not state.begun:
            self._made[state.run] += 1
            self._forget_runs()
        self._keep(step.state, is_dropped=isinstance(event, RecordDeleted))
        return step.instructions

    def _keep(self, state: MoveState, *, is_dropped: bool) -> None:
        """Remember a move; one that has ended and has no record is forgotten."""
        key = state.key
        has_ended = state.stage is MoveStage.CLOSED
        if has_ended and (is_dropped or not state.recorded):
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

    # -- bundles -------------------------------------------------------------------------------------

    def _look(self, touched: Iterable[str], orders: list[Instruction]) -> list[Event]:
        """See what follows for the bundles that were touched, and for those that wait for others.

        What follows for one is carried out before the next is looked at: it may be about the same workload.
        """
        waiting = {key for key, bundle in self._bundles.items() if bundle.parked or bundle.held}
        flights = self._about_to_fly()
        for key in [key for key in self._bundles if key in waiting or key in touched]:
            seen = bundles.look(
                self._bundles[key],
                self._moves,
                self._around,
                flights.__getitem__,
                self.is_asked,
            )
            if seen.bundle is None:
                del self._bundles[key]
            else:
                self._bundles[key] = seen.bundle
            orders += seen.instructions
            if seen.events:
                return list(seen.events)
        return []

    def _about_to_fly(self) -> Counter[str]:
        """Moves that wait for their replacement, or are going to, by workload uid."""
        found = Counter(self.in_flight())
        for state in self._open.values():
            if state.stage in (MoveStage.OPENING, MoveStage.CHECKING) and self._is_due(state):
                found[state.workload] += 1
        return found

    def _is_due(self, state: MoveState) -> bool:
        bundle = self._bundles.get(state.bundle)
        return bundle is not None and bundle.due

    def _forget_runs(self) -> None:
        """The oldest runs are counted no longer."""
        while len(self._made) > _RUNS:
            del self._made[next(iter(self._made))]

    def _of(self, pod: str) -> list[MoveState]:
        return [self._open[key] for key in self._of_pod.get(pod, ())]


def _add(known: dict[K, V], more: Mapping[K, V]) -> None:
    """Add the cells of a table.

    Raises:
        ValueError: Another table has one of them already.
    """
    twice = known.keys() & more.keys()
    if twice:
        raise ValueError(f"two tables decide the same: {sorted(map(str, twice))}")
    known.update(more)


def _is_in_flight(state: MoveState) -> bool:
    return state.stage in IN_FLIGHT and state.landing is None and state.spec.strategy != outcomes.PREEMPTION
