"""Binds pods to the nodes that this replica holds, and requests other bindings from the nodes' holders.

Only a node's holder binds to it, so it alone decides what still fits. A pod that was placed on another
replica's node stays assumed here while that replica is asked through a condition of the pod
(:mod:`plimsoll.scheduling.shared_nodes.request`). If the response is late, the request is withdrawn and the
pod tried again. If the pod was bound meanwhile, the API server refuses a second binding.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from plimsoll.cluster.node_shares import NodeShares, share_of
from plimsoll.framework import Pod
from plimsoll.model.kinds.watch_event import PodDeleted, PodUpdated, WatchEvent
from plimsoll.ports.clock import Clock
from plimsoll.ports.pods import PodBinding, PodRequests
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.shared_nodes.request import ANSWER_S, RequestReason, refusal
from plimsoll.timing.signal import Signal

#: Pods that wait for a response simultaneously; each of them has one of the hundred binding slots.
MOST_ASKED = 50


@dataclass(eq=False)
class SharedNodeBinder:
    """Binds what this replica may bind through another binder."""

    _binder: PodBinding
    _requests: PodRequests
    _shares: NodeShares
    _clock: Clock
    _asked: dict[str, asyncio.Future[WriteResult]] = field(default_factory=dict, init=False)
    _nodes: dict[str, str] = field(default_factory=dict, init=False)  #: requested nodes, by uid
    _under_way: Counter[int] = field(default_factory=Counter, init=False)
    _ended: Signal = field(default_factory=Signal, init=False)

    async def bind(self, pod: Pod, node: str, *, as_seen: bool = False) -> WriteResult:
        """POST the binding, or request it from the node's holder."""
        share = share_of(node)
        if share not in self._shares.held:
            return await self._ask(pod, node)
        self._under_way[share] += 1
        try:
            return await self._binder.bind(pod, node, as_seen=as_seen)
        finally:
            self._under_way[share] -= 1
            self._ended.notify()

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """POST the bindings that may be posted together; the others are requested individually."""
        own = [(pod, node) for pod, node in bindings if share_of(node) in self._shares.held]
        shares = [share_of(node) for _, node in own]
        self._under_way.update(shares)
        try:
            results = iter(await self._binder.bind_together(own) if own else ())
        finally:
            self._under_way.subtract(shares)
            self._ended.notify()
        sent = {pod.uid for pod, _ in own}
        return [next(results) if pod.uid in sent else None for pod, _ in bindings]

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """Read the pod's node from the server."""
        return await self._binder.node_of(pod)

    async def until_idle(self, share: int) -> None:
        """Wait until no binding to nodes of a share is under way."""
        await self._ended.until(lambda: not self._under_way[share])

    async def _ask(self, pod: Pod, node: str) -> WriteResult:
        if len(self._asked) >= MOST_ASKED or pod.uid in self._asked:
            return WriteResult(WriteOutcome.BUSY, "too many pods wait for other replicas to bind them")
        answer: asyncio.Future[WriteResult] = asyncio.get_running_loop().create_future()
        self._asked[pod.uid], self._nodes[pod.uid] = answer, node
        try:
            sent = await self._requests.request(pod, RequestReason.ASKED, node, is_open=True)
            if not sent.is_done and sent.verdict is not WriteOutcome.UNKNOWN:
                return sent
            waiting = asyncio.ensure_future(self._clock.sleep(ANSWER_S))
            try:
                await asyncio.wait((answer, waiting), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if answer.done():
                return answer.result()
            late = f"the replica that holds {node} did not answer in {ANSWER_S:.0f} s"
            await self._requests.request(pod, RequestReason.WITHDRAWN, late, is_open=False)
            return WriteResult(WriteOutcome.CONFLICT, late)
        finally:
            del self._asked[pod.uid], self._nodes[pod.uid]

    def observe(self, event: WatchEvent) -> None:
        """Handle a response in the pod's condition."""
        match event:
            case PodUpdated(_, pod) | PodDeleted(pod) if pod.uid in self._asked:
                answer = self._asked[pod.uid]
                said = self._said(pod, is_gone=isinstance(event, PodDeleted) or pod.is_terminal)
                if said is not None and not answer.done():
                    answer.set_result(said)

    def _said(self, pod: Pod, *, is_gone: bool) -> WriteResult | None:
        if pod.node_name == self._nodes[pod.uid]:
            return WriteResult(WriteOutcome.DONE)
        if pod.node_name:
            return WriteResult(WriteOutcome.CONFLICT, f"the pod is on {pod.node_name}")
        if is_gone:
            return WriteResult(WriteOutcome.GONE, f"pod {pod.key} is gone")
        why = refusal(pod, self._nodes[pod.uid])
        return WriteResult(WriteOutcome.CONFLICT, why) if why else None
