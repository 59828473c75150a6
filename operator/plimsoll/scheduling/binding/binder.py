"""Sends a binding until it is known what became of it; the pod's room stays taken meanwhile.

==========  ==========================================================================================
done        bound
busy        the same binding again, when the server says or after a pause; then the pod backs off
unknown     the pod is read: bound, or as busy; its room stays taken until the server has answered
conflict    after a lost answer, of the server or of an extender that binds, the pod is read as well
others      the caller's: gone, refused
==========  ==========================================================================================

A lost answer leaves two mistakes open: to forget a pod that is bound gives its room away twice, to count one
that is not wastes it. The server's word decides between them, however long it takes to come.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plimsoll.framework import Pod
from plimsoll.ports.clock import Clock
from plimsoll.ports.pods import PodBinding
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.retry import RetryPolicy, retry

#: A binding that is known not to have happened.
BINDING_RETRIES = RetryPolicy((0.2, 0.5, 1.0, 2.0), repeats=frozenset({WriteOutcome.BUSY}))

#: Reading a pod after a lost answer: until the server says where it is. A right to read that was taken away
#: says nothing about the pod.
READING_RETRIES = RetryPolicy.doubling(
    0.2, 5.0, repeats=frozenset(WriteOutcome) - {WriteOutcome.DONE, WriteOutcome.GONE}
)


@dataclass(eq=False)
class ConfirmedBinder:
    """Binds through another binder; no answer of it leaves open whether the pod is bound."""

    _binder: PodBinding
    _clock: Clock

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """POST bindings together, once; whatever is not done is for ``bind`` to go on with."""
        return await self._binder.bind_together(bindings)

    async def bind(
        self,
        pod: Pod,
        node: str,
        first: WriteResult | None = None,
        *,
        is_open: bool = False,
        as_seen: bool = False,
    ) -> WriteResult:
        """POST the binding; CONFLICT when the pod is on another node by now.

        Also when it has changed and is to be ``as_seen``. ``first`` is the answer to the binding where it was
        posted already; ``is_open`` means that the pod may be on the node, by an extender whose answer was
        lost.
        """
        if first is None:
            first = await self._binder.bind(pod, node, as_seen=as_seen)
        if first.is_done:
            return first
        was_lost = is_open

        async def send() -> WriteResult:
            nonlocal was_lost, first
            answer = await self._binder.bind(pod, node, as_seen=as_seen) if first is None else first
            first = None
            was_lost |= answer.verdict is WriteOutcome.UNKNOWN
            if was_lost and answer.verdict in (WriteOutcome.UNKNOWN, WriteOutcome.CONFLICT):
                return await self._certain(pod, node, answer)
            return answer

        return await retry(send, BINDING_RETRIES, self._clock)

    async def is_on(self, pod: Pod, node: str) -> bool:
        """Whether the pod is on the node, by the server's word."""
        answer, there = await self._place(pod)
        return answer.is_done and there == node

    async def _certain(self, pod: Pod, node: str, lost: WriteResult) -> WriteResult:
        """What became of a binding without a usable answer; BUSY when the pod has no node."""
        answer, there = await self._place(pod)
        if not answer.is_done or there == node:
            return answer
        if there:
            return WriteResult(WriteOutcome.CONFLICT, f"the pod is on {there}")
        return replace(lost, verdict=WriteOutcome.BUSY)

    async def _place(self, pod: Pod) -> tuple[WriteResult, str]:
        """Where the pod is, "" for nowhere."""
        there = ""

        async def look() -> WriteResult:
            nonlocal there
            answer, there = await self._binder.node_of(pod)
            return answer

        return await retry(look, READING_RETRIES, self._clock), there
