"""MoveHandlers carry out instructions about records, evictions, events and nodes, one call to a port each."""

from collections.abc import Mapping

from plimsoll.api.v1alpha1.eviction import Replacement
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.pods import PodEviction
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.execution.executor import Awaited, Immediate
from plimsoll.rebalancing.moves.events import (
    Event,
    EvictionAnswered,
    NodeClosed,
    RecordRefused,
    RecordWritten,
)
from plimsoll.rebalancing.moves.instructions import (
    CloseNode,
    CreateRecord,
    EmitEvent,
    Evict,
    NodeDone,
    WriteRecord,
)
from plimsoll.rebalancing.records.store import EvictionRecordStore


class MoveHandlers:
    """Carries out what every way of moving pods needs.

    Args:
        keeper: Writes records, and remembers what it wrote.
        evictor: Speaks to the Eviction API.
        recorder: Records events.
        closed: Closes nodes before they are emptied, and opens them again.
        clock: Time.

    Attributes:
        immediate: The handlers of instructions that need no answer from outside, by type.
        awaited: Those of the others.
    """

    def __init__(
        self,
        keeper: EvictionRecordStore,
        evictor: PodEviction,
        recorder: EventRecorder,
        closed: ClosedNodes,
        clock: Clock,
    ) -> None:
        self._keeper = keeper
        self._evictor = evictor
        self._recorder = recorder
        self._closed = closed
        self._clock = clock
        self.immediate: Mapping[type, Immediate] = {EmitEvent: self._emit}
        self.awaited: Mapping[type, Awaited] = {
            CreateRecord: self._create,
            WriteRecord: self._write,
            Evict: self._evict,
            CloseNode: self._close_node,
            NodeDone: self._node_done,
        }

    async def _create(self, order: CreateRecord) -> Event:
        if order.key in self._keeper.known:
            return RecordRefused(order.key, WriteResult(WriteOutcome.CONFLICT))
        answer = await self._keeper.create(
            order.key, order.spec, order.phase, order.reason, order.message, now=self._clock.now()
        )
        return _written(order, answer)

    async def _write(self, order: WriteRecord) -> Event:
        pod = order.replacement
        answer = await self._keeper.write(
            order.key,
            order.phase,
            reason=order.reason,
            message=order.message,
            blocked_by=order.blocked_by or None,
            replacement=Replacement(name=pod.name, uid=pod.uid, node=pod.node or None) if pod else None,
        )
        return _written(order, answer)

    async def _evict(self, order: Evict) -> Event:
        return EvictionAnswered(order.key, await self._evictor.evict(order.move.pod.pod))

    def _emit(self, order: EmitEvent) -> None:
        self._recorder.record(EventNote(order.reference, order.reason, order.action, order.message))

    async def _close_node(self, order: CloseNode) -> Event:
        succeeded = await self._closed.close(order.node)
        if not succeeded:
            self._closed.done([order.node])
        return NodeClosed(order.bundle, succeeded)

    async def _node_done(self, order: NodeDone) -> None:
        if order.reopen:
            await self._closed.reopen(order.node)
        self._closed.done([order.node])


def _written(order: CreateRecord | WriteRecord, answer: WriteResult) -> Event:
    if answer.is_done:
        return RecordWritten(order.key, order.phase)
    return RecordRefused(order.key, answer)
