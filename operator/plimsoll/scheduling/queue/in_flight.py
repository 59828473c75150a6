"""Records pods in flight and the events during their attempts.

An event between the snapshot and the rejection may be just what the pod needed. It is kept until the last pod
that was in flight at the time has ended its attempt, and replayed for each pod that fails.

Source: kube-scheduler v1.36, ``backend/queue/active_queue.go`` (inFlightPods, inFlightEvents).
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from plimsoll.framework import ClusterEvent
from plimsoll.scheduling.queue.queued_pod import QueuedPod


class Happened(Struct, frozen=True):
    """An event and the pods that it concerns.

    Attributes:
        change: The event; None: a plugin activated the pod.
        but: Uid of a pod that is not concerned, "" without one.
        only: Uid of the only pod concerned, "" for all.
        at_most: The highest priority of the concerned pods; None: any.
        is_ours: Whether one of our attempts caused it; then woken pods wait out their back-off.
    """

    change: ClusterEvent | None
    but: str = ""
    only: str = ""
    at_most: int | None = None
    is_ours: bool = False

    def concerns(self, queued: QueuedPod) -> bool:
        """Whether it may help that pod at all."""
        uid = queued.pod.uid
        if uid == self.but or (self.only and uid != self.only):
            return False
        return self.at_most is None or queued.pod.priority <= self.at_most


class InFlight:
    """Pods by uid, each with the index of the first event after its attempt began."""

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._begun: dict[str, int] = {}
        self._events: deque[Happened] = deque()
        self._first = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    @property
    def is_recording(self) -> bool:
        """Whether a pod in flight may need the events from now on."""
        return bool(self._begun)

    def find(self, uid: str) -> QueuedPod | None:
        """A pod in flight."""
        return self._pods.get(uid)

    def launch(self, queued: QueuedPod) -> None:
        """Begin an attempt."""
        uid = queued.pod.uid
        self._pods[uid] = queued
        self._begun.pop(uid, None)
        self._begun[uid] = self._first + len(self._events)

    def record(self, event: Happened) -> None:
        """Record an event for the pods in flight."""
        if self._begun:
            self._events.append(event)

    def settle(self, uid: str) -> None:
        """End recording for a pod whose decision is final; only writes are left."""
        if self._begun.pop(uid, None) is not None:
            self._prune()

    def land(self, uid: str) -> tuple[QueuedPod, list[Happened] | None] | None:
        """End an attempt: the pod, and the events that concern it; None if they were not recorded."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        begun = self._begun.pop(uid, None)
        if begun is None:
            return queued, None
        since = [each for each in islice(self._events, begun - self._first, None) if each.concerns(queued)]
        self._prune()
        return queued, since

    def _prune(self) -> None:
        """Drop events before the oldest attempt; attempts are in the order of their start."""
        oldest = next(iter(self._begun.values()), self._first + len(self._events))
        while self._first < oldest:
            self._events.popleft()
            self._first += 1
