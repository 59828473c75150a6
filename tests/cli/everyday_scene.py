"""The cluster of docs/everyday-questions.md: two shops, GPUs, three policies, moves of a day, an operator."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cli.planning_scenes import a_budget_document, a_rebalancing, a_record_document, scheduled
from inspection.contents import NOW, a_node_document, a_pod_document, a_policy_document
from inspection.zoo import VERSIONS, ZONE

if TYPE_CHECKING:
    from inspection.contents import Document

GPU = "nvidia.com/gpu"
_MOMENT = re.compile(r"2026-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def everyday() -> list[Document]:
    """All objects, the past as long ago as it is in the scenes of the other tests."""
    found = [*_nodes(), *_shop(), *_research(), *_policies(), *_records(), *_installation()]
    for each in found:
        for container in each.get("spec", {}).get("containers", ()):
            container.setdefault("image", "registry.example/shop")
    text = json.dumps([{"apiVersion": VERSIONS.get(each["kind"], "v1"), **each} for each in found])
    documents: list[Document] = json.loads(_MOMENT.sub(_shifted, text))
    return documents


def _shifted(found: re.Match[str]) -> str:
    moment = datetime.fromisoformat(found[0]) - NOW + datetime.now(UTC) - timedelta(seconds=5)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _node(name: str, zone: str, **more: Any) -> Document:
    node = a_node_document(name, **more)
    node["metadata"]["labels"][ZONE] = zone
    return node


def _nodes() -> list[Document]:
    gpu = _node("gpu-1", "b", cpu="16", taints=[{"key": GPU, "value": "", "effect": "NoSchedule"}])
    gpu["status"]["allocatable"][GPU] = gpu["status"]["capacity"][GPU] = "4"
    return [_node("node-1", "a"), _node("node-2", "a"), _node("node-3", "b"), gpu]


def _shop() -> list[Document]:
    gates = [{"name": "example.com/quota"}]
    return [
        *({"kind": "Namespace", "metadata": {"name": name}} for name in ("shop", "research", "plimsoll")),
        a_pod_document("web-a", "node-1"),
        a_pod_document("web-b", "node-1"),
        a_pod_document("web-c", "node-3"),
        a_pod_document("db-a", "node-2", cpu="2", owner="db"),
        a_pod_document("db-b", "node-3", cpu="2", owner="db"),
        a_pod_document("big", cpu="3600m", owner="big"),
        a_pod_document("gated", owner="gated", schedulingGates=gates),
        a_pod_document("lost", owner="lost", schedulerName="plimsol"),
        _budget(),
    ]


def _budget() -> Document:
    budget = a_budget_document("db", allowed=0)
    budget["status"]["observedGeneration"] = 1
    return budget


def _research() -> list[Document]:
    found = []
    for name, node, count in (("train-1", "gpu-1", "2"), ("train-2", "gpu-1", "1"), ("train-3", "", "2")):
        pod = a_pod_document(
            name,
            node,
            cpu="2",
            owner="train",
            namespace="research",
            tolerations=[{"key": GPU, "operator": "Exists"}],
        )
        resources = pod["spec"]["containers"][0]["resources"]
        resources["requests"][GPU] = count
        resources["limits"] = {GPU: count}
        found.append(pod)
    return found


def _policies() -> list[Document]:
    acting = scheduled(rebalancing=a_rebalancing("RemoveDuplicates", schedule={"intervalSeconds": 300}))
    moment = "2026-01-31T11:57:00Z"
    acting["status"] = {
        "observedGeneration": 1,
        "conditions": [
            _condition("Accepted", "True", "Valid", "the spec is valid"),
            _condition("Ready", "True", "AtWork", "it places and moves pods"),
            _condition("Degraded", "False", "AsExpected", "nothing is missing"),
        ],
        "lastRun": {
            "startTime": moment,
            "completionTime": moment,
            "mode": "Enforce",
            "result": "Succeeded",
            "message": "1 candidate: 1 moved",
        },
        "nextRunTime": "2026-01-31T12:04:30Z",
        "totals": {"moved": 41, "returned": 1, "failed": 1},
    }
    watched = a_policy_document("watched", rebalancing=a_rebalancing("RemoveFailedPods", mode="DryRun"))
    watched["status"] = {
        "observedGeneration": 1,
        "conditions": [
            _condition("Accepted", "True", "Valid", "the spec is valid"),
            _condition("Ready", "True", "AtWork", "it predicts moves"),
        ],
    }
    resting = a_policy_document("resting", suspend=True, rebalancing=a_rebalancing("RemoveDuplicates"))
    resting["metadata"]["annotations"] = {
        "plimsoll.dev/paused-by": "jane",
        "plimsoll.dev/pause-reason": "until the migration is over",
    }
    resting["status"] = {
        "observedGeneration": 1,
        "conditions": [
            _condition("Accepted", "True", "Valid", "the spec is valid"),
            _condition("Ready", "False", "Suspended", "spec.suspend is true"),
        ],
    }
    return [resting, acting, watched]  # listed in the order of their names, made within a second or not


def _condition(kind: str, status: str, reason: str, message: str) -> Document:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-31T10:00:00Z",
    }


def _records() -> list[Document]:
    moved = a_record_document("web-y", "Settled", minutes_ago=95, landed="node-3")
    moved["status"]["replacement"] = {"name": "web-c", "uid": "web-c", "node": "node-3"}
    waiting = a_record_document("db-b", "Planned", minutes_ago=2, owner="db", mode="Approve")
    again = a_record_document("web-x", "Planned", minutes_ago=2, mode="Approve")
    found = [
        a_record_document("web-v", "Settled", minutes_ago=1800, landed="node-2"),
        a_record_document("web-w", "Failed", minutes_ago=240, reason="ReplacementNotReady", message="late"),
        a_record_document("web-x-old", "Settled", minutes_ago=130, landed="node-1"),
        moved,
        waiting,
        again,
    ]
    for each in found:
        each["metadata"]["labels"] = {"plimsoll.dev/owner-name": each["spec"]["owner"]["name"]}
        each["spec"]["fromNode"], each["spec"]["targetNode"] = "node-1", "node-3"
    return found


def _installation() -> list[Document]:
    lease = {
        "holderIdentity": "plimsoll-0_1",
        "leaseDurationSeconds": 15,
        "renewTime": "2999-01-01T00:00:00.000000Z",
    }
    container = {"name": "plimsoll", "image": "registry.example/plimsoll:0.1.0"}
    return [
        {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": "plimsoll", "namespace": "plimsoll"},
            "spec": lease,
        },
        {
            "kind": "Deployment",
            "metadata": {"name": "plimsoll", "namespace": "plimsoll"},
            "spec": {
                "selector": {"matchLabels": {"app": "plimsoll"}},
                "template": {
                    "metadata": {"labels": {"app": "plimsoll"}},
                    "spec": {"serviceAccountName": "plimsoll", "containers": [container]},
                },
            },
            "status": {"replicas": 1, "readyReplicas": 1},
        },
    ]
