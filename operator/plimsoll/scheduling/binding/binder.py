"""Sends a binding until it is known what became of it; the pod's room stays taken meanwhile.

==========  ==========================================================================================
done        bound
busy        the same binding again, when the server says or after a pause; then the pod backs off
unknown     read back: bound after all, or to be sent again; as long as nobody tells, nobody gets the room
conflict    read back if an answer was lost before: it may be our own binding that was faster
others      the caller's: gone, refused
==========  ==========================================================================================

A lost answer leaves two mistakes open: to forget a pod that is bound gives its room away twice, to count one
that is not wastes it. The server's word decides between them, however long it takes to come.
"""

from dataclasses import replace

from plimsoll.framework import Pod
from plimsoll.ports.ports import Answer, Binder, Clock, Verdict

#: Seconds before a binding is sent again, and at most between two looks at a pod whose answer was lost.
PAUSES_S, LONGEST_LOOK_S = (0.2, 0.5, 1.0, 2.0), 5.0


class CertainBinder:
    """Binds through another binder; no answer of it leaves open whether the pod is bound."""

    def __init__(self, binder: Binder, clock: Clock) -> None:
        self._binder = binder
        self._clock = clock

    async def bind(self, pod: Pod, node: str) -> Answer:
        """POST the binding; CONFLICT when the pod is on another node by now."""
        was_lost = False
        answer = await self._binder.bind(pod, node)
        for pause_s in PAUSES_S:
            was_lost |= answer.verdict is Verdict.UNKNOWN
            if was_lost and answer.verdict in (Verdict.UNKNOWN, Verdict.CONFLICT):
                known = await self._settled(pod, node)
                if known is not None:
                    return known
            elif answer.verdict is not Verdict.BUSY:
                return answer
            await self._clock.sleep(max(pause_s, answer.retry_after_s))
            answer = await self._binder.bind(pod, node)
        if answer.verdict is Verdict.UNKNOWN or (was_lost and answer.verdict is Verdict.CONFLICT):
            return await self._settled(pod, node) or answer
        return answer

    async def _settled(self, pod: Pod, node: str) -> Answer | None:
        """How the pod stands at the server; None when it has no node."""
        pause_s = PAUSES_S[0]
        while True:
            answer, there = await self._binder.node_of(pod)
            if answer.is_done:
                if there == node:
                    return answer
                return Answer(Verdict.CONFLICT, f"the pod is on {there}") if there else None
            if answer.verdict is Verdict.GONE:
                return answer
            if answer.verdict is Verdict.REFUSED:
                return replace(answer, verdict=Verdict.UNKNOWN)  # nobody will ever tell
            await self._clock.sleep(max(pause_s, answer.retry_after_s))
            pause_s = min(2 * pause_s, LONGEST_LOOK_S)
