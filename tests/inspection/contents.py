"""Snapshots for tests, from documents as kubectl prints them."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from plimsoll.snapshots.content import SnapshotContent

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
PLURALS = {
    "Node": "nodes",
    "Pod": "pods",
    "Namespace": "namespaces",
    "ReplicaSet": "replicasets",
    "Deployment": "deployments",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PriorityClass": "priorityclasses",
    "PodGroup": "podgroups",
    "JobGroup": "jobs.batch",
    "SchedulingPolicy": "schedulingpolicies",
    "Eviction": "evictions",
    "NodeMaintenance": "nodemaintenances",
    "RebalancingRule": "rebalancingrules",
    "DeviceClass": "deviceclasses",
    "ResourceSlice": "resourceslices",
    "ResourceClaim": "resourceclaims",
}

#: The version and the name of PodGroups of the core API.
CORE_VERSION = "scheduling.k8s.io/v1alpha2"
CORE = "podgroups.v1alpha2.scheduling.k8s.io"
COMPOSITES = "compositepodgroups.v1alpha3.scheduling.k8s.io"

Document = dict[str, Any]


def content_of(documents: Iterable[Document], taken: datetime = NOW) -> SnapshotContent:
    """A snapshot of these objects."""
    objects: defaultdict[str, list[bytes]] = defaultdict(list)
    for each in documents:
        plural = CORE if each.get("apiVersion") == CORE_VERSION else PLURALS.get(each["kind"], COMPOSITES)
        objects[plural].append(json.dumps(each).encode())
    return SnapshotContent(taken.timestamp(), "a test", objects)


def a_node_document(name: str, cpu: str = "4", memory: str = "8Gi", **spec: Any) -> Document:
    """A Node that is ready."""
    room = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "allocatable": room,
            "capacity": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_pod_document(
    name: str, node: str = "", cpu: str = "500m", owner: str = "web", namespace: str = "shop", **spec: Any
) -> Document:
    """A Pod of a ReplicaSet, running where it has a node."""
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "labels": {"app": owner},
            "creationTimestamp": "2026-01-31T10:00:00Z",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": owner,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "schedulerName": "plimsoll",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {
            "phase": "Running" if node else "Pending",
            "conditions": [{"type": "Ready", "status": "True" if node else "False"}],
        },
    }


def a_policy_document(name: str = "all", created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Document:
    """A SchedulingPolicy; without a spec it places the pods and removes duplicates."""
    chosen = spec or {
        "scheduling": {"schedulerName": "plimsoll"},
        "rebalancing": {"mode": "Enforce", "strategies": [{"name": "RemoveDuplicates"}]},
    }
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": chosen,
    }
