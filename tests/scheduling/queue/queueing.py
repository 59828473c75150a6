"""A queue to test, with pods as it takes them, and changes as ingestion tells them."""

from typing import Any

from plimsoll.framework import ActionType, ClusterEvent, EventResource
from plimsoll.model.kinds.pod_info import PodInfo, Templates
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.testing.builders import a_node, a_pod

REJECTED = frozenset({"NodeResourcesFit"})
TEMPLATES = Templates()


def waiting(name: str = "pod", **options: Any) -> PodInfo:
    """A pod as the queue takes it."""
    return TEMPLATES.info(a_pod(name, **options))


def uid_of(name: str = "pod") -> str:
    """The uid that the builders give a pod."""
    return f"uid-default-{name}"


class Entries(Observer):
    """Remembers which queue was entered, and why."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def pod_queued(self, queue: str, event: str) -> None:
        self.seen.append((queue, event))


def a_queue(*pods: Any, now: Any = 0.0, observer: Any = None, **options: Any) -> Any:
    """A queue with the default order; no profile is known, so every event may help everybody."""
    queue = SchedulingQueue(lambda pod, since: (-pod.priority, since), observer, **options)
    for pod in pods:
        queue.add_or_update(pod, now)
    return queue


def popped(queue: SchedulingQueue, now: float) -> list[str]:
    """The names of everybody who may be tried now, in order."""
    names = []
    while (queued := queue.pop(now)) is not None:
        names.append(queued.pod.name)
    return names


def asleep(
    queue: SchedulingQueue,
    *names: str,
    now: float = 0.0,
    rejected_by: frozenset[str] = REJECTED,
    pending_on: frozenset[str] = frozenset(),
) -> None:
    """Try these pods, which must be in the queue, and have them rejected."""
    for _ in names:
        queue.pop(now)
    for name in names:
        queue.add_unschedulable_if_not_present(uid_of(name), now, rejected_by, pending_on)


def node_added(**options: Any) -> ClusterEvent:
    """A new node."""
    return ClusterEvent(EventResource.NODE, ActionType.ADD, None, a_node("n1", **options))


def pod_placed(name: str = "other", **options: Any) -> ClusterEvent:
    """A pod came to a node."""
    pod = TEMPLATES.info(a_pod(name, node="n1", **options))
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, None, pod)


def pod_gone(name: str = "other", **options: Any) -> ClusterEvent:
    """A pod left its node."""
    pod = TEMPLATES.info(a_pod(name, node="n1", **options))
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, pod, None)


class BusyQueue:
    """A queue in which somebody is always active: back-offs are not cut short."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self._fillers = 0

    def popped(self, now: float) -> list[str]:
        """The names of those who may be tried although others are active."""
        self._fillers += 1
        filler = f"filler-{self._fillers}"
        self.queue.add_or_update(waiting(filler, priority=-1000), now)
        names = []
        while (queued := self.queue.pop(now)).pod.name != filler:
            names.append(queued.pod.name)
        self.queue.done(queued.pod.uid)
        return names
