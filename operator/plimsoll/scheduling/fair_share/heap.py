"""Orders waiting pods by fair queue: the queue that has received the least goes first.

Shares are fair among the pods of one scheduler name. Each scheduler name has one candidate; among these, the
lowest sort key goes first, as in a single heap.
"""

from collections.abc import Callable, Iterator
from typing import Any

from plimsoll.framework import PodInfo
from plimsoll.scheduling.queue.pod_heap import PodHeap
from plimsoll.scheduling.queue.queued_pod import QueuedPod

#: Scheduler name and queue: identifies one heap. ("", "") is the heap of all pods without queues.
HeapKey = tuple[str, str]


class FairHeap(PodHeap):
    """A heap of heaps; ``standing`` returns a queue's weighted usage, after those above it, for each pop."""

    def __init__(
        self, heap_of: Callable[[PodInfo], HeapKey], standing: Callable[[HeapKey], tuple[float, ...]]
    ) -> None:
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
        """Add a pod; a pod that is present gets the new key, and moves if its queue has changed."""
        uid, heap = queued.pod.uid, self._heap_of(queued.pod)
        if self._where.get(uid, heap) != heap:
            self.take(uid)
        self._where[uid] = heap
        self._heaps.setdefault(heap, PodHeap()).push(key, queued)

    def peek(self) -> tuple[Any, QueuedPod] | None:
        """The lowest key of all and its pod, which need not be the next to pop."""
        tops = [top for heap in self._heaps.values() if (top := heap.peek()) is not None]
        return min(tops, key=lambda top: top[0], default=None)

    def pop(self) -> QueuedPod | None:
        """Remove the next pod."""
        heads: dict[str, tuple[tuple[float, ...], Any, QueuedPod]] = {}
        for where, heap in self._heaps.items():
            top = heap.peek()
            if top is None:
                continue
            name = where[0]
            least = heads.get(name)
            standing = self._standing(where) if name else ()
            if least is None or (standing, top[0]) < least[:2]:
                heads[name] = (standing, *top)
        if not heads:
            return None
        _, _, queued = min(heads.values(), key=lambda head: head[1])
        return self.take(queued.pod.uid)

    def take(self, uid: str) -> QueuedPod | None:
        """Remove the pod with this uid."""
        where = self._where.pop(uid, None)
        if where is None:
            return None
        heap = self._heaps[where]
        taken = heap.take(uid)
        if not heap:
            del self._heaps[where]
        return taken

    def find(self, uid: str) -> QueuedPod | None:
        """The pod with this uid; it stays in the heap."""
        where = self._where.get(uid)
        return None if where is None else self._heaps[where].find(uid)
