"""Feeds the scheduling queue with watch events: pods without a node, and changes that may help them.

Observes events after the mirror, so it reads a cluster that has them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.cluster.changes import room_freed
from plimsoll.cluster.ingestion import Mirror, PlacedPodsSubscriber, arrival
from plimsoll.cluster.reservations import Reservation, ReservationBook
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import ActionType, ClusterEvent, EventResource, Pod
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.queue.queue import SchedulingQueue


@dataclass(eq=False)
class QueueFeed(PlacedPodsSubscriber):
    """Adds, updates and removes pods of the queue, and requeues those that a change may help."""

    _mirror: Mirror
    _queue: SchedulingQueue
    _served: ServedProfiles
    _book: ReservationBook
    _clock: Clock
    _observer: Observer

    def observe(self, event: WatchEvent) -> None:
        """Handle an event that the cache has."""
        now = self._clock.monotonic()
        match event:
            case PodAdded(pod):
                self._set_pod(pod, now)
                if pod.nominated_node_name:
                    self._take_over_nomination(pod)
            case PodUpdated(old, pod):
                held = self._book.held_by_uid(pod.uid)
                self._set_pod(pod, now)
                self._forgo_nomination(old, pod, held, now)
            case PodDeleted(pod):
                held = self._book.held_by_uid(pod.uid)
                self._book.release_uid(pod.uid)
                self._queue.remove(pod.uid)
                self._forgo_nomination(pod, None, held, now)
        for change in self._mirror.changes:
            self._move(change, now)

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Handle added pods that have nodes; the cache has them already."""
        now = self._clock.monotonic()
        uids = [pod.uid for pod in pods]
        for uid in uids:
            self._book.release_uid(uid)
        for uid in self._queue.among(uids):
            self._queue.remove(uid)
        for pod in pods:
            if pod.nominated_node_name:
                self._take_over_nomination(pod)
        for change in self._mirror.changes:
            self._move(change, now)
        for info in self._mirror.arrived if self._queue.listens else ():
            self._move(arrival(info, self._book.cache.cluster.objects), now)

    def happened(self, change: ClusterEvent) -> None:
        """Handle a change that comes from no watch; the cache has it already."""
        self._move(change, self._clock.monotonic())

    def take_over(self) -> None:
        """Take over as leader: nominations are read from the pods, whatever was recorded before."""
        for pod in self._book.cache.waiting.values():
            self._book.release_uid(pod.uid)
            self._take_over_nomination(pod)

    def requeue_all(self) -> None:
        """Review every pod without a node after the profiles changed."""
        for pod in list(self._book.cache.waiting.values()):
            self._set_waiting(pod, self._clock.monotonic())

    def _move(self, change: ClusterEvent, now: float, *, but: str = "", at_most: int | None = None) -> None:
        """Requeue pods that a change may help; the cache has it already."""
        if not self._queue.listens:
            return
        began = self._clock.monotonic()
        self._queue.move_all_to_active_or_backoff_queue(change, now, but=but, at_most=at_most)
        self._observer.event_handled(change.label, self._clock.monotonic() - began)

    def _set_pod(self, pod: Pod, now: float) -> None:
        if pod.is_terminal or pod.node_name:
            self._book.release_uid(pod.uid)
            self._queue.remove(pod.uid)
        else:
            self._set_waiting(pod, now)

    def _set_waiting(self, pod: Pod, now: float) -> None:
        try:
            info = self._book.cache.info(pod)
        except Exception as exc:  # noqa: BLE001 - whatever one pod holds, the others go on
            self._observer.object_skipped("pods", pod.key, repr(exc))
            return
        if self._book.cache.node_of(pod.uid):
            # The pod is assumed and the watch lags. If the binding fails, the pod is tried in its new state.
            if pod.uid in self._queue:
                self._queue.add_or_update(info, now)
        elif pod.is_terminating or not self._served.serves(pod):
            self._queue.remove(pod.uid)
        elif info.template.unreadable:
            self._queue.remove(pod.uid)
            self._observer.object_skipped("pods", pod.key, f"not scheduled: {info.template.unreadable[0]}")
        elif self._queue.add_or_update(info, now) and self._queue.listens:
            objects = self._book.cache.cluster.objects
            arrival = ClusterEvent(
                EventResource.UNSCHEDULABLE_POD, ActionType.ADD, None, info, objects.read_only
            )
            self._queue.move_all_to_active_or_backoff_queue(arrival, now)
            self._observer.event_handled(arrival.label, self._clock.monotonic() - now)

    def _take_over_nomination(self, pod: Pod) -> None:
        """Read the nomination of a pod that is seen first; an earlier process may have written it.

        No process nominates a pod with scheduling gates. Users may have written that, and as the pod is not
        tried, no attempt would end it.
        """
        node = "" if pod.spec.scheduling_gates else pod.nominated_node_name
        if node and pod.uid in self._queue:
            self._book.nominate(self._book.cache.info(pod), node, pod.spec.scheduler_name)

    def _forgo_nomination(self, old: Pod, new: Pod | None, held: Reservation | None, now: float) -> None:
        """Requeue other pods when a pod's nomination ended or moved to another node.

        The pod may leave or end before its nomination is written; then only the book has ``held`` it.
        """
        node = old.nominated_node_name
        if old.node_name or old.is_terminal:
            return
        if new is None or (new.is_terminal and not new.node_name):
            if not node and held is None:
                return
        elif not node or new.node_name or new.nominated_node_name == node:
            return
        freed = room_freed(self._book.cache.info(old), self._book.cache.cluster.objects)
        priority = old.priority if held is None else max(old.priority, held.pod.priority)
        self._move(freed, now, but=old.uid, at_most=priority)
