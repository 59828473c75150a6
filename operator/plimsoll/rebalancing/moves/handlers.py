"""MoveHandlers carry out the instructions of the move machine at the ports, one call each."""

from collections.abc import Mapping, Sequence

from plimsoll.api.v1alpha1.eviction import Replacement
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.pods import PodEviction
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.moves.events import (
    Event,
    EvictionAnswered,
    NodeClosed,
    NodeNotClosed,
    RecordRefused,
    RecordWritten,
)
from plimsoll.rebalancing.moves.executor import Awaited, Immediate
from plimsoll.rebalancing.moves.instructions import (
    CloseNode,
    CreateRecord,
    EmitEvent,
    Evict,
    FollowReplacement,
    NodeDone,
    StopFollowing,
    WriteRecord,
)
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.records.store import EvictionRecordStore


class RecordHandlers:
    """Writes records.

    Args:
        keeper: Writes them, and remembers what it wrote.
        clock: Time.
    """

    def __init__(self, keeper: EvictionRecordStore, clock: Clock) -> None:
        self._keeper = keeper
        self._clock = clock
        self.awaited: Mapping[type, Awaited] = {CreateRecord: self._create, WriteRecord: self._write}

    async def _create(self, order: CreateRecord) -> Event:
        if order.key in self._keeper.known:
            return RecordRefused(order.key, order.phase, WriteResult(WriteOutcome.CONFLICT))
        answer = await self._keeper.create(
            order.key, order.spec, order.phase, order.reason, order.message, now=self._clock.now()
        )
        if answer.is_done:
            return RecordWritten(order.key, order.phase)
        return RecordRefused(order.key, order.phase, answer)

    async def _write(self, order: WriteRecord) -> Event:
        pod = order.replacement
        answer = await self._keeper.write(
            order.key,
            order.phase,
            reason=order.reason,
            message=order.message,
            blocked_by=order.blocked_by or None,
            replacement=None
            if pod is None
            else Replacement(name=pod.name, uid=pod.uid, node=pod.node or None),
        )
        if answer.is_done:
            return RecordWritten(order.key, order.phase)
        return RecordRefused(order.key, order.phase, answer)


class EvictionHandlers:
    """Evicts pods, and records events about it.

    Args:
        evictor: Speaks to the Eviction API.
        recorder: Records events.
    """

    def __init__(self, evictor: PodEviction, recorder: EventRecorder) -> None:
        self._evictor = evictor
        self._recorder = recorder
        self.immediate: Mapping[type, Immediate] = {EmitEvent: self._emit}
        self.awaited: Mapping[type, Awaited] = {Evict: self._evict}

    async def _evict(self, order: Evict) -> Event:
        try:
            return EvictionAnswered(order.key, await self._evictor.evict(order.move.pod.pod))
        except Exception as exc:  # noqa: BLE001 - whatever broke, the record is carried to its end
            answer = WriteResult(WriteOutcome.UNKNOWN, f"asking for the eviction broke: {exc!r}")
            return EvictionAnswered(order.key, answer, broke=True)

    def _emit(self, order: EmitEvent) -> Sequence[Event]:
        self._recorder.record(EventNote(order.reference, order.reason, order.action, order.message))
        return ()


class NodeHandlers:
    """Closes nodes before they are emptied, and opens them again."""

    def __init__(self, closed: ClosedNodes) -> None:
        self._closed = closed
        self.awaited: Mapping[type, Awaited] = {CloseNode: self._close, NodeDone: self._done}

    async def _close(self, order: CloseNode) -> Event:
        if await self._closed.close(order.node):
            return NodeClosed(order.bundle)
        self._closed.done([order.node])
        return NodeNotClosed(order.bundle)

    async def _done(self, order: NodeDone) -> None:
        if order.reopen:
            await self._closed.reopen(order.node)
        self._closed.done([order.node])


class SightingHandlers:
    """Has replacements looked out for.

    Args:
        sightings: Of each way of moving pods.
    """

    def __init__(self, sightings: Sequence[Sightings]) -> None:
        self._sightings = sightings
        self.immediate: Mapping[type, Immediate] = {
            FollowReplacement: self._follow,
            StopFollowing: self._stop,
        }

    def _follow(self, order: FollowReplacement) -> Sequence[Event]:
        return [event for each in self._sightings for event in each.follow(order)]

    def _stop(self, order: StopFollowing) -> Sequence[Event]:
        for each in self._sightings:
            each.stop(order)
        return ()
