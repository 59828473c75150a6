"""MirroredObjects holds the objects of a snapshot as the operator mirrors them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec
from pydantic import ValidationError

from plimsoll.api.v1alpha1.node_maintenance import NodeMaintenance
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import Ingestion, Mirror
from plimsoll.cluster.listed_objects import event_of, read_object
from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.watched_resources import DEVICES, GROUP_OWNERS, OPTIONAL, WATCHED
from plimsoll.devices.book import DeviceBook
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.inspection.listed_pods import ListedPods
from plimsoll.inspection.recorded_moves import plain, records_of
from plimsoll.load.readings import LoadSettings
from plimsoll.model.autoscalers.horizontal_pod_autoscaler import HorizontalPodAutoscaler
from plimsoll.model.decoding import DecodeError, decode
from plimsoll.model.kinds.deployment import Deployment
from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.watched_object import WatchedObjects
from plimsoll.policies.extensions import declared_here
from plimsoll.ports.observer import Observer
from plimsoll.snapshots.content import DEPLOYMENTS, MAINTENANCES, POLICIES, SCALERS, SnapshotContent
from plimsoll.usage.load_feed import load_readings
from plimsoll.usage.load_keeper import LoadKeeper

ObjectT = TypeVar("ObjectT", bound=ApiObject)

#: A snapshot has a single reading, which counts unchanged.
ONE_READING = LoadSettings(warm_up_s=0.0, least_readings=1)
#: Objects that are applied together: what many have in common is then looked up once.
BATCH = 10_000


class SkippedObject(msgspec.Struct, frozen=True):
    """An object, or a part of one, that cannot be read.

    Attributes:
        resource: Its plural.
        name: ``namespace/name``.
    """

    resource: str
    name: str
    problem: str


@dataclass
class _Skipping(Observer):
    """Collects unreadable objects."""

    found: list[SkippedObject] = field(default_factory=list)

    def object_skipped(self, resource: str, name: str, problem: str) -> None:
        self.found.append(SkippedObject(resource, name, problem))

    def failed(self, where: str, problem: str) -> None:
        self.found.append(SkippedObject("", where, problem))


class MirroredObjects:
    """The objects of one snapshot.

    Attributes:
        cache: Nodes, placed pods and other objects; has a load book if usage was read.
        pending: The pods without a node.
        records: Eviction records by ``namespace/name``.
        policies: The documents of SchedulingPolicies, the oldest first.
        deployments: Deployments by uid.
        maintenances: The readable NodeMaintenances.
        autoscaled: The HorizontalPodAutoscaler of each Deployment that has one; None if they were not read.
        skipped: Unreadable objects.
    """

    def __init__(self, content: SnapshotContent) -> None:
        self.cache, self.groups = Cache(), Groups()
        self.pending = PendingPods(self.cache)
        skipping = _Skipping()
        self.skipped = skipping.found
        ingestion = Ingestion((self.groups, Mirror(self.cache, skipping), self.pending), skipping)
        self._take(content, ingestion, skipping)
        if all(resource.name in content.objects for resource in DEVICES):
            book = self.cache.cluster.objects.ledger(DeviceBook)
            book.serve(is_served=True)
            book.now = content.taken
        self.records = records_of(content, skipping.object_skipped)
        policies = [
            plain(POLICIES, each, skipping.object_skipped) for each in content.objects.get(POLICIES, ())
        ]
        self.policies = sorted((each for each in policies if each is not None), key=_age)
        self.maintenances = _maintenances(content, skipping)
        self.deployments = {each.uid: each for each in _read(content, DEPLOYMENTS, Deployment, skipping)}
        scalers = _read(content, SCALERS, HorizontalPodAutoscaler, skipping)
        self.autoscaled = {each.scaled: each.name for each in scalers} if SCALERS in content.objects else None
        usage = content.usage
        if usage.nodes or usage.pods:
            keeper = LoadKeeper(self.cache.cluster, ONE_READING)
            keeper.observe(content.taken, load_readings(usage.nodes), load_readings(usage.pods))

    def _take(self, content: SnapshotContent, ingestion: Ingestion, skipping: _Skipping) -> None:
        """Read the objects of all kinds."""
        for resource in (*WATCHED, *OPTIONAL, *GROUP_OWNERS, *declared_here()):
            documents = content.objects.get(resource.name, ())
            read = ListedPods().read if resource.kind is Pod else partial(read_object, resource.kind)
            for begin in range(0, len(documents), BATCH):
                events = []
                for document in documents[begin : begin + BATCH]:
                    value, name, problems = read(document)
                    for problem in problems:
                        skipping.object_skipped(resource.name, name, problem)
                    if value is not None:
                        events.append(event_of(None, value))
                ingestion.apply(events)
            if resource.name in content.objects:
                self.cache.cluster.objects.ledger(WatchedObjects).listed.add(resource.kind)


def _maintenances(content: SnapshotContent, skipping: _Skipping) -> list[NodeMaintenance]:
    found = []
    for each in content.objects.get(MAINTENANCES, ()):
        document = plain(MAINTENANCES, each, skipping.object_skipped)
        if document is None:
            continue
        try:
            found.append(NodeMaintenance.from_wire(document))
        except ValidationError as exc:
            problem = summary(field_errors(exc, model=NodeMaintenance))
            skipping.object_skipped(MAINTENANCES, str(document["metadata"].get("name", "")), problem)
    return found


def _read(
    content: SnapshotContent, plural: str, kind: type[ObjectT], skipping: _Skipping
) -> Iterator[ObjectT]:
    """The objects of a collection that the operator does not mirror; unreadable ones are skipped."""
    for document in content.objects.get(plural, ()):
        try:
            yield decode(kind, document)
        except DecodeError as exc:
            skipping.object_skipped(plural, "", str(exc))


def _age(document: dict[str, Any]) -> tuple[str, str]:
    meta = document.get("metadata") or {}
    return str(meta.get("creationTimestamp", "")), str(meta.get("name", ""))
