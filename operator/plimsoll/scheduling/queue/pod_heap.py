"""A heap of waiting pods by key, from which any pod can be taken out."""

import heapq
import itertools
from collections.abc import Iterator
from typing import Any

from plimsoll.scheduling.queue.queued_pod import QueuedPod

#: Stale entries of removed pods that may stay, in addition to one per pod, before the heap is rebuilt. A
#: standby never pops, and each pod that the leader binds was in its heap.
STALE_ENTRIES = 1024


class PodHeap:
    """A heap by lowest key; equal keys in the order of arrival."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, int, str]] = []
        self._live: dict[str, tuple[Any, int, QueuedPod]] = {}
        self._tickets = itertools.count()

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: str) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for _, _, queued in self._live.values())

    def push(self, key: Any, queued: QueuedPod) -> None:
        """Add a pod; a pod that is present gets the new key."""
        uid = queued.pod.uid
        known = self._live.get(uid)
        if known is not None and known[0] == key:
            return
        ticket = next(self._tickets)
        self._live[uid] = (key, ticket, queued)
        heapq.heappush(self._entries, (key, ticket, uid))
        if len(self._entries) > 2 * len(self._live) + STALE_ENTRIES:
            self._entries = [(key, ticket, uid) for uid, (key, ticket, _) in self._live.items()]
            heapq.heapify(self._entries)

    def peek(self) -> tuple[Any, QueuedPod] | None:
        """The lowest key and its pod."""
        while self._entries:
            key, ticket, uid = self._entries[0]
            live = self._live.get(uid)
            if live is not None and live[1] == ticket:
                return key, live[2]
            heapq.heappop(self._entries)
        return None

    def pop(self) -> QueuedPod | None:
        """Take the pod with the lowest key."""
        top = self.peek()
        if top is None:
            return None
        heapq.heappop(self._entries)
        del self._live[top[1].pod.uid]
        return top[1]

    def take(self, uid: str) -> QueuedPod | None:
        """Remove the pod with this uid."""
        live = self._live.pop(uid, None)
        return live[2] if live else None

    def ahead_of(self, uid: str) -> int:
        """How many pods are popped before this one; 0 for one that is not here."""
        live = self._live.get(uid)
        return 0 if live is None else sum(each[:2] < live[:2] for each in self._live.values())

    def find(self, uid: str) -> QueuedPod | None:
        """The pod with this uid; it stays in the heap."""
        live = self._live.get(uid)
        return live[2] if live else None
