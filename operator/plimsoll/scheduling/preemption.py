"""Makes room for a nominated pod: ends lower-priority nominations and removes victims.

A victim that waits on Permit or in PreBind is cancelled in memory; nothing has to be deleted. The others get
an event and are deleted: all but the last concurrently, then the last, so that the preemptor is not tried
again before all victims are terminating. The preemptor counts as nominated before anything is sent, and stays
in flight until everything is. If the policy has ``preemption.viaEviction``, the evictor evicts the victims
with records instead.

Source: kube-scheduler v1.36, ``framework/preemption/executor.go``.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plimsoll.engine.profile import Profile
from plimsoll.framework import Nomination, PodInfo
from plimsoll.model.names import PolicyName
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import Preemptor, VictimEvictor, pod_reference
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.leaving_victims import LeavingVictims

#: Maximum number of concurrent deletions of one pod's victims.
MOST_DELETIONS = 16

#: Cancels a pod that waits on Permit or in PreBind (by uid, for a plugin, for a reason), if possible.
CallOff = Callable[[str, str, str], bool]


@dataclass(eq=False)
class Preemption:
    """Carries out nominations; without ``evictions`` no victim is evicted where a policy wants that.

    Attributes:
        leaving: Follows terminating victims.
    """

    _preemptor: Preemptor
    _recorder: EventRecorder
    _observer: Observer
    _call_off: CallOff
    leaving: LeavingVictims
    _evictions: VictimEvictor | None = None

    async def make_room(
        self, pod: PodInfo, nomination: Nomination, profile: Profile, is_wanted: Callable[[], bool]
    ) -> bool:
        """Remove a pod's victims while it still needs the room; returns whether all are terminating."""
        node = nomination.node or ""
        if nomination.outranked:
            await asyncio.gather(
                *(self._preemptor.clear_nomination(outranked.pod) for outranked in nomination.outranked)
            )
        self._observer.preempted(len(nomination.victims))
        leaving = [victim.key for victim in nomination.victims]
        facts = {"pod": pod.key, "node": node, "victims": leaving}
        self._observer.placement_told(pod.uid, "room is made", facts)
        victims = [victim for victim in nomination.victims if not victim.is_terminating]
        placed = [victim for victim in victims if not self._is_called_off(victim, pod, node)]
        if not profile.via_eviction:
            return await self._delete_all(placed, pod, node)
        if self._evictions is None:
            return not placed

        def told(victim: PodInfo, record: str) -> None:
            self._tell(victim, pod, f"Preempted by pod {pod.uid} on node {node} (record {record})")

        return await self._evictions.evict(placed, pod, PolicyName(profile.policy), is_wanted, told)

    def _is_called_off(self, victim: PodInfo, pod: PodInfo, node: str) -> bool:
        if not self._call_off(victim.uid, "", "preempted"):
            return False
        self._tell(victim, pod, f"Preempted by pod {pod.uid} on node {node} (in kube-scheduler memory).")
        return True

    async def _delete_all(self, victims: Sequence[PodInfo], pod: PodInfo, node: str) -> bool:
        if not victims:
            return True
        *others, last = victims
        if others:
            slots = asyncio.Semaphore(MOST_DELETIONS)

            async def one(victim: PodInfo) -> bool:
                async with slots:
                    return await self._delete(victim, pod, node)

            if not all(await asyncio.gather(*map(one, others))):
                return False
        return await self._delete(last, pod, node)

    async def _delete(self, victim: PodInfo, pod: PodInfo, node: str) -> bool:
        name = pod.pod.spec.scheduler_name
        try:
            answer = await self._preemptor.preempt(victim.pod, name)
        except Exception as exc:  # noqa: BLE001 - whatever broke, the pod is tried again
            answer = WriteResult(WriteOutcome.UNKNOWN, repr(exc))
        if answer.is_done:
            self._tell(victim, pod, f"Preempted by pod {pod.uid} on node {node}")
        elif answer.verdict not in (WriteOutcome.GONE, WriteOutcome.CONFLICT):
            if answer.is_failure:
                self._observer.failed(f"preempting {victim.key}", answer.message)
            return False
        return True

    def _tell(self, victim: PodInfo, pod: PodInfo, text: str) -> None:
        self._recorder.record(
            EventNote(
                pod_reference(victim.pod),
                "Preempted",
                "Preempting",
                text,
                reporter=pod.pod.spec.scheduler_name,
                related=pod_reference(pod.pod),
            )
        )
