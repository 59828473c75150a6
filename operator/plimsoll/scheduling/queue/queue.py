"""Queues pods that wait for a node: active, in back-off, unschedulable, or gated.

::

    add ──▶ active ──pop──▶ in flight ──bound──▶ done
     │        ▲  ▲             │
     │        │  │ over        │ failed
     │        │ back-off ◀─────┤    an error, or something happened meanwhile that may help
     │        │      ▲         ▼
     │ opened └──────┴─ unschedulable     until something happens that may help
     ▼        │
    gated ────┘

Order: the profile's queue sort (priority, then age). Back-off doubles from 1 s to 10 s with each attempt
that ended unschedulable; while the active queue is empty it is cut short. What may help is what the plugins
that rejected the pod have registered (:mod:`plimsoll.framework.queueing`); after five minutes it is tried
anyway. PreEnqueue plugins are asked whenever a pod is about to become active or to back off.

No clock: every call says what time it is, in seconds that never go back.
Source: kube-scheduler v1.36, ``backend/queue/scheduling_queue.go``. Differs: a pod that is woken because an
attempt of ours failed waits until its back-off is over, or two pods that are refused again and again would
wake each other without a pause; an update of a waiting pod that no decision reads is no event.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping

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

#: Unschedulable pods are tried again after this many seconds, whatever happened; looked for this often.
FLUSH_AFTER_S, FLUSH_EVERY_S = 300.0, 30.0

#: The event that this is, in metrics.
FLUSHED = "UnschedulableTimeout"

#: What the PreEnqueue plugins say of a pod; asked first is the one that holds it now, "" when none does.
Gate = Callable[[PodInfo, str], Status]


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

    # -- what serves the pods ------------------------------------------------------------------------

    def use(self, hints: Mapping[str, QueueingHints], changed: Collection[str], now: float) -> None:
        """The profiles are these; pods that changed ones refused are tried. Both are by scheduler name."""
        self._judge.use(hints)
        for waiting in (self._unschedulable, self._gated):
            for queued in [each for each in waiting if each.pod.pod.spec.scheduler_name in changed]:
                waiting.take(queued.pod.uid)
                self._enter(queued, now, "ProfileChange")

    def keep_in(self, heap: Callable[[], PodHeap]) -> None:
        """Who is active, or backs off, waits in such a heap from now on; it may pop by more than the key."""
        self._new_heap = heap
        self.resort()

    def resort(self) -> None:
        """The order has changed: sort what is active, or backs off, again."""
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
        """Whether a change of the cluster may concern a pod: one was rejected or gated, or is in flight."""
        return bool(len(self._unschedulable) or len(self._gated)) or self._in_flight.is_recording

    def __contains__(self, uid: str) -> bool:
        return any(uid in place for place in self._places())

    def among(self, uids: Collection[str]) -> list[str]:
        """Those of them that wait here."""
        places = [place for place in self._places() if any(True for _ in place)]
        return [uid for uid in uids if any(uid in place for place in places)] if places else []

    def __iter__(self) -> Iterator[QueuedPod]:
        """Every pod that waits, in no particular order."""
        for place in self._places():
            yield from place

    def listed(self) -> Iterator[tuple[str, QueuedPod]]:
        """The queue of each waiting pod, and the pod."""
        for name, place in zip((*self.depths(), "in flight"), self._places(), strict=True):
            for each in place:
                yield name, each

    def whereabouts(self, uid: str) -> tuple[str, QueuedPod, int] | None:
        """The queue of a waiting pod, the pod, and how many active pods are tried before it."""
        for name, place in zip((*self.depths(), "in flight"), self._places(), strict=True):
            if uid in place:
                queued = next(each for each in place if each.pod.uid == uid)
                return name, queued, self._active.ahead_of(uid)
        return None

    def _places(self) -> tuple[PodHeap | BackoffQueue | UnschedulablePods | InFlight, ...]:
        return self._active, self._backoff, self._unschedulable, self._gated, self._in_flight

    # -- what the watch tells ------------------------------------------------------------------------

    def add_or_update(self, pod: PodInfo, now: float) -> bool:
        """A pod without a node was added or changed; whether it is new to the queue.

        A change of an unschedulable pod wakes it if a plugin that rejected it says so; a gated one is asked
        about again. Of one in flight, the next attempt sees the new state.
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
            ClusterEvent(EventResource.UNSCHEDULABLE_POD, bit, old, new, self._objects)
            for bit in waiting_changes(old, new)
        ]

    def remove(self, uid: str) -> QueuedPod | None:
        """A pod is gone, or has a node: it waits no longer."""
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
        """Something happened in the cluster: whom it may help is tried again; how many.

        Args:
            change: What; it has been applied already.
            now: Seconds.
            but: Uid of a pod that it does not concern.
            at_most: Only pods of this priority or less are concerned.
            is_ours: It is the end of an attempt of ours, not news from outside: back-offs are sat out.
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
        """A plugin wants these pods tried immediately; what is not here, or is gated, stays as it is."""
        for uid in uids:
            if uid in self._in_flight:
                self._in_flight.record(Happened(None, only=uid))
                continue
            queued = self._unschedulable.take(uid) or self._backoff.take(uid) or self._gated.take(uid)
            if queued is not None:
                self._enter(queued, now, "ForceActivate", QueueingStrategy.IMMEDIATELY)

    # -- the loop ------------------------------------------------------------------------------------

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try, None when all must wait; the pod is in flight until reported."""
        self._flush(now)
        queued = self._active.pop()
        if queued is None:
            queued = self._backoff.pop_early()
            if queued is None:
                return None
            self._put(queued, "active", "PopFromBackoffQ")
        return self._launched(queued)

    def take(self, uid: str) -> QueuedPod | None:
        """Pop this very pod wherever it waits, unless it is gated: it goes along with one just popped."""
        queued = self._active.take(uid) or self._backoff.take(uid) or self._unschedulable.take(uid)
        return None if queued is None else self._launched(queued)

    def _launched(self, queued: QueuedPod) -> QueuedPod:
        queued.attempts += 1
        self._in_flight.launch(queued)
        return queued

    def next_due(self) -> float | None:
        """When a pod comes out of back-off or is flushed; None when no pod waits for time to pass."""
        ready = self._backoff.next_due()
        due = [] if ready is None else [ready]
        oldest = self._unschedulable.oldest
        if oldest is not None:
            due.append((math.floor((oldest.timestamp + FLUSH_AFTER_S) / FLUSH_EVERY_S) + 1) * FLUSH_EVERY_S)
        return min(due) if due else None

    def settled(self, uid: str) -> None:
        """The pod will be bound, but for failures: what happens from now on cannot change the decision."""
        self._in_flight.settle(uid)

    def resumed(self, uid: str) -> None:
        """A pod that was settled is decided on after all, and sees the cluster as it is from now on."""
        flying = self._in_flight.find(uid)
        if flying is not None:
            self._in_flight.launch(flying)

    def done(self, uid: str) -> None:
        """The attempt succeeded: the pod is no longer the queue's."""
        self._in_flight.land(uid)

    def add_unschedulable_if_not_present(
        self,
        uid: str,
        now: float,
        rejected_by: frozenset[str] = frozenset(),
        pending_on: frozenset[str] = frozenset(),
    ) -> None:
        """The attempt failed; with no plugin that rejected it, also with PENDING, it was an error.

        A pod that was removed meanwhile is not put back.
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
        """What the events of its flight are strategy to a pod, and whether only our own ones are."""
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
        """To the active queue, or into back-off while it lasts; behind a gate if PreEnqueue says so."""
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
        for queued in self._backoff.pop_completed(now):
            self._activate(queued, "BackoffComplete")
        tick = math.floor(now / FLUSH_EVERY_S)
        if tick <= self._flushed:
            return
        self._flushed = tick
        while (oldest := self._unschedulable.oldest) is not None and now - oldest.timestamp > FLUSH_AFTER_S:
            self._unschedulable.take(oldest.pod.uid)
            self._enter(oldest, now, FLUSHED)

    def validate(self) -> None:
        """Check that every pod is in one place only."""
        uids = [queued.pod.uid for queued in self]
        assert len(uids) == len(set(uids))
        self._unschedulable.validate()
        self._gated.validate()
