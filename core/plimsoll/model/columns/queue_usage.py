"""Sums the requests of each queue's placed pods: the numerator of every share.

A queue is a label of pods (``plimsoll.dev/queue``) among those of one scheduler; "" is the queue of pods
without it.
"""

from collections.abc import Mapping

from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.names import PodUid

QUEUE_LABEL = "plimsoll.dev/queue"
"""Names the queue of a pod."""

QueueKey = tuple[str, str]
"""Scheduler name and queue."""

Amounts = dict[str, int]
"""Sums of requests: cpu in milli, the rest in units."""


def queue_key(pod: PodInfo) -> QueueKey:
    """The queue to whose share a pod counts."""
    return pod.pod.spec.scheduler_name, pod.labels.get(QUEUE_LABEL, "")


def added(sums: Amounts, requests: Mapping[str, int], sign: int = 1) -> None:
    """Add amounts; zeros are left out."""
    for name, amount in requests.items():
        total = sums.get(name, 0) + sign * amount
        if total:
            sums[name] = total
        else:
            sums.pop(name, None)


class QueueUsage(PodIndex):
    """Sums of requests by queue, of all placed pods and of terminating ones; a pod index."""

    def __init__(self, _cluster: object = None) -> None:
        self.requested: dict[QueueKey, Amounts] = {}
        self.leaving: dict[QueueKey, Amounts] = {}

    def of(self, key: QueueKey) -> Mapping[str, int]:
        """The requests of a queue's placed pods."""
        return self.requested.get(key, {})

    def staying(self, key: QueueKey) -> Amounts:
        """The same without terminating pods."""
        left = dict(self.of(key))
        added(left, self.leaving.get(key, {}), -1)
        return left

    def add(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Add a placed pod."""
        self._count(pod, 1)

    def remove(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Remove a pod."""
        self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        key = queue_key(pod)
        added(self.requested.setdefault(key, {}), pod.requests, sign)
        if pod.is_terminating:
            added(self.leaving.setdefault(key, {}), pod.requests, sign)

    def fork(self) -> "QueueUsage":
        """An independent copy."""
        twin = QueueUsage()
        twin.requested = {key: dict(sums) for key, sums in self.requested.items()}
        twin.leaving = {key: dict(sums) for key, sums in self.leaving.items()}
        return twin


class ReclaimTimes(PodIndex):
    """The present moment, and when waiting pods may reclaim room that still has to run; a pod index.

    Attributes:
        now: Seconds since the epoch, as the scheduling loop has set them; None if that is not known.
        until: The moment from which a pod that waits may find victims, by its uid, likewise.
    """

    def __init__(self, _cluster: object = None) -> None:
        self.now: float | None = None
        self.until: dict[PodUid, float] = {}

    def is_protected(self, uid: PodUid, started: float, seconds: int) -> bool:
        """Whether what started then still has to run so long; the waiting pod with that uid is noted."""
        if not seconds or self.now is None:
            return bool(seconds)
        end = min(started, self.now) + seconds
        if end > self.now:
            self.until[uid] = min(end, self.until.get(uid, end))
        return end > self.now

    def next(self) -> float | None:
        """The earliest noted moment; None for none."""
        return min(self.until.values(), default=None)

    def passed(self) -> list[PodUid]:
        """The noted pods whose moment has come, each once."""
        found = [uid for uid, end in self.until.items() if self.now is not None and end <= self.now]
        for uid in found:
            del self.until[uid]
        return found

    def add(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Forget a pod that has a node."""
        self.until.pop(pod.uid, None)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Leave everything as it is."""

    def fork(self) -> "ReclaimTimes":
        """The same object: what is tried on a fork waits in the cluster."""
        return self


class WaitingDemand(PodIndex):
    """Sums by queue of the requests of pods that wait for a node, in ``sums``; without placed pods."""

    def __init__(self, _cluster: object = None) -> None:
        self.sums: dict[QueueKey, Amounts] = {}
        self._waiting: dict[str, PodInfo] = {}
        self._placed: dict[str, PodInfo] = {}  #: assumed pods, which wait until the watch shows their binding

    def add(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Add a placed pod."""
        if waiting := self._waiting.pop(pod.uid, None):
            self._placed[pod.uid] = waiting
            self._count(waiting, -1)

    def remove(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Remove a pod."""
        if waiting := self._placed.pop(pod.uid, None):
            self._waiting[pod.uid] = waiting
            self._count(waiting, 1)

    def set(self, pod: PodInfo, *, is_placed: bool) -> None:
        """Add a waiting pod, or update its state."""
        self.drop(pod.uid)
        if is_placed:
            self._placed[pod.uid] = pod
        else:
            self._waiting[pod.uid] = pod
            self._count(pod, 1)

    def drop(self, uid: str) -> None:
        """Remove a pod that no longer waits."""
        self._placed.pop(uid, None)
        if waiting := self._waiting.pop(uid, None):
            self._count(waiting, -1)

    def clear(self) -> None:
        """Remove all waiting pods."""
        for held in (self.sums, self._waiting, self._placed):
            held.clear()

    def _count(self, pod: PodInfo, sign: int) -> None:
        added(self.sums.setdefault(queue_key(pod), {}), pod.requests, sign)

    def fork(self) -> "WaitingDemand":
        """A copy: pods that are placed on the fork wait there no longer."""
        twin = WaitingDemand()
        twin.sums = {key: dict(amounts) for key, amounts in self.sums.items()}
        twin._waiting, twin._placed = dict(self._waiting), dict(self._placed)
        return twin


def asks_for_room(pod: Pod) -> bool:
    """Whether a pod adds to the demand of its queue: it has no node, is not over, and is not gated."""
    return not (pod.node_name or pod.is_terminal or pod.is_terminating or pod.spec.scheduling_gates)
