"""A small shop: pending pods of every reason, a drifted owner, and nodes that can and cannot be emptied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.snapshots.file import save

Document = dict[str, Any]


def shop() -> list[Document]:
    """Four nodes; ``web`` has two pods on node-1, and node-2 has room for one of them."""
    return [
        a_node_document("node-1", cpu="3"),
        a_node_document("node-2", cpu="4"),
        a_node_document("node-3", cpu="4", taints=[a_taint("dedicated", "gpu")]),
        a_node_document("node-4", cpu="1", unschedulable=True),
        a_pod_document("web-1", "node-1", cpu="900m"),
        a_pod_document("web-2", "node-1", cpu="900m"),
        a_pod_document("web-3", "node-2", cpu="900m"),
        a_pod_document("db-1", "node-2", cpu="2", owner="db"),
        a_pod_document("cache-1", "node-2", cpu="200m", owner="cache"),
        of_daemon_set(a_pod_document("log-1", "node-1", cpu="100m", owner="log")),
        alone(a_pod_document("shell", "node-4", cpu="100m", owner="shell")),
        a_pod_document("spare", "node-4", cpu="100m", owner="spare"),
        *waiting(),
        a_budget("db", allowed=0),
        a_budget("web", allowed=1),
        {"kind": "PodGroup", "metadata": {"name": "train", "namespace": "shop"}, "spec": {"minMember": 3}},
        a_record("web-0", "node-2", "web-2", "node-1"),
        {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
        a_policy_document(),
    ]


def waiting() -> list[Document]:
    """The pods without a node."""
    ports = [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    return [
        a_pod_document("big", cpu="1700m", owner="big"),
        a_pod_document("gated", cpu="100m", owner="gated", schedulingGates=[{"name": "example.com/quota"}]),
        a_pod_document("lost", cpu="100m", owner="lost", schedulerName="absent"),
        a_pod_document("urgent", cpu="1500m", owner="urgent", priority=1000),
        a_pod_document("fits", owner="fits", containers=ports),
        in_group(a_pod_document("train-1", owner="train")),
    ]


def a_taint(key: str, value: str) -> Document:
    """That refuses pods."""
    return {"key": key, "value": value, "effect": "NoSchedule"}


def of_daemon_set(pod: Document) -> Document:
    """Its owner puts it on every node."""
    pod["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    return pod


def alone(pod: Document) -> Document:
    """Nothing makes it again."""
    pod["metadata"]["ownerReferences"] = []
    return pod


def in_group(pod: Document) -> Document:
    """A member of the PodGroup ``train``."""
    pod["metadata"]["labels"]["plimsoll.dev/pod-group"] = "train"
    return pod


def a_budget(app: str, allowed: int) -> Document:
    """Over the pods of an owner."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "shop", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": allowed,
            "currentHealthy": 1 + allowed,
            "desiredHealthy": 1,
            "expectedPods": 1 + allowed,
        },
    }


def a_record(pod: str, node: str, replacement: str, landed: str) -> Document:
    """Of a move that ended half an hour ago."""
    ended = "2026-01-31T11:30:00Z"
    return {
        "kind": "Eviction",
        "metadata": {"name": f"{pod}-1", "namespace": "shop", "creationTimestamp": "2026-01-31T11:29:00Z"},
        "spec": {
            "pod": {"namespace": "shop", "name": pod, "uid": pod},
            "owner": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"},
            "policy": "all",
            "strategy": "RemoveDuplicates",
            "mode": "Enforce",
            "reason": "another pod of its owner is on the node",
            "fromNode": node,
            "targetNode": landed,
        },
        "status": {
            "phase": "Settled",
            "replacement": {"name": replacement, "uid": replacement, "node": landed},
            "transitions": [{"phase": "Settled", "time": ended}],
        },
    }


def saved(folder: Path) -> str:
    """The shop as a snapshot file."""
    file = folder / "shop.json.gz"
    save(content_of(shop()), file)
    return str(file)
