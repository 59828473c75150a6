"""A fixed cluster for fit and whatif: loaded nodes, a budget, a pod that waits, a policy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from inspection.contents import a_node_document, a_pod_document, a_policy_document

if TYPE_CHECKING:
    from pathlib import Path

    from inspection.contents import Document

_VERSIONS = {
    "ReplicaSet": "apps/v1",
    "SchedulingPolicy": "plimsoll.dev/v1alpha1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
}


def loaded_cluster() -> list[Document]:
    """Three ordinary nodes of 4 cpu and one that is tainted."""
    gpu = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    return [
        *(a_node_document(f"node-{number}") for number in (1, 2, 3)),
        a_node_document("node-4", taints=[gpu]),
        a_pod_document("web-a", "node-1", cpu="1500m"),
        a_pod_document("web-b", "node-1", cpu="1500m"),
        a_pod_document("web-c", "node-2", cpu="1500m"),
        a_pod_document("db-a", "node-3", cpu="1", owner="db"),
        a_pod_document("db-b", "node-2", cpu="1", owner="db"),
        a_pod_document("big", cpu="3500m", owner="batch"),
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 2},
            "status": {"currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2},
        },
        {"kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000},
        {"kind": "Namespace", "metadata": {"name": "shop"}},
        a_policy_document(),
    ]


def write_dump(path: Path) -> str:
    """Write what ``kubectl get -o json`` would print of it; the path, for ``--from``."""
    items = [{"apiVersion": _VERSIONS.get(each["kind"], "v1"), **each} for each in loaded_cluster()]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return str(path)
