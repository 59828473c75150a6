"""Cluster states and manifests for tests about forks: objects from plimsoll.testing.builders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from inspection.contents import NOW, PLURALS
from plimsoll.inspection.manifests.documents import Manifests, read_manifests
from plimsoll.inspection.state import ClusterState
from plimsoll.snapshots.content import SnapshotContent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.inspection.placement.fit import FitAnswer
    from plimsoll.model.kinds.metadata import ApiObject


def a_state(*objects: ApiObject, policies: Iterable[dict[str, Any]] = ()) -> ClusterState:
    """The state of a cluster with these objects."""
    content: dict[str, list[bytes]] = {
        PLURALS["SchedulingPolicy"]: [msgspec.json.encode(each) for each in policies]
    }
    for each in objects:
        plural = PLURALS.get(type(each).__name__, f"{type(each).__name__}s".lower())
        content.setdefault(plural, []).append(msgspec.json.encode(each))
    return ClusterState.of(SnapshotContent(NOW.timestamp(), "a test", content))


def a_workload(
    kind: str = "Deployment",
    name: str = "web",
    *,
    replicas: int = 3,
    cpu: str = "1",
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    **pod: Any,
) -> dict[str, Any]:
    """A manifest; ``spec`` is of the workload, the rest of its pods."""
    labels = labels or {"app": name}
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}}
    body: dict[str, Any] = {"template": template, "selector": {"matchLabels": labels}}
    if kind in {"Deployment", "ReplicaSet", "StatefulSet"}:
        body["replicas"] = replicas
    if kind == "Job":
        body = {"template": template, "parallelism": replicas}
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": {"template": template, "parallelism": replicas}}}
    if kind == "Pod":
        body = template["spec"]
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {**body, **(spec or {})}}


def manifests(state: ClusterState, *documents: dict[str, Any]) -> Manifests:
    """The manifests as read for a cluster."""
    return read_manifests(documents, "default", state.cluster.objects)


def shares(answer: FitAnswer, workload: int = 0) -> dict[str, int]:
    """Pods by node."""
    return {each.node: each.pods for each in answer.workloads[workload].nodes}
