"""Gates pods that may not be bound: no attempt is made, and an event on the pod reports why, once.

Gated pods are tried as soon as a review finds that bindings are allowed.
"""

from plimsoll.access.rights import BIND, Access
from plimsoll.cluster.watch_events import PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import SUCCESS, Pod, PodInfo, Status, unschedulable
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.conditions import Explain
from plimsoll.scheduling.queue.queue import SchedulingQueue

#: The name of this gate in the queue.
NAME = "NotAllowed"


class RightsGate:
    """Gates pods that may not be bound."""

    def __init__(self, access: Access, explain: Explain) -> None:
        self._access = access
        self._explain = explain
        self._held: dict[str, str] = {}  #: what was reported on a pod, by uid

    def gate(self, pod: PodInfo) -> Status:
        """Success for a pod that may be bound."""
        problem = self._access.denial(BIND, pod.namespace)
        if not problem:
            self._held.pop(pod.uid, None)
            return SUCCESS
        if self._held.get(pod.uid) != problem:
            self._held[pod.uid] = problem
            self._explain(pod.pod, "SchedulerError", problem)
        return unschedulable(problem).by(NAME)

    def release(self, pod: Pod) -> None:
        """Forget a pod that is no longer served."""
        self._held.pop(pod.uid, None)

    def observe(self, event: WatchEvent) -> None:
        """Forget a pod that was deleted, has ended or has a node."""
        match event:
            case PodDeleted(pod):
                self._held.pop(pod.uid, None)
            case PodUpdated(_, pod) if pod.node_name or pod.is_terminal:
                self._held.pop(pod.uid, None)

    async def run(self, queue: SchedulingQueue, clock: Clock) -> None:
        """Have gated pods judged again now, and whenever rights change; until cancelled.

        Pods may be gated before this begins, and the right may be granted in between.
        """
        while True:
            seen = self._access.changed.count
            queue.activate(list(self._held), clock.monotonic())
            await self._access.changed.wait(seen)
