"""Defines the resources that reflectors watch: their paths and the types of their objects."""

from msgspec import Struct

from plimsoll.model.autoscalers.vertical_pod_autoscaler import VerticalPodAutoscaler
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.limit_range import LimitRange
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.owned_group import OWNERS
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import CORE, CorePodGroup, PodGroup
from plimsoll.model.kinds.rebalancing_rule import RebalancingRule
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice
from plimsoll.model.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from plimsoll.model.kinds.watched_object import WatchedObject
from plimsoll.model.kinds.workload import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class WatchedResource(Struct, frozen=True):
    """One collection of the API.

    Attributes:
        name: Plural, as in ``kubectl api-resources``.
        path: The collection's path, over all namespaces.
        kind: The model type of its objects.
        selector: Label selector; "" for all.
    """

    name: str
    path: str
    kind: type
    selector: str = ""


class DeclaredResource(WatchedResource, frozen=True):
    """A collection that a plugin declares."""

    kind: type[WatchedObject]


def resource_of(kind: type[WatchedObject]) -> DeclaredResource:
    """The collection of a kind that a plugin declares, named after its class: two may read ConfigMaps."""
    root = "/apis" if kind.group() else "/api"
    scope = f"namespaces/{kind.in_namespace}/" if kind.in_namespace else ""
    return DeclaredResource(
        f"{kind.__module__}.{kind.__qualname__}",
        f"{root}/{kind.api_version}/{scope}{kind.plural}",
        kind,
        ",".join(f"{key}={value}" for key, value in sorted(kind.match_labels.items())),
    )


#: Watched if the API server serves the group and the operator may read it.
DEVICES = (
    WatchedResource("deviceclasses", "/apis/resource.k8s.io/v1/deviceclasses", DeviceClass),
    WatchedResource("resourceslices", "/apis/resource.k8s.io/v1/resourceslices", ResourceSlice),
    WatchedResource("resourceclaims", "/apis/resource.k8s.io/v1/resourceclaims", ResourceClaim),
)

#: Likewise.
AUTOSCALERS = WatchedResource(
    "verticalpodautoscalers", "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers", VerticalPodAutoscaler
)

#: PodGroups of the core API, the newest version first; one of them is watched. Named as kubectl takes them.
CORE_POD_GROUPS = tuple(
    WatchedResource(f"podgroups.{version}.{CORE}", f"/apis/{CORE}/{version}/podgroups", CorePodGroup)
    for version in ("v1beta1", "v1alpha3", "v1alpha2")
)

#: Likewise the composite groups.
CORE_COMPOSITES = tuple(
    WatchedResource(
        f"compositepodgroups.{version}.{CORE}",
        f"/apis/{CORE}/{version}/compositepodgroups",
        CompositePodGroup,
    )
    for version in ("v1beta1", "v1alpha3")
)

#: Owners whose pods form groups, where a policy says so.
GROUP_OWNERS = tuple(
    WatchedResource(each.resource, f"/apis/{each.api_version}/{each.resource.partition('.')[0]}", each)
    for each in OWNERS
)

#: What many clusters do not have.
OPTIONAL = (*DEVICES, AUTOSCALERS, *CORE_POD_GROUPS, *CORE_COMPOSITES)

WATCHED = (
    WatchedResource("nodes", "/api/v1/nodes", Node),
    WatchedResource("pods", "/api/v1/pods", Pod),
    WatchedResource("namespaces", "/api/v1/namespaces", Namespace),
    WatchedResource("limitranges", "/api/v1/limitranges", LimitRange),
    WatchedResource("services", "/api/v1/services", Service),
    WatchedResource("replicationcontrollers", "/api/v1/replicationcontrollers", ReplicationController),
    WatchedResource("replicasets", "/apis/apps/v1/replicasets", ReplicaSet),
    WatchedResource("statefulsets", "/apis/apps/v1/statefulsets", StatefulSet),
    WatchedResource("poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", PodDisruptionBudget),
    WatchedResource("podgroups", "/apis/plimsoll.dev/v1alpha1/podgroups", PodGroup),
    WatchedResource("rebalancingrules", "/apis/plimsoll.dev/v1alpha1/rebalancingrules", RebalancingRule),
    WatchedResource("priorityclasses", "/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClass),
    WatchedResource("persistentvolumes", "/api/v1/persistentvolumes", PersistentVolume),
    WatchedResource("persistentvolumeclaims", "/api/v1/persistentvolumeclaims", PersistentVolumeClaim),
    WatchedResource("storageclasses", "/apis/storage.k8s.io/v1/storageclasses", StorageClass),
    WatchedResource("csinodes", "/apis/storage.k8s.io/v1/csinodes", CSINode),
    WatchedResource("csidrivers", "/apis/storage.k8s.io/v1/csidrivers", CSIDriver),
    WatchedResource(
        "csistoragecapacities", "/apis/storage.k8s.io/v1/csistoragecapacities", CSIStorageCapacity
    ),
    WatchedResource("volumeattachments", "/apis/storage.k8s.io/v1/volumeattachments", VolumeAttachment),
)
