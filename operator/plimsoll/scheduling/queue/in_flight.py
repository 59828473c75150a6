"""Keeps pods in flight and the events during their attempts.

An event between the look at the cluster and the failure may be just what the pod needed. It is kept until
the last pod that was in flight then has landed, and replayed for each that fails.

Source: kube-scheduler v1.36, ``backend/queue/active_queue.go`` (inFlightPods, inFlightEvents).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from plimsoll.framework import ClusterEvent
from plimsoll.scheduling.queue.queued_pod import QueuedPod


@dataclass(frozen=True, slots=True)
class Happened:
    """An event and whom it concerns.

    Attributes:
        change: What happened; None: somebody wants the pod tried.
        but: Uid of a pod that it does not concern, "" without one.
        only: Uid of the only pod that it concerns, "" when it concerns all.
        at_most: The highest priority of the pods that it concerns; None: any.
        is_ours: Whether it is the end of an attempt of ours: whom it wakes sits out its back-off.
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
    """Pods by uid, each with the place in the record of events at which its attempt began."""

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
        """Whether somebody may want to know later what happens now."""
        return bool(self._begun)

    def find(self, uid: str) -> QueuedPod | None:
        """A pod in flight."""
        return self._pods.get(uid)

    def launch(self, queued: QueuedPod) -> None:
        """An attempt begins."""
        uid = queued.pod.uid
        self._pods[uid] = queued
        self._begun.pop(uid, None)
        self._begun[uid] = self._first + len(self._events)

    def record(self, event: Happened) -> None:
        """Keep an event for those in flight."""
        if self._begun:
            self._events.append(event)

    def settle(self, uid: str) -> None:
        """The decision stands, only writing is left: what happens from now on is not kept for the pod."""
        if self._begun.pop(uid, None) is not None:
            self._prune()

    def land(self, uid: str) -> tuple[QueuedPod, list[Happened] | None] | None:
        """The attempt ended: the pod, and what happened that concerns it; None: that was not kept."""
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
        """Drop what happened before the oldest attempt; attempts are kept in the order of their beginning."""
        oldest = next(iter(self._begun.values()), self._first + len(self._events))
        while self._first < oldest:
            self._events.popleft()
            self._first += 1
