"""The objects, other than pods and nodes, that decisions read: a shelf by kind."""

from dataclasses import dataclass, field, fields

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


@dataclass(slots=True)
class ClusterObjects:
    """Objects by key: ``name``, or ``namespace/name`` for namespaced kinds.

    ``version`` rises with each change; whoever derived something from these objects compares it.
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

    def fork(self) -> "ClusterObjects":
        """An independent shelf of the same objects."""
        copies = {
            each.name: dict(getattr(self, each.name)) for each in fields(self) if each.name != "version"
        }
        return ClusterObjects(**copies, version=self.version)
