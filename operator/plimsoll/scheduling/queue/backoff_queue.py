"""Holds pods in back-off until it is over (queued_pod says how long); rejected pods apart from failed ones.

While the active queue is empty, a rejected pod skips the rest of its back-off; one that hit an error does
not.

Source: kube-scheduler v1.36, ``backend/queue/backoff_queue.go`` (podBackoffQ, podErrorBackoffQ).
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from plimsoll.framework import PodInfo
from plimsoll.scheduling.queue.pod_heap import PodHeap
from plimsoll.scheduling.queue.queued_pod import QueuedPod

#: The sort key of the active queue; lower goes first.
SortKey = Callable[[PodInfo, float], Any]


class BackoffQueue:
    """Pods in back-off; ``sort_key`` orders those whose back-off ends in the same second."""

    def __init__(self, sort_key: SortKey) -> None:
        self._sort_key = sort_key
        self._pod_backoff = PodHeap()
        self._error_backoff = PodHeap()

    def __len__(self) -> int:
        return len(self._pod_backoff) + len(self._error_backoff)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pod_backoff or uid in self._error_backoff

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._pod_backoff
        yield from self._error_backoff

    def push(self, queued: QueuedPod, *, is_error: bool = False) -> None:
        """Add a pod in back-off; with ``is_error`` it waits to the end, even if the active queue is empty."""
        if is_error:
            self._error_backoff.push(queued.ready_second(), queued)
        else:
            key = self._sort_key(queued.pod, queued.timestamp)
            self._pod_backoff.push((queued.ready_second(), key), queued)

    def update(self, pod: PodInfo) -> bool:
        """Replace a pod's state; returns whether the pod is in back-off."""
        queued = self._error_backoff.find(pod.uid)
        if queued is not None:
            queued.pod = pod
            return True
        queued = self._pod_backoff.find(pod.uid)
        if queued is None:
            return False
        queued.pod = pod
        self.push(queued)
        return True

    def take(self, uid: str) -> QueuedPod | None:
        """Remove a pod."""
        return self._pod_backoff.take(uid) or self._error_backoff.take(uid)

    def pop_early(self) -> QueuedPod | None:
        """Remove the rejected pod whose back-off ends first, before that end."""
        return self._pod_backoff.pop()

    def pop_completed(self, now: float) -> Iterator[QueuedPod]:
        """Remove the pods whose back-off is over."""
        second = math.floor(now)
        for heap in (self._pod_backoff, self._error_backoff):
            while (top := heap.peek()) is not None and top[1].ready_second() < second:
                heap.take(top[1].pod.uid)
                yield top[1]

    def next_due(self) -> float | None:
        """When the next back-off ends; None without any."""
        tops = (self._pod_backoff.peek(), self._error_backoff.peek())
        return min((top[1].ready_second() + 1.0 for top in tops if top is not None), default=None)

    def keep_in(self, heap: Callable[[], PodHeap]) -> None:
        """Keep rejected pods in this heap from now on, in their present order."""
        before, self._pod_backoff = self._pod_backoff, heap()
        for queued in before:
            self.push(queued)
