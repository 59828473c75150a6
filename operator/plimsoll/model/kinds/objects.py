"""Keeps the objects other than pods and nodes that decisions read, by kind; caches what follows from them."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

from plimsoll.model.kinds.metadata import OwnerReference
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
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

T = TypeVar("T")


class Ledger(Protocol):
    """Objects in another form than theirs, with what follows from them."""

    def __init__(self) -> None:
        """Without any object."""

    def copied(self) -> Self:
        """An independent copy, as lazily as may be."""


LedgerT = TypeVar("LedgerT", bound=Ledger)

#: Derived values are dropped, all of them, when there are more than this.
LARGEST_SHELF = 65_536


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


@dataclass(slots=True)
class ClusterObjects:
    """Objects by key: ``name``, or ``namespace/name`` for namespaced kinds.

    ``version`` rises with each change, but for budgets, which only those read who take pods away: they
    have ``budget_version``. ``derived`` keeps what was computed from the objects until the former rises.
    """

    namespaces: dict[str, Namespace] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    replication_controllers: dict[str, ReplicationController] = field(default_factory=dict)
    replica_sets: dict[str, ReplicaSet] = field(default_factory=dict)
    stateful_sets: dict[str, StatefulSet] = field(default_factory=dict)
    budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    priority_classes: dict[str, PriorityClass] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: dict[str, CSINode] = field(default_factory=dict)
    csi_drivers: dict[str, CSIDriver] = field(default_factory=dict)
    csi_capacities: dict[str, CSIStorageCapacity] = field(default_factory=dict)
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)
    version: int = 0
    budget_version: int = 0
    _derived: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    _ledgers: dict[type[Any], Any] = field(default_factory=dict, repr=False, compare=False)
    _derived_version: int = field(default=0, repr=False, compare=False)

    def above(self, pod: Pod) -> OwnerReference | None:
        """The controller of the pod's ReplicaSet; None until it is known."""
        owner = pod.metadata.controller
        found = self.replica_sets.get(f"{pod.namespace}/{owner.name}") if owner is not None else None
        if owner is None or found is None or found.metadata.uid != owner.uid:
            return None
        return found.metadata.controller

    def derived(self, key: Hashable, build: Callable[[], T]) -> T:
        """What was computed from these objects under ``key``, built again after any change of them."""
        if self._derived_version != self.version or len(self._derived) >= LARGEST_SHELF:
            self._derived = {}
            self._derived_version = self.version
        found = self._derived.get(key)
        if found is None:
            found = self._derived[key] = build()
        value: T = found
        return value

    def ledger(self, kind: type[LedgerT]) -> LedgerT:
        """What is kept of objects in another form than theirs, made at its first use; forked with them."""
        found = self._ledgers.get(kind)
        if found is None:
            found = self._ledgers[kind] = kind()
        ledger: LedgerT = found
        return ledger

    def known_ledger(self, kind: type[LedgerT]) -> LedgerT | None:
        """The same; None before its first use."""
        return self._ledgers.get(kind)

    def fork(self) -> "ClusterObjects":
        """An independent shelf of the same objects."""
        copies = {name: dict(getattr(self, name)) for name in SHELVES.values()}
        return ClusterObjects(
            **copies,
            version=self.version,
            budget_version=self.budget_version,
            _derived=dict(self._derived),
            _ledgers={kind: each.copied() for kind, each in self._ledgers.items()},
            _derived_version=self._derived_version,
        )
