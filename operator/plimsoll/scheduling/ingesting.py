"""ClusterEvent → cache and queue: the one way by which the outside world reaches our state.

An object that makes no sense is reported and left out; the others go on. A pod on a node is never left out:
an amount of it that is no quantity is reported and counts as 0, and so does one of a node.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.changes import node_changes, pod_changes
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.framework import ActionType, Change, EventResource, Node, Pod, PodInfo
from plimsoll.model.kinds.node_facts import unreadable_of
from plimsoll.model.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from plimsoll.model.kinds.watch_event import (
    ClusterEvent,
    NodeAdded,
    NodeDeleted,
    NodeUpdated,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
    Synced,
)
from plimsoll.model.kinds.workload import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.queue.queue import SchedulingQueue, room_freed
from plimsoll.timing.signal import Signal

#: The shelf of ClusterObjects that each kind lies on.
SHELVES: Mapping[type, str] = {
    Namespace: "namespaces",
    Service: "services",
    ReplicationController: "replication_controllers",
    ReplicaSet: "replica_sets",
    StatefulSet: "stateful_sets",
    PodDisruptionBudget: "budgets",
    PriorityClass: "priority_classes",
    PersistentVolume: "volumes",
    PersistentVolumeClaim: "claims",
    StorageClass: "storage_classes",
    CSINode: "csi_nodes",
    CSIDriver: "csi_drivers",
    CSIStorageCapacity: "csi_capacities",
    VolumeAttachment: "attachments",
}

#: Kinds whose status changes all the time and is read by no scheduling decision.
_SPEC_ONLY = (ReplicationController, ReplicaSet, StatefulSet, Service)

#: Whether a pod is for one of the profiles that are served.
Serves = Callable[[PodInfo], bool]


class Ingestion:
    """Applies events in order.

    Args:
        cache: The cluster.
        queue: The waiting pods.
        serves: Says which pods are ours.
        observer: Told of objects that are left out.
        book: Nominations end with their pods; those of earlier processes are taken over.
        clock: Measures what waking costs; without one that is not told.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        serves: Serves,
        observer: Observer,
        book: ReservationBook,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock
        self._cache = cache
        self._queue = queue
        self._serves = serves
        self._observer = observer
        self._book = book
        self._listeners: list[Callable[[ClusterEvent], None]] = []
        self._first: list[Callable[[ClusterEvent], None]] = []
        self._woken: Callable[[], None] = lambda: None
        self.synced: set[str] = set()
        self.listed = Signal()
        self.waiting: dict[str, Pod] = {}

    def on_event(self, listener: Callable[[ClusterEvent], None]) -> None:
        """Tell ``listener`` each event after it was applied."""
        self._listeners.append(listener)

    def before_event(self, listener: Callable[[ClusterEvent], None]) -> None:
        """Tell ``listener`` each event before it is applied; it must not fail."""
        self._first.append(listener)

    def on_work(self, woken: Callable[[], None]) -> None:
        """Call ``woken`` after a batch that may have put pods into the active queue."""
        self._woken = woken

    def apply(self, events: list[ClusterEvent], now: float) -> None:
        """Apply a batch; ``now`` in seconds that never go back.

        Each event is applied, and wakes whom it may help, before the next one is looked at.
        """
        for event in events:
            for listener in self._first:
                listener(event)
            try:
                self._apply(event, now)
            except Exception as exc:  # noqa: BLE001 - whatever one object holds, the others go on
                self._observer.object_skipped(type(event).__name__, _name_of(event), repr(exc))
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception as exc:  # noqa: BLE001 - likewise
                    self._observer.failed(f"listening to {_name_of(event)}", repr(exc))
        self._woken()

    def take_over(self) -> None:
        """This process leads from now on: nominations are what the pods say, whatever was seen before."""
        for pod in self.waiting.values():
            self._book.release_uid(pod.uid)
            self._take_over_nomination(pod)

    def requeue_all(self, now: float) -> None:
        """The profiles changed: look at every pod without a node again."""
        for pod in list(self.waiting.values()):
            try:
                self._set_waiting(pod, now)
            except Exception as exc:  # noqa: BLE001 - whatever one pod holds, the others go on
                self._observer.object_skipped("pods", pod.key, repr(exc))
        self._woken()

    # ------------------------------------------------------------------------------------------------

    def _apply(self, event: ClusterEvent, now: float) -> None:
        match event:
            case PodAdded(pod):
                self._set_pod(pod, now)
                self._take_over_nomination(pod)
            case PodUpdated(old, pod):
                self._set_pod(pod, now)
                self._forgo_nomination(old, pod, now)
            case PodDeleted(pod):
                self._book.release_uid(pod.uid)
                self._forgo_nomination(pod, None, now)
                self._drop(pod, now)
            case NodeAdded(node) | NodeUpdated(_, node):
                self._set_node(node, now)
            case NodeDeleted(node):
                self._cache.remove_node(node.name)
                self._happened(EventResource.NODE, ActionType.DELETE, node, None, now)
            case ObjectAdded(new):
                self._shelve(None, new, now)
            case ObjectUpdated(old, new):
                self._shelve(old, new, now)
            case ObjectDeleted(old):
                self._shelve(old, None, now)
            case Synced(kind):
                self.synced.add(kind)
                self.listed.notify()

    def _happened(self, resource: str, action: ActionType, old: Any, new: Any, now: float) -> None:
        """Wake whom a change may help; it was applied already."""
        self._tell(Change(resource, action, old, new, self._cache.cluster.objects), now)

    def _tell(self, change: Change, now: float, *, but: str = "", at_most: int | None = None) -> None:
        began = self._clock.monotonic() if self._clock else 0.0
        self._queue.happened(change, now, but=but, at_most=at_most)
        if self._clock:
            self._observer.event_handled(change.label, self._clock.monotonic() - began)

    # -- nodes ---------------------------------------------------------------------------------------

    def _set_node(self, node: Node, now: float) -> None:
        cluster = self._cache.cluster
        row = cluster.rows.get(node.name)
        old = None if row is None else cluster.nodes[row]
        self._cache.set_node(node)
        for problem in unreadable_of(node):
            self._observer.object_skipped("nodes", node.name, problem)
        if old is None:
            self._happened(EventResource.NODE, ActionType.ADD, None, node, now)
            return
        for bit in node_changes(old, node):
            self._happened(EventResource.NODE, bit, old, node, now)

    # -- pods ----------------------------------------------------------------------------------------

    def _set_pod(self, pod: Pod, now: float) -> None:
        if pod.is_terminal or pod.node_name:
            self._book.release_uid(pod.uid)
        if pod.is_terminal:
            self._drop(pod, now)
        elif pod.node_name:
            self._queue.remove(pod.uid)
            self.waiting.pop(pod.uid, None)
            self._set_placed(self._cache.info(pod), now)
        else:
            self.waiting[pod.uid] = pod
            self._set_waiting(pod, now)

    def _drop(self, pod: Pod, now: float) -> None:
        """A pod is gone, or has ended: its room is free."""
        self._queue.remove(pod.uid)
        self.waiting.pop(pod.uid, None)
        placed = self._cache.remove_pod(pod.uid)
        if placed is not None:
            self._tell(room_freed(placed, self._cache.cluster.objects), now)

    def _set_placed(self, info: PodInfo, now: float) -> None:
        """The watch shows a pod on a node: it came there just now, or it changed."""
        uid = info.uid
        known = "" if uid in self._cache.assumed else self._cache.node_of(uid)
        old = self._cache.cluster.pods.get(uid) if known == info.pod.node_name else None
        for problem in info.template.unreadable:
            self._observer.object_skipped("pods", info.key, problem)
        self._cache.set_placed(info, info.pod.node_name)
        if old is None:
            self._happened(EventResource.ASSIGNED_POD, ActionType.ADD, None, info, now)
            return
        for bit in pod_changes(old, info):
            self._happened(EventResource.ASSIGNED_POD, bit, old, info, now)

    def _take_over_nomination(self, pod: Pod) -> None:
        """A pod seen for the first time says where room was made for it, maybe by an earlier process."""
        node = pod.nominated_node_name
        if node and pod.uid in self._queue:
            self._book.nominate(self._cache.info(pod), node, pod.spec.scheduler_name)

    def _forgo_nomination(self, old: Pod, new: Pod | None, now: float) -> None:
        """A pod that waited for a node's room waits no longer, or for another's: others may have it."""
        node = old.nominated_node_name
        if not node or old.node_name or old.is_terminal:
            return
        if new is not None and (new.node_name or new.nominated_node_name == node):
            return
        freed = room_freed(self._cache.info(old), self._cache.cluster.objects)
        self._tell(freed, now, but=old.uid, at_most=old.priority)

    def _set_waiting(self, pod: Pod, now: float) -> None:
        info = self._cache.info(pod)
        if self._cache.node_of(pod.uid):
            # Assumed, and the watch lags behind. Should the binding fail, the pod is tried as it is now.
            if pod.uid in self._queue:
                self._queue.set(info, now)
        elif pod.is_terminating or not self._serves(info):
            self._queue.remove(pod.uid)
        elif info.template.unreadable:
            self._queue.remove(pod.uid)
            self._observer.object_skipped("pods", pod.key, f"not scheduled: {info.template.unreadable[0]}")
        else:
            is_new = pod.uid not in self._queue
            self._queue.set(info, now)
            if is_new:
                self._happened(EventResource.UNSCHEDULABLE_POD, ActionType.ADD, None, info, now)

    # -- everything else -----------------------------------------------------------------------------

    def _shelve(self, old: Any, new: Any, now: float) -> None:
        subject = new if new is not None else old
        shelf = SHELVES.get(type(subject))
        if shelf is None:
            return
        objects = self._cache.cluster.objects
        meta = subject.metadata
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        stock: dict[str, Any] = getattr(objects, shelf)
        if new is None:
            stock.pop(key, None)
        else:
            stock[key] = new
        if isinstance(subject, PersistentVolumeClaim | PersistentVolume):
            self._cache.volumes_changed.notify()
        if old is not None and new is not None and _reads_the_same(old, new):
            return
        action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
        if isinstance(subject, PodDisruptionBudget):
            objects.budget_version += 1  # read when victims are chosen or a plan is made, kept by no lane
            self._happened(type(subject).__name__, action, old, new, now)
            return
        objects.version += 1
        self._happened(type(subject).__name__, action, old, new, now)


def _reads_the_same(old: Any, new: Any) -> bool:
    """Whether no decision can tell the two states of an object apart."""
    if old.metadata.labels != new.metadata.labels:
        return False
    if isinstance(new, _SPEC_ONLY):
        return bool(old.spec == new.spec)
    blank = msgspec.structs.replace(new.metadata, resource_version="")
    return bool(
        msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, resource_version=""))
        == msgspec.structs.replace(new, metadata=blank)
    )


def _name_of(event: ClusterEvent) -> str:
    for attribute in ("pod", "new", "node", "object"):
        subject = getattr(event, attribute, None)
        if subject is not None:
            return f"{subject.metadata.namespace}/{subject.metadata.name}"
    return ""
