"""Applies watch events to the mirrored cluster, and passes each to its subscribers in one stated order.

A list yields many placed pods in a row. Such a row is applied as a whole, and each subscriber is notified
once (docs/adr/0030-large-clusters.md); the resulting state is the same as pod by pod.

An invalid object is reported and left out; the others are applied. A pod on a node is never left out: an
amount in it that is not a quantity is reported and counts as 0. The same holds for a node's amounts.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.changes import node_changes, pod_changes, room_freed
from plimsoll.cluster.device_objects import DEVICE_KINDS, apply_device_object
from plimsoll.cluster.watch_events import (
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
    WatchEvent,
)
from plimsoll.cluster.watched_resources import AUTOSCALERS
from plimsoll.framework import (
    ActionType,
    ClusterEvent,
    ClusterObjects,
    EventResource,
    Node,
    Pod,
    PodInfo,
)
from plimsoll.model.autoscalers.recommended_requests import Autoscalers
from plimsoll.model.autoscalers.vertical_pod_autoscaler import VerticalPodAutoscaler
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.limit_range import LimitRange, LimitRanges
from plimsoll.model.kinds.node import unreadable_of
from plimsoll.model.kinds.objects import SHELVES
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.rebalancing_rule import RebalancingRule
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.model.kinds.watched_object import WatchedObject, WatchedObjects, shelf_key
from plimsoll.model.kinds.workload import (
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from plimsoll.model.read_only_dict import sealed
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal

#: Kinds whose status changes all the time and is read by no scheduling decision.
_SPEC_ONLY = (ReplicationController, ReplicaSet, StatefulSet, Service)

#: The shortest row of pods that is applied as a whole; applying fewer one by one is faster.
FEWEST = 8

#: Characters of a namespace and name that are shown: the API server's maximum, 63 and 253.
LONGEST_KEY = 63 + 1 + 253


class EventSubscriber(Protocol):
    """Receives watch events."""

    def observe(self, event: WatchEvent) -> None:
        """Handle an event."""


class PlacedPodsSubscriber(ABC):
    """Receives pods that are seen for the first time and have nodes, many at a time."""

    @abstractmethod
    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Handle pods that were added in this order, each with a node and not ended.

        The outcome must equal that of ``PodAdded`` for one after the other; if this raises, those are sent.
        """


class OfTypes(Struct, frozen=True):
    """Subscribers, in order, that receive only the events of these types."""

    types: tuple[type[WatchEvent], ...]
    subscribers: tuple[EventSubscriber, ...]


class Ingestion:
    """Passes each event to every subscriber before the next event.

    Args:
        subscribers: In the order in which they receive an event; those after the mirror see it applied.
        observer: Notified of a subscriber that raised; the other subscribers still receive the event.
    """

    def __init__(self, subscribers: Sequence[EventSubscriber | OfTypes], observer: Observer) -> None:
        self._subscribers = tuple(subscribers)
        self._observer = observer
        self._by_type: dict[type[WatchEvent], tuple[EventSubscriber, ...]] = {}

    def _of(self, kind: type[WatchEvent]) -> tuple[EventSubscriber, ...]:
        """The subscribers of an event type, found once per type."""
        found: list[EventSubscriber] = []
        for each in self._subscribers:
            if not isinstance(each, OfTypes):
                found.append(each)
            elif issubclass(kind, each.types):
                found.extend(each.subscribers)
        self._by_type[kind] = tuple(found)
        return self._by_type[kind]

    def apply(self, events: Sequence[WatchEvent]) -> None:
        """Pass on a batch of events."""
        row: list[PodAdded] = []
        for event in events:
            if type(event) is PodAdded and event.pod.node_name and not event.pod.is_terminal:
                row.append(event)
                continue
            if row:
                self._apply_row(row)
                row = []
            self._apply_one(event)
        if row:
            self._apply_row(row)

    def _apply_one(self, event: WatchEvent) -> None:
        for subscriber in self._by_type.get(type(event)) or self._of(type(event)):
            self._tell(subscriber, event)

    def _tell(self, subscriber: EventSubscriber, event: WatchEvent) -> None:
        try:
            subscriber.observe(event)
        except Exception as exc:  # noqa: BLE001 - whatever one object holds, the others go on
            self._observer.failed(f"observing {name_of(event)}", repr(exc))

    def _apply_row(self, events: Sequence[PodAdded]) -> None:
        """Pass on added pods that have nodes: as a whole, or one by one if they are few."""
        if len(events) < FEWEST:
            for event in events:
                self._apply_one(event)
            return
        pods = [event.pod for event in events]
        for subscriber in self._by_type.get(PodAdded) or self._of(PodAdded):
            if isinstance(subscriber, PlacedPodsSubscriber):
                try:
                    subscriber.observe_placed(pods)
                except Exception:  # noqa: BLE001, S110 - one of them may be to blame
                    pass
                else:
                    continue
            for event in events:
                self._tell(subscriber, event)


class Mirror(PlacedPodsSubscriber):
    """Applies events to the cache.

    Attributes:
        changes: Cluster events of the last watch event, for waiting pods.
        arrived: Pods that the last event, which was about many, showed on their nodes. Each is a cluster
            event (:func:`arrival`) that is not among ``changes``.
        synced: Kinds of objects that have been listed.
    """

    def __init__(self, cache: Cache, observer: Observer) -> None:
        self.cache = cache
        self.changes: list[ClusterEvent] = []
        self.arrived: Sequence[PodInfo] = ()
        self.synced: set[str] = set()
        self.listed = Signal()
        self._observer = observer

    def observe(self, event: WatchEvent) -> None:
        """Apply an event."""
        self.changes, self.arrived = [], ()
        try:
            self._apply(event)
        except Exception as exc:  # noqa: BLE001 - whatever one object holds, the others go on
            self._observer.object_skipped(type(event).__name__, name_of(event), repr(exc))

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Apply added pods that have nodes."""
        self.changes, self.arrived = [], ()
        cache, skip = self.cache, self._observer.object_skipped
        uids = {pod.uid for pod in pods}
        if len(uids) < len(pods) or not cache.cluster.pods.keys().isdisjoint(uids):
            for pod in pods:  # some are counted already
                try:
                    self._set_pod(pod)
                except Exception as exc:  # noqa: BLE001 - whatever one object holds, the others go on
                    skip(PodAdded.__name__, pod.key, repr(exc))
            return
        infos = []
        for pod in pods:
            try:
                info = cache.info(pod)
            except Exception as exc:  # noqa: BLE001 - likewise
                skip(PodAdded.__name__, pod.key, repr(exc))
                continue
            infos.append(info)
            for problem in info.template.unreadable:
                skip("pods", info.key, problem)
        for uid in cache.waiting.keys() & uids:
            del cache.waiting[uid]
        cache.cluster.place_new(infos)
        self.arrived = infos

    def _apply(self, event: WatchEvent) -> None:
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                self._set_pod(pod)
            case PodDeleted(pod):
                self._drop(pod)
            case NodeAdded(node) | NodeUpdated(_, node):
                self._set_node(node)
            case NodeDeleted(node):
                self.cache.remove_node(node.name)
                self._changed(EventResource.NODE, ActionType.DELETE, node, None)
            case ObjectAdded(new):
                self._shelve(None, new)
            case ObjectUpdated(old, new):
                self._shelve(old, new)
            case ObjectDeleted(old):
                self._shelve(old, None)
            case Synced(kind):
                self.synced.add(kind)
                self.listed.notify()

    def _changed(self, resource: str, action: ActionType, old: Any, new: Any) -> None:
        self.changes.append(ClusterEvent(resource, action, old, new, self.cache.cluster.objects.read_only))

    def _set_node(self, node: Node) -> None:
        cluster = self.cache.cluster
        row = cluster.rows.get(node.name)
        old = None if row is None else cluster.nodes[row]
        self.cache.set_node(node)
        for problem in unreadable_of(node):
            self._observer.object_skipped("nodes", node.name, problem)
        if old is None:
            self._changed(EventResource.NODE, ActionType.ADD, None, node)
            return
        for bit in node_changes(old, node):
            self._changed(EventResource.NODE, bit, old, node)

    def _set_pod(self, pod: Pod) -> None:
        if pod.is_terminal:
            self._drop(pod)
        elif pod.node_name:
            self.cache.waiting.pop(pod.uid, None)
            self._set_placed(self.cache.info(pod))
        else:
            self.cache.waiting[pod.uid] = pod

    def _drop(self, pod: Pod) -> None:
        """Remove a deleted or ended pod, and record its room as free."""
        self.cache.waiting.pop(pod.uid, None)
        placed = self.cache.remove_pod(pod.uid)
        if placed is not None:
            self.changes.append(room_freed(placed, self.cache.cluster.objects))

    def _set_placed(self, info: PodInfo) -> None:
        """Apply a pod that the watch shows on a node: newly placed, or changed."""
        uid, cache = info.uid, self.cache
        known = "" if uid in cache.assumed else cache.node_of(uid)
        old = cache.cluster.pods.get(uid) if known == info.pod.node_name else None
        for problem in info.template.unreadable:
            self._observer.object_skipped("pods", info.key, problem)
        cache.set_placed(info, info.pod.node_name)
        if old is None:
            self.changes.append(arrival(info, cache.cluster.objects))
            return
        for bit in pod_changes(old, info):
            self._changed(EventResource.ASSIGNED_POD, bit, old, info)

    def _shelve(self, old: Any, new: Any) -> None:
        new = sealed(new)
        subject = new if new is not None else old
        objects = self.cache.cluster.objects
        shelf = SHELVES.get(type(subject))
        if shelf is None:
            self._enter(objects, subject, old, new)
            return
        key = subject.group_key if isinstance(subject, PodGroup | CompositePodGroup) else shelf_key(subject)
        stock: dict[str, Any] = getattr(objects, shelf)
        if new is None:
            stock.pop(key, None)
        else:
            stock[key] = new
        if isinstance(
            subject, PodGroup | CompositePodGroup | RebalancingRule
        ):  # requeue no pod: the gates of gangs do
            objects.budget_version += old is None or new is None or old.spec != new.spec
            return
        if isinstance(subject, PersistentVolumeClaim | PersistentVolume):
            self.cache.volumes_changed.notify()
        if not self._is_change(old, new):
            return
        if isinstance(subject, PodDisruptionBudget):
            objects.budget_version += 1  # read for the choice of victims and for plans, kept by no cache
        else:
            objects.changed()

    def _enter(self, objects: ClusterObjects, subject: object, old: Any, new: Any) -> None:
        """Apply an object of a kind that has a ledger instead of a shelf."""
        if isinstance(subject, DEVICE_KINDS):
            apply_device_object(objects, old, new)
            self._is_change(old, new)
        elif isinstance(subject, VerticalPodAutoscaler):
            self._set_autoscaler(old, new)
        elif isinstance(subject, LimitRange):  # read for plans only
            objects.ledger(LimitRanges).replace(old, new)
            objects.budget_version += 1
        elif isinstance(subject, WatchedObject):
            objects.ledger(WatchedObjects).replace(old, new)
            if self._is_change(old, new):
                objects.changed()

    def _set_autoscaler(self, old: VerticalPodAutoscaler | None, new: VerticalPodAutoscaler | None) -> None:
        """Apply an autoscaler, which only plans read; one with an unreadable amount counts as absent."""
        readable = new
        if new is not None:
            for problem in new.unreadable():
                self._observer.object_skipped(AUTOSCALERS.name, new.key, problem)
                readable = None
        objects = self.cache.cluster.objects
        objects.ledger(Autoscalers).replace(old, readable)
        if old is None or new is None or (old.spec, old.status) != (new.spec, new.status):
            objects.budget_version += 1

    def _is_change(self, old: Any, new: Any) -> bool:
        """Record the change of an object; returns whether any decision may depend on it."""
        if old is not None and new is not None and _reads_the_same(old, new):
            return False
        action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
        self._changed(type(old if new is None else new).__name__, action, old, new)
        return True


def arrival(pod: PodInfo, objects: ClusterObjects) -> ClusterEvent:
    """AssignedPodAdd for a pod that is newly on a node."""
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, None, pod, objects.read_only)


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


def name_of(event: WatchEvent) -> str:
    """Namespace and name of the object that an event is about."""
    for attribute in ("pod", "new", "node", "object"):
        subject = getattr(event, attribute, None)
        if subject is not None:
            return f"{subject.metadata.namespace}/{subject.metadata.name}"[:LONGEST_KEY]
    return ""
