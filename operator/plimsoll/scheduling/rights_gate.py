"""Holds pods back that may not be bound: no attempt is made, the pod's event says why, once.

They wait gated, and are tried as soon as a review finds that bindings are allowed.
"""

from plimsoll.access.rights import BIND, Access
from plimsoll.framework import SUCCESS, PodInfo, Status, unschedulable
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.conditions import Explain
from plimsoll.scheduling.queue.queue import SchedulingQueue

#: What the queue names as the plugin that gates such pods.
NAME = "NotAllowed"


class BindingGate:
    """The gate in front of the queue.

    Args:
        access: What is allowed.
        queue: Where held pods wait.
        explain: Says on a pod why it waits.
        clock: Time.
    """

    def __init__(self, access: Access, queue: SchedulingQueue, explain: Explain, clock: Clock) -> None:
        self._access = access
        self._queue = queue
        self._explain = explain
        self._clock = clock
        self._held: dict[str, str] = {}  #: what a pod was told, by uid
        access.on_change.append(self.reopen)

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

    def forget(self, uid: str) -> None:
        """The pod is gone, or has a node."""
        self._held.pop(uid, None)

    async def reopen(self) -> None:
        """Rights have changed: held pods are judged again."""
        self._queue.activate(list(self._held), self._clock.monotonic())
