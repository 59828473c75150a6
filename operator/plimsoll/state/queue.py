"""Pods that wait for a node: active, in back-off, unschedulable, or gated.

::

    add ──▶ active ──pop──▶ in flight ──bound──▶ done
              ▲                │
              │ back-off over  │ failed
            back-off ◀─────────┤    an error, or something happened meanwhile
              ▲                ▼
              └──wake── unschedulable     nothing will change until something happens

Order: the profile's queue sort (priority, then age). Back-off doubles from 1 s to 10 s with each attempt
that ended unschedulable; an event that may help moves waiting pods, and after five minutes they are
tried anyway. An event between a pod's pop and its failure is not lost: the pod goes to back-off instead
of waiting for the next one.

No clock: every call says what time it is, in seconds that never go back.
Source: kube-scheduler v1.36, ``backend/queue/scheduling_queue.go``. Differs: any event wakes; the
queueing hints of each plugin come with the scheduling loop's own issue.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from plimsoll.framework import PodInfo

INITIAL_BACKOFF_S, MAX_BACKOFF_S = 1.0, 10.0

#: Unschedulable pods are tried again after this many seconds, whatever happened.
FLUSH_AFTER_S = 300.0

#: What orders the active queue: lower goes first.
SortKey = Callable[[PodInfo, float], Any]


@dataclass(slots=True)
class QueuedPod:
    """A waiting pod and its history.

    Attributes:
        pod: The latest state of it.
        timestamp: When it entered the queue, or its last attempt ended.
        first_seen: When it first entered the queue.
        attempts: How often it was popped.
        unschedulable_count: Attempts that some plugin rejected; never reset.
        error_count: Attempts in a row that ended with an error.
        rejected_by: Plugins that rejected the last attempt.
        gated_by: Why it may not enter the active queue, "" when it may.
    """

    pod: PodInfo
    timestamp: float
    first_seen: float
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    rejected_by: frozenset[str] = frozenset()
    gated_by: str = ""
    _serial: int = field(default=0, repr=False)

    def backoff_s(self) -> float:
        """Seconds to stay away from the active queue after the last attempt."""
        count = self.error_count or self.unschedulable_count
        return 0.0 if not count else min(INITIAL_BACKOFF_S * 2.0 ** min(count - 1, 10), MAX_BACKOFF_S)

    def ready_at(self) -> float:
        """When the back-off is over."""
        return self.timestamp + self.backoff_s()


class _Heap:
    """A heap of pods by key, from which any pod can be taken out."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, int, str]] = []
        self._live: dict[str, tuple[int, QueuedPod]] = {}
        self._tickets = itertools.count()

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: str) -> bool:
        return uid in self._live

    def push(self, key: Any, queued: QueuedPod) -> None:
        ticket = next(self._tickets)
        self._live[queued.pod.uid] = (ticket, queued)
        heapq.heappush(self._entries, (key, ticket, queued.pod.uid))

    def peek(self) -> tuple[Any, QueuedPod] | None:
        while self._entries:
            key, ticket, uid = self._entries[0]
            live = self._live.get(uid)
            if live is not None and live[0] == ticket:
                return key, live[1]
            heapq.heappop(self._entries)
        return None

    def pop(self) -> QueuedPod | None:
        top = self.peek()
        if top is None:
            return None
        heapq.heappop(self._entries)
        del self._live[top[1].pod.uid]
        return top[1]

    def take(self, uid: str) -> QueuedPod | None:
        live = self._live.pop(uid, None)
        return live[1] if live else None

    def find(self, uid: str) -> QueuedPod | None:
        live = self._live.get(uid)
        return live[1] if live else None

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for _, queued in self._live.values())


class SchedulingQueue:
    """The waiting pods of all profiles.

    Args:
        sort_key: The profile's queue sort.
    """

    def __init__(self, sort_key: SortKey) -> None:
        self._sort_key = sort_key
        self._active = _Heap()
        self._backoff = _Heap()
        self._unschedulable: dict[str, QueuedPod] = {}
        self._gated: dict[str, QueuedPod] = {}
        self._in_flight: dict[str, QueuedPod] = {}
        self._events = 0

    def resort(self) -> None:
        """The order has changed: sort what is active anew."""
        active, self._active = self._active, _Heap()
        for queued in active:
            self._active.push(self._sort_key(queued.pod, queued.timestamp), queued)

    def depths(self) -> dict[str, int]:
        """Pods by queue: active, backoff, unschedulable, gated."""
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable),
            "gated": len(self._gated),
        }

    def __contains__(self, uid: str) -> bool:
        return any(
            uid in place
            for place in (self._active, self._backoff, self._unschedulable, self._gated, self._in_flight)
        )

    def __iter__(self) -> Iterator[QueuedPod]:
        """Every pod that waits, in no particular order."""
        yield from self._active
        yield from self._backoff
        yield from self._unschedulable.values()
        yield from self._gated.values()
        yield from self._in_flight.values()

    # -- what the watch tells ------------------------------------------------------------------------

    def set(self, pod: PodInfo, now: float, gated_by: str = "") -> None:
        """A pod without a node was added or changed.

        A change of an unschedulable pod may help it, so it is tried again; of one in flight, its next
        attempt sees the new state. A change that no decision reads (such as our own condition) leaves the
        pod where it waits.
        """
        uid = pod.uid
        flying = self._in_flight.get(uid)
        if flying is not None:
            if flying.pod.template is not pod.template:
                flying._serial = -1  # noqa: SLF001 - its own bookkeeping
            flying.pod = pod
            return
        known = self._find(uid)
        if known is not None and known.pod.template is pod.template and known.gated_by == gated_by:
            known.pod = pod
            return
        queued = self.remove(uid) or QueuedPod(pod, now, now)
        queued.pod = pod
        queued.gated_by = gated_by
        if gated_by:
            self._gated[uid] = queued
        else:
            self._enter(queued, now)

    def _find(self, uid: str) -> QueuedPod | None:
        return (
            self._active.find(uid)
            or self._backoff.find(uid)
            or self._unschedulable.get(uid)
            or self._gated.get(uid)
        )

    def remove(self, uid: str) -> QueuedPod | None:
        """A pod is gone, or has a node: it waits no longer."""
        return (
            self._active.take(uid)
            or self._backoff.take(uid)
            or self._unschedulable.pop(uid, None)
            or self._gated.pop(uid, None)
            or self._in_flight.pop(uid, None)
        )

    def wake(self, now: float, but: str = "") -> int:
        """Something happened that may help: unschedulable pods, but one, are tried again; how many."""
        self._events += 1
        moved = [queued for uid, queued in self._unschedulable.items() if uid != but]
        self._unschedulable = {uid: queued for uid, queued in self._unschedulable.items() if uid == but}
        for queued in moved:
            self._enter(queued, now)
        return len(moved)

    # -- the loop ------------------------------------------------------------------------------------

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try, None when all must wait; the pod is in flight until reported."""
        self._flush(now)
        queued = self._active.pop()
        return None if queued is None else self._fly(queued)

    def take(self, uid: str) -> QueuedPod | None:
        """Pop this very pod wherever it waits, unless it is gated: it goes along with one just popped."""
        queued = self._active.take(uid) or self._backoff.take(uid) or self._unschedulable.pop(uid, None)
        return None if queued is None else self._fly(queued)

    def _fly(self, queued: QueuedPod) -> QueuedPod:
        queued.attempts += 1
        queued._serial = self._events  # noqa: SLF001 - its own bookkeeping
        self._in_flight[queued.pod.uid] = queued
        return queued

    def next_due(self) -> float | None:
        """When a pod comes out of back-off or is flushed; None when no pod waits for time to pass."""
        due = []
        top = self._backoff.peek()
        if top is not None:
            due.append(math.floor(top[0]) + 1.0)
        if self._unschedulable:
            due.append(min(queued.timestamp for queued in self._unschedulable.values()) + FLUSH_AFTER_S)
        return min(due) if due else None

    def bound(self, uid: str) -> None:
        """The attempt succeeded: the pod is no longer the queue's."""
        self._in_flight.pop(uid, None)

    def failed(self, uid: str, now: float, rejected_by: frozenset[str]) -> None:
        """The attempt failed; with no plugin that rejected it, it was an error.

        A pod that was removed meanwhile is not put back.
        """
        queued = self._in_flight.pop(uid, None)
        if queued is None:
            return
        queued.timestamp = now
        queued.rejected_by = rejected_by
        if rejected_by:
            queued.unschedulable_count += 1
            queued.error_count = 0
        else:
            queued.error_count += 1
        if rejected_by and queued._serial == self._events:  # noqa: SLF001 - its own bookkeeping
            self._unschedulable[uid] = queued
        else:
            self._enter(queued, now)

    # ------------------------------------------------------------------------------------------------

    def _enter(self, queued: QueuedPod, now: float) -> None:
        ready = queued.ready_at()
        if math.floor(ready) >= math.floor(now) and ready > queued.timestamp:
            self._backoff.push(ready, queued)
        else:
            self._active.push(self._sort_key(queued.pod, queued.timestamp), queued)

    def _flush(self, now: float) -> None:
        while (top := self._backoff.peek()) is not None and math.floor(top[0]) < math.floor(now):
            queued = self._backoff.pop()
            if queued is not None:
                self._active.push(self._sort_key(queued.pod, queued.timestamp), queued)
        overdue = [
            uid for uid, queued in self._unschedulable.items() if now - queued.timestamp > FLUSH_AFTER_S
        ]
        for uid in overdue:
            queued = self._unschedulable.pop(uid)
            self._enter(queued, now)

    def validate(self) -> None:
        """Check that every pod is in one place only.

        Raises:
            AssertionError: One is in two.
        """
        uids = [queued.pod.uid for queued in self]
        assert len(uids) == len(set(uids))
