"""ClusterEvent → cache and queue: the one way by which the outside world reaches our state.

An object that makes no sense (a quantity that is none) is reported and left out; the others go on.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from plimsoll.engine.cycle import Nominations
from plimsoll.framework import Pod, PodInfo, Status
from plimsoll.framework.observer import Observer
from plimsoll.model.event import (
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
from plimsoll.model.quantity import QuantityError
from plimsoll.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from plimsoll.model.workload import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from plimsoll.state.cache import Cache
from plimsoll.state.queue import SchedulingQueue

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

#: Whether a pod is served here: None when not, else the status of its PreEnqueue.
Gate = Callable[[PodInfo], Status | None]


class Ingestion:
    """Applies events in order.

    Args:
        cache: The cluster.
        queue: The waiting pods.
        gate: Says which pods are ours.
        observer: Told of objects that are left out.
        nominations: Forgotten with the pods that they are of; those of earlier processes are taken over.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        gate: Gate,
        observer: Observer,
        nominations: Nominations | None = None,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._gate = gate
        self._observer = observer
        self._nominations = Nominations() if nominations is None else nominations
        self._listeners: list[Callable[[ClusterEvent], None]] = []
        self._woken: Callable[[], None] = lambda: None
        self.synced: set[str] = set()
        self.waiting: dict[str, Pod] = {}

    def on_event(self, listener: Callable[[ClusterEvent], None]) -> None:
        """Tell ``listener`` each event after it was applied."""
        self._listeners.append(listener)

    def on_work(self, woken: Callable[[], None]) -> None:
        """Call ``woken`` after a batch that may have put pods into the active queue."""
        self._woken = woken

    def apply(self, events: list[ClusterEvent], now: float) -> None:
        """Apply a batch; ``now`` in seconds that never go back."""
        wake = False
        for event in events:
            try:
                wake |= self._apply(event, now)
            except Exception as exc:  # noqa: BLE001 - whatever one object holds, the others go on
                self._observer.object_skipped(type(event).__name__, _name_of(event), _sentence(exc))
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception as exc:  # noqa: BLE001 - likewise
                    self._observer.failed(f"listening to {_name_of(event)}", repr(exc))
        if wake:
            self._queue.wake(now)
        self._woken()

    def take_over(self) -> None:
        """This process leads from now on: nominations are what the pods say, whatever was seen before."""
        for pod in self.waiting.values():
            self._nominations.remove(pod.uid)
            self._take_over_nomination(pod)

    def requeue_all(self, now: float) -> None:
        """The profiles changed: look at every pod without a node again."""
        for pod in list(self.waiting.values()):
            try:
                self._set_waiting(pod, now)
            except Exception as exc:  # noqa: BLE001 - whatever one pod holds, the others go on
                self._observer.object_skipped("pods", pod.key, _sentence(exc))
        self._woken()

    # ------------------------------------------------------------------------------------------------

    def _apply(self, event: ClusterEvent, now: float) -> bool:
        """Apply one event; whether it may help a pod that waits."""
        match event:
            case PodAdded(pod):
                helps = self._set_pod(pod, now)
                self._take_over_nomination(pod)
                return helps
            case PodUpdated(_, pod):
                return self._set_pod(pod, now)
            case PodDeleted(pod):
                self._nominations.remove(pod.uid)
                self._queue.remove(pod.uid)
                self.waiting.pop(pod.uid, None)
                return self._cache.remove_pod(pod.uid) is not None
            case NodeAdded(node) | NodeUpdated(_, node):
                return self._cache.set_node(node)
            case NodeDeleted(node):
                self._cache.remove_node(node.name)
                return True
            case ObjectAdded(new):
                return self._shelve(None, new)
            case ObjectUpdated(old, new):
                return self._shelve(old, new)
            case ObjectDeleted(old):
                return self._shelve(old, None)
            case Synced(kind):
                self.synced.add(kind)
                return False

    def _set_pod(self, pod: Pod, now: float) -> bool:
        if pod.is_terminal or pod.node_name:
            self._nominations.remove(pod.uid)
        if pod.is_terminal:
            self._queue.remove(pod.uid)
            self.waiting.pop(pod.uid, None)
            return self._cache.remove_pod(pod.uid) is not None
        if pod.node_name:
            self._queue.remove(pod.uid)
            self.waiting.pop(pod.uid, None)
            return self._cache.set_placed(self._cache.info(pod), pod.node_name)
        self.waiting[pod.uid] = pod
        return self._set_waiting(pod, now)

    def _take_over_nomination(self, pod: Pod) -> None:
        """A pod seen for the first time says where room was made for it, maybe by an earlier process."""
        node = pod.nominated_node_name
        if node and pod.uid in self._queue:
            self._nominations.add(self._cache.info(pod), node)

    def _set_waiting(self, pod: Pod, now: float) -> bool:
        if self._cache.node_of(pod.uid):
            # Assumed, and the watch lags behind. Should the binding fail, the pod is tried as it is now.
            if pod.uid in self._queue:
                self._queue.set(self._cache.info(pod), now)
            return False
        info = self._cache.info(pod)
        status = None if pod.is_terminating else self._gate(info)
        if status is None:
            self._queue.remove(pod.uid)
        else:
            self._queue.set(info, now, "" if status.is_success else status.plugin or status.message)
        return False

    def _shelve(self, old: Any, new: Any) -> bool:
        subject = new if new is not None else old
        shelf = SHELVES.get(type(subject))
        if shelf is None:
            return False
        objects = self._cache.cluster.objects
        meta = subject.metadata
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        stock: dict[str, Any] = getattr(objects, shelf)
        if new is None:
            stock.pop(key, None)
        else:
            stock[key] = new
        if isinstance(subject, PodDisruptionBudget):
            return False  # read when a plan is made, kept by no lane
        if old is not None and new is not None and _reads_the_same(old, new):
            return False
        objects.version += 1
        return True


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


def _sentence(exc: Exception) -> str:
    """What is wrong; an error that nobody foresaw is named, too."""
    return str(exc) if isinstance(exc, QuantityError) else repr(exc)


def _name_of(event: ClusterEvent) -> str:
    for attribute in ("pod", "new", "node", "object"):
        subject = getattr(event, attribute, None)
        if subject is not None:
            return f"{subject.metadata.namespace}/{subject.metadata.name}"
    return ""
