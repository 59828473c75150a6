"""Carries out the instructions of the move machine, and returns the outcomes to it as events.

It decides nothing. Instructions that await nothing are carried out immediately and in order, so nothing
happens between the planner's judgement of a move and the reservation of its target. Instructions that await a
response are carried out in sequence for each record, by a task of their own.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from plimsoll.api.v1alpha1.eviction import Replacement
from plimsoll.cluster.ingestion import PlacedPodsSubscriber
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import Pod
from plimsoll.model.names import PodUid, RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import PodEviction
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.moves import events, instructions
from plimsoll.rebalancing.moves.machine import InvalidTransition, MoveMachine
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from plimsoll.toolkit.descheduling.disruption_signals import EVICTION_IN_PROGRESS

#: Carries out an instruction; returns the resulting events, if any.
Immediate = Callable[[Any], Sequence[events.Event] | None]

#: Carries out an instruction that awaits a response; returns its event, None without one.
Awaited = Callable[[Any], Awaitable[events.Event | None]]


class MoveExecutor(PlacedPodsSubscriber):
    """Connects the machine with the handlers of its instructions.

    Args:
        machine: The move machine.
        timer: Calls back at deadlines.
        clock: The clock.
        observer: Notified of instructions that raise, and of invalid events.
        sightings: Find the replacements of moves, for each way of moving pods.
        immediate: Handlers of instructions that await nothing, by type.
        awaited: Handlers of the others.

    Attributes:
        progress: Notified after each handled event.
    """

    def __init__(
        self,
        machine: MoveMachine,
        timer: Timer,
        clock: Clock,
        observer: Observer,
        *,
        sightings: Sequence[Sightings],
        immediate: Mapping[type, Immediate],
        awaited: Mapping[type, Awaited],
    ) -> None:
        self.machine = machine
        self.progress = Signal()
        self._timer = timer
        self._clock = clock
        self._observer = observer
        self._sightings = sightings
        self._immediate: Mapping[type, Immediate] = {
            instructions.RetryAt: self._retry_at,
            instructions.CancelTimer: lambda order: self._timer.cancel((order.key, order.timer)),
            instructions.FollowReplacement: self._follow,
            instructions.StopFollowing: self._stop_following,
            **immediate,
        }
        self._awaited = awaited
        self._events: deque[events.Event] = deque()
        self._is_handling = False
        self._waiting: dict[
            str, deque[instructions.Instruction]
        ] = {}  #: instructions that await, by record or node
        self._tasks: set[asyncio.Task[None]] = set()

    # -- events --------------------------------------------------------------------------------------

    def observe(self, event: WatchEvent) -> None:
        """Handle an event of a pod, or a ReplicaSet that was listed or added."""
        found = _departures(self.machine, event)
        for each in self._sightings:
            found += each.observe(event)
        if found:
            self.post(*found)

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Handle added pods that have nodes."""
        if self.machine.moves:  # one pod's consequences may concern the next
            for pod in pods:
                self.observe(PodAdded(pod))
            return
        found = [event for each in self._sightings for event in each.observe_placed(pods)]
        if found:
            self.post(*found)

    def post(self, *events: events.Event) -> None:
        """Handle events; returns when all instructions that await nothing are done."""
        self._events.extend(events)
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events:
                self._handle(self._events.popleft())
        finally:
            self._is_handling = False
        self.progress.notify()

    def is_idle(self, *keys: RecordKey) -> bool:
        """Whether no instruction awaits, for the given records or for all."""
        return not any(key in self._waiting for key in keys) if keys else not self._waiting

    async def close(self) -> None:
        """Cancel instructions that await."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- instructions --------------------------------------------------------------------------------

    def _handle(self, event: events.Event) -> None:
        try:
            orders = self.machine.handle(event, self._clock.monotonic())
        except InvalidTransition as exc:
            self._observer.failed("the move machine", str(exc))
            return
        for order in orders:
            immediate = self._immediate.get(type(order))
            if immediate is None:
                self._enqueue(order)
                continue
            try:
                self._events.extend(immediate(order) or ())
            except Exception as exc:  # noqa: BLE001 - one instruction's failure must not stop the others
                self._observer.failed(f"carrying out {type(order).__name__}", repr(exc))

    def _enqueue(self, order: instructions.Instruction) -> None:
        key = _subject(order)
        if key in self._waiting:
            self._waiting[key].append(order)
            return
        self._waiting[key] = deque([order])
        task = asyncio.create_task(self._carry_out(key), name=f"move {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, key: str) -> None:
        waiting = self._waiting[key]
        try:
            while waiting:
                order = waiting.popleft()
                try:
                    event = await self._awaited[type(order)](order)
                except Exception as exc:  # noqa: BLE001 - one instruction's failure must not stop the others
                    self._observer.failed(f"carrying out {type(order).__name__} for {key}", repr(exc))
                    event = _unanswered(order, repr(exc))
                if event is not None:
                    self.post(event)
        finally:
            del self._waiting[key]
        self.progress.notify()

    def _retry_at(self, order: instructions.RetryAt) -> None:
        event = events.TimedOut(order.key, order.timer)
        self._timer.set((order.key, order.timer), order.at, lambda: self.post(event))

    def _follow(self, order: instructions.FollowReplacement) -> list[events.Event]:
        return [event for each in self._sightings for event in each.follow(order)]

    def _stop_following(self, order: instructions.StopFollowing) -> None:
        for each in self._sightings:
            each.stop(order)


def _departures(machine: MoveMachine, event: WatchEvent) -> list[events.Event]:
    """Whether a moved pod is terminating or gone, or says that its eviction is in progress."""
    match event:
        case PodDeleted(pod):
            return [events.PodGone(key) for key in machine.concerning(PodUid(pod.uid))]
        case PodUpdated(_, pod) if pod.is_terminal:
            return [events.PodGone(key, deleted=False) for key in machine.concerning(PodUid(pod.uid))]
        case PodUpdated(_, pod) if pod.is_terminating:
            return [events.PodTerminating(state.key) for state in machine.of_pod(PodUid(pod.uid))]
        case PodUpdated(old, pod):
            is_marked = EVICTION_IN_PROGRESS in pod.metadata.annotations
            if is_marked is (EVICTION_IN_PROGRESS in old.metadata.annotations):
                return []
            return [events.EvictionMarked(state.key, is_marked) for state in machine.of_pod(PodUid(pod.uid))]
        case _:
            return []


def _subject(order: instructions.Instruction) -> str:
    """The subject of an instruction; instructions about one subject are carried out in order."""
    match order:
        case instructions.MoveInstruction(key):
            return key
        case instructions.CloseNode(_, node) | instructions.NodeDone(node):
            return f"node {node}"
        case _:
            return type(order).__name__


def _unanswered(order: instructions.Instruction, problem: str) -> events.Event | None:
    """The outcome of an instruction that raised, so that no move waits for it forever."""
    match order:
        case instructions.CreateRecord(key, phase=phase) | instructions.WriteRecord(key, phase=phase):
            return events.RecordAnswered(key, phase, WriteResult(WriteOutcome.UNKNOWN, problem))
        case instructions.Evict(key):
            answer = WriteResult(WriteOutcome.UNKNOWN, f"asking for the eviction broke: {problem}")
            return events.EvictionAnswered(key, answer, broke=True)
        case instructions.CloseNode(bundle):
            return events.NodeClosed(bundle, succeeded=False)
        case _:
            return None


class MoveHandlers(Struct, frozen=True):
    """Handles the instructions that every way of moving pods needs: records, evictions, events, nodes."""

    keeper: EvictionRecordStore
    evictor: PodEviction
    recorder: EventRecorder
    closed: ClosedNodes
    clock: Clock

    @property
    def immediate(self) -> Mapping[type, Immediate]:
        """The handlers of instructions that await nothing."""
        return {instructions.EmitEvent: self._emit}

    @property
    def awaited(self) -> Mapping[type, Awaited]:
        """The handlers of the others."""
        return {
            instructions.CreateRecord: self._create,
            instructions.WriteRecord: self._write,
            instructions.Evict: self._evict,
            instructions.CloseNode: self._close_node,
            instructions.NodeDone: self._node_done,
        }

    async def _create(self, order: instructions.CreateRecord) -> events.Event:
        if order.key in self.keeper.known:
            return events.RecordAnswered(order.key, order.phase, WriteResult(WriteOutcome.CONFLICT))
        answer = await self.keeper.create(
            order.key, order.spec, order.phase, order.reason, order.message, now=self.clock.now()
        )
        return events.RecordAnswered(order.key, order.phase, answer)

    async def _write(self, order: instructions.WriteRecord) -> events.Event:
        pod = order.replacement
        answer = await self.keeper.write(
            order.key,
            order.phase,
            reason=order.reason,
            message=order.message,
            blocked_by=order.blocked_by or None,
            replacement=Replacement(name=pod.name, uid=pod.uid, node=pod.node or None) if pod else None,
        )
        return events.RecordAnswered(order.key, order.phase, answer)

    async def _evict(self, order: instructions.Evict) -> events.Event:
        return events.EvictionAnswered(order.key, await self.evictor.evict(order.move.pod.pod))

    def _emit(self, order: instructions.EmitEvent) -> None:
        note = EventNote(order.reference, order.reason, order.action, order.message, order.is_warning)
        self.recorder.record(note)

    async def _close_node(self, order: instructions.CloseNode) -> events.Event:
        succeeded = False
        try:
            succeeded = await self.closed.close(order.node)
        finally:
            if not succeeded:
                self.closed.done([order.node])
        return events.NodeClosed(order.bundle, succeeded)

    async def _node_done(self, order: instructions.NodeDone) -> None:
        try:
            if order.reopen:
                await self.closed.reopen(order.node)
        finally:
            self.closed.done([order.node])
