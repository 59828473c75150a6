"""Mirrors our EvictionRequests, reports their progress to moves, and clears up those left behind.

Each request has the name of its record, so a later process finds it; requests of others for the same pod are
never touched. The progress of requests is reported to the move machine. A request that no move waits for,
because the move has ended, its response was lost or its record was deleted, is withdrawn first and deleted
later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from plimsoll.cluster.cache import Cache
from plimsoll.model.kinds.watch_event import (
    ObjectAdded,
    ObjectUpdated,
    PodDeleted,
    PodUpdated,
    WatchEvent,
)
from plimsoll.model.kinds.workload import Namespace
from plimsoll.planning.scope import never_evict
from plimsoll.ports.clock import Clock
from plimsoll.ports.eviction_requests import EvictionRequest, EvictionRequester
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.eviction_requests.probe import EvictionRequestProbe
from plimsoll.rebalancing.eviction_requests.progress import Clearing, clearing
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.events import RequestProgressed, RequestReviewed
from plimsoll.rebalancing.moves.outcomes import cancelled
from plimsoll.rebalancing.moves.state import MoveStage, MoveState
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer

#: Seconds between two checks of requests that are left behind.
SWEEP_S = 15.0


@dataclass(eq=False)
class RequestWatch:
    """Keeps moves and EvictionRequests in step; requires a running ``run``."""

    executor: MoveExecutor  #: receives the progress of requests
    requester: EvictionRequester
    probe: EvictionRequestProbe  #: whether the server has the API
    cache: Cache
    timer: Timer
    clock: Clock
    observer: Observer
    _ours: dict[str, EvictionRequest] = field(default_factory=dict, init=False)  #: the mirrored ones, by key
    _pods: set[str] = field(default_factory=set, init=False)  #: uids of the pods of these requests
    #: when the present state of a request was first seen
    _since: dict[str, tuple[EvictionRequest, float]] = field(default_factory=dict, init=False)
    _left: Signal = field(default_factory=Signal, init=False)  #: requests may have been left behind

    async def run(self) -> None:
        """Mirror, report and clear up, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask(), name="eviction request probe")
            group.create_task(self._mirror(), name="eviction request watch")
            group.create_task(self._clear_up(), name="eviction request clearing")

    async def _ask(self) -> None:
        seen = 0
        while True:
            await self._contained("probing for EvictionRequests", self.probe.refresh)
            due = self.probe.next_due()
            if due is not None:
                self.timer.set("eviction request probe", due, self.probe.wanted.notify)
            seen = await self.probe.wanted.wait(seen)

    async def _mirror(self) -> None:
        while True:
            await self.probe.judged.until(lambda: self.probe.is_served)
            try:
                answer = await self.requester.watch(self._changed)
            except Exception as exc:  # noqa: BLE001 - whatever one request holds, the next watch comes
                answer = WriteResult(WriteOutcome.UNKNOWN, repr(exc))
            self._lost(answer)
            await self.probe.judged.wait()

    async def _clear_up(self) -> None:
        seen = 0
        while True:
            seen = await self._left.wait(seen)
            await self._contained("looking after EvictionRequests", self.look)

    async def _contained(self, what: str, action: Callable[[], Awaitable[None]]) -> None:
        try:
            await action()
        except Exception as exc:  # noqa: BLE001 - whatever one request holds, the next look comes
            self.observer.failed(what, repr(exc))

    # -- watch events --------------------------------------------------------------------------------

    def _changed(self, changes: Mapping[str, EvictionRequest | None]) -> None:
        """Handle created or changed requests; None for deleted ones."""
        for key, request in changes.items():
            if request is None:
                self._ours.pop(key, None)
                self._since.pop(key, None)
            else:
                self._ours[key] = request
            if self._waits(key):
                self.executor.post(RequestProgressed(key, request))
        self._pods = {each.pod_uid for each in self._ours.values()}
        self._left.notify()

    def _lost(self, answer: WriteResult) -> None:
        """Stop mirroring; the watch has failed."""
        if answer.verdict is not WriteOutcome.GONE:
            self.observer.failed("watching EvictionRequests", answer.message)
            return
        self.probe.withdrawn(answer.message)
        self._ours.clear()
        self._since.clear()
        problem = (self.probe.reason, self.probe.problem)
        for state in self._waiting():
            self.executor.post(RequestProgressed(state.key, None, problem))

    def observe(self, event: WatchEvent) -> None:
        """Handle a pod that has left, or changed annotations of pods and namespaces that forbid evictions."""
        match event:
            case PodUpdated(_, pod) | PodDeleted(pod) if pod.uid in self._pods:
                self._left.notify()
                for state in self.executor.machine.of_pod(pod.uid):
                    self._protect(state)
            case ObjectAdded(Namespace() as namespace) | ObjectUpdated(_, Namespace() as namespace):
                for state in self._waiting():
                    if state.spec.pod.namespace == namespace.metadata.name:
                        self._protect(state)
            case _:
                return

    def _protect(self, state: MoveState) -> None:
        if state.stage is not MoveStage.REQUESTING:
            return
        present = self.cache.cluster.pods.get(state.pod_uid)
        never = never_evict(present, self.cache.cluster.objects) if present is not None else None
        if never is not None:
            self.executor.post(
                RequestReviewed(state.key, None, call_off=cancelled(never.reason, never.message))
            )

    def _waits(self, key: str) -> bool:
        """Whether a move waits for this request, or for the response to its creation."""
        state = self.executor.machine.moves.get(key)
        return state is not None and state.stage is MoveStage.REQUESTING

    def _waiting(self) -> list[MoveState]:
        moves = self.executor.machine.moves.values()
        return [each for each in moves if each.stage is MoveStage.REQUESTING]

    # -- clearing up ---------------------------------------------------------------------------------

    async def look(self) -> None:
        """Clear up requests that no move waits for; repeats while there are any, as no event ends a move."""
        for request in [each for each in self._ours.values() if not self._waits(each.key)]:
            await self._clear(request)
        if self._ours:
            self.timer.set("eviction requests", self.clock.monotonic() + SWEEP_S, self._left.notify)

    async def _clear(self, request: EvictionRequest) -> None:
        now = self.clock.monotonic()
        known = self._since.get(request.key)
        if known is None or _end(known[0]) != _end(request):
            known = self._since[request.key] = (request, now)
        present = self.cache.cluster.pods.get(request.pod_uid)
        state = self.executor.machine.moves.get(request.key)
        match clearing(
            request,
            pod_gone=present is None,
            pod_leaves=present is not None and present.is_terminating,
            is_recorded=state is not None and state.stage is not MoveStage.CLOSED,
            for_s=now - known[1],
        ):
            case Clearing.WITHDRAW:
                self._report(request, await self.requester.withdraw(request))
            case Clearing.DELETE:
                self._report(request, await self.requester.drop(request))
            case Clearing.LATER:
                return

    def _report(self, request: EvictionRequest, answer: WriteResult) -> None:
        if answer.is_failure and answer.verdict is not WriteOutcome.GONE:
            self.observer.failed(f"clearing up EvictionRequest {request.key}", answer.message)


def _end(request: EvictionRequest) -> tuple[bool, bool]:
    """Whether a request is withdrawn, and whether it has ended."""
    return request.is_withdrawn, request.is_final
