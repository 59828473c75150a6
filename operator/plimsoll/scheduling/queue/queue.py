"""Queues pods that wait for a node: active, in back-off, unschedulable, or gated.

::

    add ──▶ active ──pop──▶ in flight ──bound──▶ done
     │        ▲  ▲             │
     │        │  │ over        │ failed
     │        │ back-off ◀─────┤    an error, or an event meanwhile that may help
     │        │      ▲         ▼
     │ opened └──────┴─ unschedulable     until an event that may help
     ▼        │
    gated ────┘

Order: the profile's queue sort (priority, then age). Back-off doubles from 1 s to 10 s with each attempt that
ended unschedulable; while the active queue is empty it is cut short. The plugins that rejected the pod have
registered the events that may help (:mod:`plimsoll.framework.queueing`); after five minutes the pod is tried
anyway. PreEnqueue plugins run whenever a pod is about to become active or to back off.

The queue has no clock: every call passes the time, in monotonic seconds.
Source: kube-scheduler v1.36, ``backend/queue/scheduling_queue.go``. Differs: a pod that is woken by a failed
attempt of ours waits until its back-off is over; otherwise two pods that are always rejected would wake each
other without a pause. An update of a waiting pod that no decision reads is not an event.
Longer than 400 lines because each method keeps the same five sets of pods in step.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Protocol

from plimsoll.cluster.changes import waiting_changes
from plimsoll.framework import SUCCESS, ClusterEvent, ClusterObjects, EventResource, PodInfo, Status
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.queue.backoff_queue import BackoffQueue, SortKey
from plimsoll.scheduling.queue.in_flight import Happened, InFlight
from plimsoll.scheduling.queue.pod_heap import PodHeap
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.scheduling.queue.queueing_hints import (
    Ask,
    HintJudge,
    QueueingHints,
    QueueingStrategy,
    ask_directly,
)
from plimsoll.scheduling.queue.unschedulable_pods import UnschedulablePods, rejection_of
from plimsoll.timing.signal import Signal

#: Seconds after which unschedulable pods are tried in any case, and between two checks for such pods.
FLUSH_AFTER_S, FLUSH_EVERY_S = 300.0, 30.0

#: The name of that event in metrics.
FLUSHED = "UnschedulableTimeout"

#: Runs PreEnqueue plugins for a pod; the one that gates it now ("" without one) runs first.
Gate = Callable[[PodInfo, str], Status]


class Moments(Protocol):
    """Says which waiting pods are tried again because time has passed."""

    def come(self) -> Collection[str]:
        """The uids of those whose moment has come, each once."""

    def next_at(self) -> float | None:
        """The next moment, in monotonic seconds; None for none."""


class SchedulingQueue:
    """The waiting pods of all profiles; notifies ``work`` when a pod enters a queue."""

    def __init__(
        self,
        sort_key: SortKey,
        observer: Observer | None = None,
        *,
        gate: Gate = lambda _pod, _first: SUCCESS,
        ask: Ask = ask_directly,
        objects: ClusterObjects | None = None,
        work: Signal | None = None,
    ) -> None:
        self._sort_key = sort_key
        self._observer = observer or Observer()
        self._gate = gate
        self._objects = objects or ClusterObjects()
        self._work = work or Signal()
        self._new_heap: Callable[[], PodHeap] = PodHeap
        self._active = PodHeap()
        self._backoff = BackoffQueue(sort_key)
        self._unschedulable = UnschedulablePods()
        self._gated = UnschedulablePods()
        self._in_flight = InFlight()
        self._judge = HintJudge(ask)
        self._flushed = -math.inf
        self._moments: Moments | None = None

    # -- profiles and order --------------------------------------------------------------------------

    def use(self, hints: Mapping[str, QueueingHints], changed: Collection[str], now: float) -> None:
        """Serve these profiles, and requeue pods that changed ones rejected or try; by scheduler name."""
        self._judge.use(hints)
        for queued in self._in_flight:
            if queued.pod.pod.spec.scheduler_name in changed:
                self._in_flight.record(Happened(None, only=queued.pod.uid))
        for waiting in (self._unschedulable, self._gated):
            for queued in [each for each in waiting if each.pod.pod.spec.scheduler_name in changed]:
                waiting.take(queued.pod.uid)
                self._enter(queued, now, "ProfileChange")

    def keep_in(self, heap: Callable[[], PodHeap], moments: Moments | None = None) -> None:
        """Use this heap for active and backing-off pods from now on; it may order by more than the key."""
        self._new_heap, self._moments = heap, moments
        self.resort()

    def resort(self) -> None:
        """Sort active and backing-off pods again after the order has changed."""
        active, self._active = self._active, self._new_heap()
        for queued in active:
            self._active.push(self._sort_key(queued.pod, queued.timestamp), queued)
        self._backoff.keep_in(self._new_heap)

    # -- reading -------------------------------------------------------------------------------------

    def depths(self) -> dict[str, int]:
        """Pods by queue: active, backoff, unschedulable, gated."""
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable),
            "gated": len(self._gated),
        }

    @property
    def listens(self) -> bool:
        """Whether an event may concern a pod: one was rejected or gated, or is in flight."""
        return bool(len(self._unschedulable) or len(self._gated)) or self._in_flight.is_recording

    def __contains__(self, uid: str) -> bool:
        return any(uid in place for place in self._places())

    def among(self, uids: Collection[str]) -> list[str]:
        """Those of these uids that wait here."""
        places = [place for place in self._places() if any(True for _ in place)]
        return [uid for uid in uids if any(uid in place for place in places)] if places else []

    def __iter__(self) -> Iterator[QueuedPod]:
        """Every waiting pod, in no particular order."""
        for place in self._places():
            yield from place

    def listed(self) -> Iterator[tuple[str, QueuedPod]]:
        """Each waiting pod with the name of its queue."""
        for name, place in zip((*self.depths(), "in flight"), self._places(), strict=True):
            for each in place:
                yield name, each

    def whereabouts(self, uid: str) -> tuple[str, QueuedPod, int] | None:
        """The queue of a waiting pod, the pod, and the number of active pods before it."""
        for name, place in zip((*self.depths(), "in flight"), self._places(), strict=True):
            if uid in place:
                queued = next(each for each in place if each.pod.uid == uid)
                return name, queued, self._active.ahead_of(uid)
        return None

    def _places(self) -> tuple[PodHeap | BackoffQueue | UnschedulablePods | InFlight, ...]:
        return self._active, self._backoff, self._unschedulable, self._gated, self._in_flight

    # -- watch events --------------------------------------------------------------------------------

    def add_or_update(self, pod: PodInfo, now: float) -> bool:
        """Add or update a pod without a node; returns whether it is new to the queue.

        An update of an unschedulable pod wakes it if a plugin that rejected it says so; a gated pod runs its
        PreEnqueue plugins again. For a pod in flight, the next attempt sees the new state.
        """
        uid = pod.uid
        flying = self._in_flight.find(uid)
        if flying is not None:
            for change in self._own_changes(flying.pod, pod) if self._in_flight.is_recording else ():
                self._in_flight.record(Happened(change, only=uid))
            flying.pod = pod
            return False
        queued = self._active.find(uid)
        if queued is not None:
            queued.pod = pod
            self._active.push(self._sort_key(pod, queued.timestamp), queued)
            return False
        if self._backoff.update(pod):
            return False
        queued = self._unschedulable.find(uid) or self._gated.find(uid)
        if queued is None:
            self._enter(QueuedPod(pod, now, now), now, "UnschedulablePodAdd")
            return True
        changes = self._own_changes(queued.pod, pod)
        why = rejection_of(queued)
        queued.pod = pod
        if queued.gated_by:
            self._gated.add(queued)
            if changes:
                self._gated.take(uid)
                self._enter(queued, now, changes[0].label)
            return False
        self._unschedulable.add(queued)
        for change in changes:
            strategy = self._judge.of_pod(why, pod, change)
            if strategy is not QueueingStrategy.SKIP:
                self._unschedulable.take(uid)
                self._enter(queued, now, change.label, strategy)
                break
        return False

    def _own_changes(self, old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
        return [
            ClusterEvent(EventResource.UNSCHEDULABLE_POD, bit, old, new, self._objects.read_only)
            for bit in waiting_changes(old, new)
        ]

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod that was deleted or has a node."""
        landed = self._in_flight.land(uid)
        return (
            self._active.take(uid)
            or self._backoff.take(uid)
            or self._unschedulable.take(uid)
            or self._gated.take(uid)
            or (landed[0] if landed else None)
        )

    def move_all_to_active_or_backoff_queue(
        self,
        change: ClusterEvent,
        now: float,
        *,
        but: str = "",
        at_most: int | None = None,
        is_ours: bool = False,
    ) -> int:
        """Requeue the pods that an event may help; returns how many.

        Args:
            change: The event; the cache has it already.
            now: In monotonic seconds.
            but: Uid of a pod that is not concerned.
            at_most: Only pods of this priority or less are concerned.
            is_ours: Whether one of our attempts caused the event; then pods wait out their back-off.
        """
        event = Happened(change, but=but, at_most=at_most, is_ours=is_ours)
        if self._in_flight.is_recording and self._judge.means(change):
            self._in_flight.record(event)
        count = 0
        for waiting in (self._unschedulable, self._gated):
            for why in self._judge.concerned(waiting, change):
                woken = list(self._judge.of_group(why, waiting.group(why), change))
                for queued, strategy in woken:
                    if event.concerns(queued):
                        waiting.take(queued.pod.uid)
                        self._enter(queued, now, change.label, strategy, is_error=is_ours)
                        count += 1
        return count

    def activate(self, uids: Collection[str], now: float) -> None:
        """Activate pods for a plugin; pods that are not queued, or gated, stay as they are."""
        for uid in uids:
            if uid in self._in_flight:
                self._in_flight.record(Happened(None, only=uid))
                continue
            queued = self._unschedulable.take(uid) or self._backoff.take(uid) or self._gated.take(uid)
            if queued is not None:
                self._enter(queued, now, "ForceActivate", QueueingStrategy.IMMEDIATELY)

    # -- the loop ------------------------------------------------------------------------------------

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try, None if all must wait; the pod is in flight until its attempt is reported."""
        self._flush(now)
        queued = self._active.pop()
        if queued is None:
            queued = self._backoff.pop_early()
            if queued is None:
                return None
            self._put(queued, "active", "PopFromBackoffQ")
        return self._launched(queued)

    def take(self, uid: str) -> QueuedPod | None:
        """Pop this pod from any queue unless it is gated; it is tried together with one just popped."""
        queued = self._active.take(uid) or self._backoff.take(uid) or self._unschedulable.take(uid)
        return None if queued is None else self._launched(queued)

    def _launched(self, queued: QueuedPod) -> QueuedPod:
        queued.attempts += 1
        self._in_flight.launch(queued)
        return queued

    def set_aside(self, uid: str, times: int, now: float) -> None:
        """Let a pod back off as if so many attempts in a row had taken too much."""
        queued = self._active.take(uid) or self._backoff.take(uid) or self._unschedulable.take(uid)
        if queued is not None:
            queued.timestamp, queued.costly_count = now, times
            self._backoff.push(queued, is_error=True)

    def next_due(self) -> float | None:
        """When the next pod ends its back-off or is flushed; None if no pod waits for time to pass."""
        ready = self._backoff.next_due()
        moment = None if self._moments is None else self._moments.next_at()
        due = [each for each in (ready, moment) if each is not None]
        oldest = self._unschedulable.oldest
        if oldest is not None:
            due.append((math.floor((oldest.timestamp + FLUSH_AFTER_S) / FLUSH_EVERY_S) + 1) * FLUSH_EVERY_S)
        return min(due) if due else None

    def settled(self, uid: str) -> None:
        """Stop recording events for a pod in flight whose decision is final; only its binding may fail."""
        self._in_flight.settle(uid)

    def resumed(self, uid: str) -> None:
        """Record events again for a settled pod that is decided on after all, from the present cluster."""
        flying = self._in_flight.find(uid)
        if flying is not None:
            self._in_flight.launch(flying)

    def done(self, uid: str) -> None:
        """Remove a pod whose attempt succeeded."""
        self._in_flight.land(uid)

    def add_unschedulable_if_not_present(
        self,
        uid: str,
        now: float,
        rejected_by: frozenset[str] = frozenset(),
        pending_on: frozenset[str] = frozenset(),
    ) -> None:
        """Requeue a pod after a failed attempt; without a rejecting or pending plugin it was an error.

        A pod that was removed meanwhile is not requeued.
        """
        landed = self._in_flight.land(uid)
        if landed is None:
            return
        queued, events = landed
        queued.note_failure(now, rejected_by, pending_on)
        if events is None or not (rejected_by or pending_on):
            self._enter(queued, now, "ScheduleAttemptFailure", is_error=True)
            return
        strategy, is_error = self._replayed(queued, events)
        if strategy is QueueingStrategy.SKIP:
            self._unschedulable.add(queued)
            self._put(queued, "unschedulable", "ScheduleAttemptFailure")
        else:
            self._enter(queued, now, "ScheduleAttemptFailure", strategy, is_error=is_error)

    def _replayed(self, queued: QueuedPod, events: list[Happened]) -> tuple[QueueingStrategy, bool]:
        """The strategy of the events during the attempt, and whether our own attempts caused all of them."""
        why = rejection_of(queued)
        best, is_error = QueueingStrategy.SKIP, True
        for event in events:
            strategy = QueueingStrategy.AFTER_BACKOFF
            if event.change is not None:
                strategy = self._judge.of_pod(why, queued.pod, event.change)
            if strategy is QueueingStrategy.SKIP:
                continue
            best = max(best, strategy)
            is_error &= event.is_ours
            if best is QueueingStrategy.IMMEDIATELY or not (why.pending_on or is_error):
                break
        return best, is_error

    # ------------------------------------------------------------------------------------------------

    def _enter(
        self,
        queued: QueuedPod,
        now: float,
        event: str,
        strategy: QueueingStrategy = QueueingStrategy.AFTER_BACKOFF,
        *,
        is_error: bool = False,
    ) -> None:
        """Enter the active queue or, during back-off, the back-off queue; gated if PreEnqueue says so."""
        status = self._gate(queued.pod, queued.gated_by)
        if not status.is_success:
            queued.gated_by = status.plugin or status.message or status.code.value
            self._gated.add(queued)
            self._put(queued, "gated", event)
            return
        if queued.gated_by and not queued.attempts:
            queued.first_seen = now
        queued.gated_by = ""
        if strategy is QueueingStrategy.IMMEDIATELY or not queued.is_backing_off(now):
            self._activate(queued, event)
            return
        self._backoff.push(queued, is_error=is_error)
        self._put(queued, "backoff", event)

    def _activate(self, queued: QueuedPod, event: str) -> None:
        self._active.push(self._sort_key(queued.pod, queued.timestamp), queued)
        self._put(queued, "active", event)

    def _put(self, queued: QueuedPod, queue: str, event: str) -> None:
        queued.event = event
        self._observer.pod_queued(queue, event)
        self._work.notify()

    def _flush(self, now: float) -> None:
        if self._moments is not None and (come := self._moments.come()):
            self.activate(come, now)
        for queued in self._backoff.pop_completed(now):
            self._activate(queued, "BackoffComplete")
        tick = math.floor(now / FLUSH_EVERY_S)
        if tick <= self._flushed:
            return
        self._flushed = tick
        while (oldest := self._unschedulable.oldest) is not None and now - oldest.timestamp > FLUSH_AFTER_S:
            self._unschedulable.take(oldest.pod.uid)
            self._enter(oldest, now, FLUSHED)
