"""Sends a binding until its outcome is known; the pod's room stays taken until then.

==========  ==========================================================================================
done        bound
busy        the same binding is sent again, after Retry-After or a pause; then the pod backs off
unknown     the pod is read: bound, or treated as busy; its room stays taken until the server responds
conflict    the pod is read as well: a proxy that sends a request twice returns the second response
others      returned to the caller: gone, refused
==========  ==========================================================================================

If a response was lost and no later binding was accepted, the lost one may still take effect: the pod is read
once more when that is over.

A lost response allows two mistakes: forgetting a pod that is bound gives its room away twice, and counting a
pod that is not bound wastes room. Only the server's state decides, however long the read takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from plimsoll.framework import Pod
from plimsoll.ports.clock import Clock
from plimsoll.ports.pod_writes import PodBinding
from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult
from plimsoll.timing.retry import RetryPolicy, retry

#: Retries of a binding that is known not to have happened.
BINDING_RETRIES = RetryPolicy((0.2, 0.5, 1.0, 2.0), repeats=frozenset({WriteOutcome.BUSY}))

#: Retries of reading a pod after a lost response, until the server returns its node. A denied read proves
#: nothing about the pod, so it is retried too.
READING_RETRIES = RetryPolicy.doubling(
    0.2, 5.0, repeats=frozenset(WriteOutcome) - {WriteOutcome.DONE, WriteOutcome.GONE}
)


#: Outcomes of a last binding that say nothing about those before it.
_OPEN = frozenset({WriteOutcome.BUSY, WriteOutcome.REFUSED})


@dataclass(eq=False)
class ConfirmedBinder:
    """Binds through another binder; each of its results says for certain whether the pod is bound."""

    _binder: PodBinding
    _clock: Clock

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """POST bindings together, once; ``bind`` completes those that are not done."""
        return await self._binder.bind_together(bindings)

    async def bind(
        self, pod: Pod, node: str, first: WriteResult | None = None, *, is_open: bool = False
    ) -> WriteResult:
        """POST the binding; CONFLICT when the pod is on another node by now.

        ``first`` is the response to a binding that was already posted. ``is_open`` means that an extender may
        have bound the pod and its response was lost.
        """
        if first is None:
            first = await self._binder.bind(pod, node)
        if first.is_done:
            return first
        lost_at = self._clock.monotonic() if is_open else None

        async def send() -> WriteResult:
            nonlocal lost_at, first
            answer = await self._binder.bind(pod, node) if first is None else first
            first = None
            if answer.verdict is WriteOutcome.UNKNOWN:
                lost_at = self._clock.monotonic()
            if answer.verdict not in (WriteOutcome.UNKNOWN, WriteOutcome.CONFLICT):
                return answer
            outcome = await self._certain(pod, node, answer)
            # Without a lost response, a pod that has no node is not bound, and has changed.
            return answer if lost_at is None and outcome.verdict is WriteOutcome.BUSY else outcome

        answer = await retry(send, BINDING_RETRIES, self._clock)
        if lost_at is None or answer.verdict not in _OPEN:
            return answer
        await self._clock.sleep(max(0.0, lost_at + LATE_EFFECT_S - self._clock.monotonic()))
        outcome = await self._certain(pod, node, answer)
        return answer if outcome.verdict is WriteOutcome.BUSY else outcome

    async def is_on(self, pod: Pod, node: str) -> bool:
        """Whether the pod is on the node, according to the server."""
        answer, there = await self._place(pod)
        return answer.is_done and there == node

    async def _certain(self, pod: Pod, node: str, lost: WriteResult) -> WriteResult:
        """The outcome of a binding without a usable response; BUSY when the pod has no node."""
        answer, there = await self._place(pod)
        if not answer.is_done or there == node:
            return answer
        if there:
            return WriteResult(WriteOutcome.CONFLICT, f"the pod is on {there}")
        return replace(lost, verdict=WriteOutcome.BUSY)

    async def _place(self, pod: Pod) -> tuple[WriteResult, str]:
        """The pod's node, "" without one."""
        there = ""

        async def look() -> WriteResult:
            nonlocal there
            answer, there = await self._binder.node_of(pod)
            return answer

        return await retry(look, READING_RETRIES, self._clock), there
