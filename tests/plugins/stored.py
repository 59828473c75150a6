"""Claims, volumes and what serves them, put into a cluster."""

from collections.abc import Callable
from typing import Any

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.objects import SHELVES
from plimsoll.model.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

ZONE = "topology.kubernetes.io/zone"


def put(cluster: Cluster, shelf: str, kind: Any, document: dict[str, Any]) -> None:
    value = convert(kind, document)
    meta = value.metadata
    getattr(cluster.objects, shelf)[f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name] = value
    cluster.objects.version += 1


def stored(fill: Callable[[Cluster], None]) -> tuple[Any, ...]:
    """The objects that a function puts into a cluster."""
    cluster = Cluster()
    fill(cluster)
    return tuple(each for shelf in SHELVES.values() for each in getattr(cluster.objects, shelf).values())


def a_claim(
    cluster: Cluster,
    name: str = "data",
    *,
    volume: str = "",
    storage_class: str = "slow",
    size: str = "5Gi",
    **more: Any,
) -> None:
    """A claim, bound if it has a volume; ``annotations``, ``phase``, ``owner`` and spec fields besides."""
    annotations = {
        **({"pv.kubernetes.io/bind-completed": "yes"} if volume else {}),
        **more.pop("annotations", {}),
    }
    phase, metadata = more.pop("phase", "Bound" if volume else "Pending"), more.pop("metadata", {})
    put(
        cluster,
        "claims",
        PersistentVolumeClaim,
        {
            "metadata": {"name": name, "namespace": "default", "annotations": annotations, **metadata},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
                "storageClassName": storage_class,
                "volumeName": volume,
                **more,
            },
            "status": {"phase": phase},
        },
    )


def a_volume(
    cluster: Cluster,
    name: str,
    *,
    size: str = "10Gi",
    zones: str | tuple[str, ...] = (),
    labels: dict[str, Any] | None = None,
    storage_class: str = "slow",
    **spec: Any,
) -> None:
    """An available volume, reachable from some zones or everywhere."""
    affinity = {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
            ]
        }
    }
    put(
        cluster,
        "volumes",
        PersistentVolume,
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "nodeAffinity": affinity if zones else None,
                **spec,
            },
            "status": {"phase": spec.pop("phase", "Available")},
        },
    )


def a_class(
    cluster: Cluster,
    name: str = "slow",
    *,
    mode: str | None = "WaitForFirstConsumer",
    provisioner: str = "csi.example.com",
    **more: Any,
) -> None:
    put(
        cluster,
        "storage_classes",
        StorageClass,
        {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more},
    )


def a_csi_node(cluster: Cluster, name: str, *, migrated: str = "", **limits: Any) -> None:
    """Limits by driver, dots written as underscores."""
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    put(
        cluster,
        "csi_nodes",
        CSINode,
        {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {
                "drivers": [
                    {"name": driver.replace("_", "."), "allocatable": {"count": count}}
                    for driver, count in limits.items()
                ]
            },
        },
    )


def a_driver(cluster: Cluster, name: str = "csi.example.com", *, storage_capacity: bool = True) -> None:
    put(
        cluster,
        "csi_drivers",
        CSIDriver,
        {"metadata": {"name": name}, "spec": {"storageCapacity": storage_capacity}},
    )


def a_capacity(cluster: Cluster, name: str, *, zone: str | None = None, **more: Any) -> None:
    topology = None if zone is None else {"matchLabels": {ZONE: zone}}
    put(
        cluster,
        "csi_capacities",
        CSIStorageCapacity,
        {
            "metadata": {"name": name, "namespace": "kube-system"},
            "storageClassName": "slow",
            "nodeTopology": topology,
            **more,
        },
    )


def an_attachment(
    cluster: Cluster, name: str, *, volume: str, node: str, attacher: str = "csi.example.com"
) -> None:
    put(
        cluster,
        "attachments",
        VolumeAttachment,
        {
            "metadata": {"name": name},
            "spec": {
                "attacher": attacher,
                "nodeName": node,
                "source": {"persistentVolumeName": volume},
            },
        },
    )


def mounting(*claims: str) -> list[dict[str, Any]]:
    """Volumes of a pod that mounts these claims."""
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim}}
        for number, claim in enumerate(claims)
    ]
