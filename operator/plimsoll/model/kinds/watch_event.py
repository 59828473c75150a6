"""Watch events: the only input of the mutable state.

Pods and nodes have events of their own, because almost everything is about them; the other kinds share
three. Every event carries whole objects, never a difference.
"""

from dataclasses import dataclass
from typing import TypeAlias

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
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

ClusterObject: TypeAlias = (
    Namespace
    | PriorityClass
    | Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | PodDisruptionBudget
    | PodGroup
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
"""Every kind that is neither a pod nor a node."""


@dataclass(frozen=True, slots=True)
class PodAdded:
    """A pod was seen for the first time."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodUpdated:
    """A pod changed."""

    old: Pod
    new: Pod


@dataclass(frozen=True, slots=True)
class PodDeleted:
    """A pod is gone; ``pod`` is the last that was seen of it."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class NodeAdded:
    """A node was seen for the first time."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeUpdated:
    """A node changed."""

    old: Node
    new: Node


@dataclass(frozen=True, slots=True)
class NodeDeleted:
    """A node is gone."""

    node: Node


@dataclass(frozen=True, slots=True)
class ObjectAdded:
    """An object of another kind was seen for the first time."""

    object: ClusterObject


@dataclass(frozen=True, slots=True)
class ObjectUpdated:
    """An object of another kind changed; both are of one kind."""

    old: ClusterObject
    new: ClusterObject


@dataclass(frozen=True, slots=True)
class ObjectDeleted:
    """An object of another kind is gone."""

    object: ClusterObject


@dataclass(frozen=True, slots=True)
class Synced:
    """The first list of a kind is complete; objects that were not in it do not exist."""

    kind: str


WatchEvent: TypeAlias = (
    PodAdded
    | PodUpdated
    | PodDeleted
    | NodeAdded
    | NodeUpdated
    | NodeDeleted
    | ObjectAdded
    | ObjectUpdated
    | ObjectDeleted
    | Synced
)
