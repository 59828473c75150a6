"""MoveHandlers carry out instructions about records, evictions, events and nodes, one call to a port each."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.api.v1alpha1.eviction import Replacement
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.pods import PodEviction
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.execution.executor import Awaited, Immediate
from plimsoll.rebalancing.moves import events, instructions
from plimsoll.rebalancing.records.store import EvictionRecordStore


@dataclass(frozen=True, slots=True)
class MoveHandlers:
    """Carries out what every way of moving pods needs."""

    keeper: EvictionRecordStore
    evictor: PodEviction
    recorder: EventRecorder
    closed: ClosedNodes
    clock: Clock

    @property
    def immediate(self) -> Mapping[type, Immediate]:
        """What carries out instructions that need no answer from outside."""
        return {instructions.EmitEvent: self._emit}

    @property
    def awaited(self) -> Mapping[type, Awaited]:
        """What carries out the others."""
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
        self.recorder.record(EventNote(order.reference, order.reason, order.action, order.message))

    async def _close_node(self, order: instructions.CloseNode) -> events.Event:
        succeeded = await self.closed.close(order.node)
        if not succeeded:
            self.closed.done([order.node])
        return events.NodeClosed(order.bundle, succeeded)

    async def _node_done(self, order: instructions.NodeDone) -> None:
        if order.reopen:
            await self.closed.reopen(order.node)
        self.closed.done([order.node])
