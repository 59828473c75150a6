"""Orders waiting pods by queue: the head of the queue that has got the least goes first.

Fairness is within the pods of one scheduler name. Among the candidates of several names, one each, the
lowest sort key goes first, as it would in one heap.
"""

from collections.abc import Callable, Iterator
from typing import Any

from plimsoll.framework import PodInfo
from plimsoll.scheduling.queue.pod_heap import PodHeap
from plimsoll.scheduling.queue.queued_pod import QueuedPod

#: Scheduler name, and queue: the pods of one heap. ("", "") is that of everybody without queues.
HeapKey = tuple[str, str]


class FairHeap(PodHeap):
    """A heap of heaps; ``standing`` is what a queue has got, by its weight, whenever one is chosen."""

    def __init__(self, heap_of: Callable[[PodInfo], HeapKey], standing: Callable[[HeapKey], float]) -> None:
        super().__init__()
        self._heap_of = heap_of
        self._standing = standing
        self._heaps: dict[HeapKey, PodHeap] = {}
        self._where: dict[str, HeapKey] = {}

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, uid: str) -> bool:
        return uid in self._where

    def __iter__(self) -> Iterator[QueuedPod]:
        for heap in self._heaps.values():
            yield from heap

    def push(self, key: Any, queued: QueuedPod) -> None:
        """Put a pod in; one that is in already gets the new key, and moves if its queue is another one."""
        uid, heap = queued.pod.uid, self._heap_of(queued.pod)
        if self._where.get(uid, heap) != heap:
            self.take(uid)
        self._where[uid] = heap
        self._heaps.setdefault(heap, PodHeap()).push(key, queued)

    def peek(self) -> tuple[Any, QueuedPod] | None:
        """The lowest key of all and its pod, which need not be who goes first."""
        tops = [top for heap in self._heaps.values() if (top := heap.peek()) is not None]
        return min(tops, key=lambda top: top[0], default=None)

    def pop(self) -> QueuedPod | None:
        """Take who goes first."""
        heads: dict[str, tuple[float, Any, QueuedPod]] = {}
        for where, heap in self._heaps.items():
            top = heap.peek()
            if top is None:
                continue
            name = where[0]
            least = heads.get(name)
            standing = self._standing(where) if name else 0.0
            if least is None or (standing, top[0]) < least[:2]:
                heads[name] = (standing, *top)
        if not heads:
            return None
        _, _, queued = min(heads.values(), key=lambda head: head[1])
        return self.take(queued.pod.uid)

    def take(self, uid: str) -> QueuedPod | None:
        """Take this very pod."""
        where = self._where.pop(uid, None)
        if where is None:
            return None
        heap = self._heaps[where]
        taken = heap.take(uid)
        if not heap:
            del self._heaps[where]
        return taken

    def find(self, uid: str) -> QueuedPod | None:
        """This very pod, left where it is."""
        where = self._where.get(uid)
        return None if where is None else self._heaps[where].find(uid)
