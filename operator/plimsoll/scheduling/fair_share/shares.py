"""Pops pods queue by queue and counts waiting demand, for the plugin that divides shares.

The profile names that plugin (:class:`plimsoll.toolkit.scheduling.fair_shares.FairQueues`). Nothing is
counted while no profile has one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import PlacedPodsSubscriber
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.engine.plugin_calls import NUMBER, called, sortable
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PluginError, Pod, PodInfo, Snapshot
from plimsoll.framework.plugin_answers import of_kind
from plimsoll.model.columns.queue_usage import ReclaimTimes, WaitingDemand, asks_for_room
from plimsoll.model.names import PodUid
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.fair_share.heap import FairHeap, HeapKey
from plimsoll.scheduling.queue.pod_heap import PodHeap
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.toolkit.scheduling.fair_shares import FairQueues, QueueAccount, fair_queues


class FairShares(PlacedPodsSubscriber):
    """Connects fair queues with the waiting pods; falls back to sort keys while the plugin fails."""

    def __init__(self, cache: Cache, queue: SchedulingQueue, clock: Clock, observer: Observer) -> None:
        self._cache = cache
        self._queue = queue
        self._clock = clock
        self._observer = observer
        self._known: dict[str, tuple[ProfileScheduler, FairQueues | None]] = {}
        self._fair: dict[str, FairQueues] = {}

    def serve(self, schedulers: Mapping[str, ProfileScheduler], waiting: Iterable[Pod]) -> None:
        """Serve these profiles; ``waiting`` are the pods without a node."""
        known, self._known = self._known, {}
        for name, scheduler in schedulers.items():
            before = known.get(name)
            if before is None or before[0] is not scheduler:
                before = scheduler, fair_queues(scheduler.profile.plugins)
            self._known[name] = before
        self._fair = {name: fair for name, (_, fair) in self._known.items() if fair is not None}
        if self._cache.cluster.has_index(WaitingDemand):
            self._demand.clear()  # demand is not counted while no profile has fair queues
        if self._fair:
            for pod in waiting:
                self._set(pod)
        if self._fair:
            self._queue.keep_in(self._heap, self)
        else:
            self._queue.keep_in(PodHeap)

    def observe(self, event: WatchEvent) -> None:
        """Update the demand after an event; the cache has it already."""
        if not self._fair:
            return
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                self._set(pod)
            case PodDeleted(pod):
                self._demand.drop(pod.uid)

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Remove added pods that have nodes from the demand."""
        if self._fair:
            for pod in pods:
                self._demand.drop(pod.uid)

    def accounts(self) -> Iterator[tuple[str, QueueAccount]]:
        """What each queue of each scheduler name has and may have."""
        snapshot = Snapshot(self._cache.cluster)
        for name, fair in self._fair.items():
            try:
                found = called(fair.name, "queueSort", fair.accounts, name, snapshot, self._demand.sums)
            except PluginError as exc:
                self._observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
                continue
            yield from ((name, each) for each in found)

    def come(self) -> list[PodUid]:
        """The waiting pods that may reclaim by now what had to run on."""
        self._times.now = self._clock.now()
        return self._times.passed()

    def next_at(self) -> float | None:
        """When the next of them may, in monotonic seconds."""
        until = self._times.next()
        return None if until is None else self._clock.monotonic() + until - self._clock.now()

    @property
    def _times(self) -> ReclaimTimes:
        return self._cache.cluster.index(ReclaimTimes)

    @property
    def _demand(self) -> WaitingDemand:
        """The demand that plugins read; exists once a profile has fair queues."""
        return self._cache.cluster.index(WaitingDemand)

    def _heap(self) -> FairHeap:
        return FairHeap(self._heap_of, self._standing)

    def _heap_of(self, pod: PodInfo) -> HeapKey:
        name = pod.pod.spec.scheduler_name
        plugin = self._fair.get(name)
        if plugin is None:
            return ("", "")
        try:
            return name, of_kind(
                called(plugin.name, "queueSort", plugin.queue_of, pod), str, plugin.name, "queueSort"
            )
        except PluginError as exc:
            self._observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
            return ("", "")

    def _standing(self, heap: HeapKey) -> tuple[float, ...]:
        name, queue = heap
        fair, snapshot = self._fair[name], Snapshot(self._cache.cluster)
        try:
            standing = called(fair.name, "queueSort", fair.standing, queue, name, snapshot)
            for each in of_kind(standing, tuple, fair.name, "queueSort"):
                sortable(each, fair.name, like=NUMBER)
        except PluginError as exc:
            self._observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
            return ()
        return standing

    def _set(self, pod: Pod) -> None:
        if asks_for_room(pod) and pod.spec.scheduler_name in self._fair:
            self._demand.set(self._cache.info(pod), is_placed=pod.uid in self._cache.assumed)
        else:
            self._demand.drop(pod.uid)
