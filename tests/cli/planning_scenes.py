"""Fixed clusters for plan and history: crowded nodes, a budget, policies in every state, and past moves."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from inspection.contents import NOW, a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.snapshots import file

if TYPE_CHECKING:
    from pathlib import Path

    from inspection.contents import Document

LOW: Document = {
    "name": "LowNodeUtilization",
    "args": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}},
}


def a_rebalancing(*strategies: str | Document, mode: str = "Enforce", **more: Any) -> Document:
    chosen = [{"name": each} if isinstance(each, str) else each for each in strategies]
    return {"mode": mode, "strategies": chosen, **more}


def scheduled(**rebalancing: Any) -> Document:
    """The policy that places the pods, with this rebalancing."""
    return a_policy_document("tidy", scheduling={"schedulerName": "plimsoll"}, **rebalancing)


def a_budget_document(name: str, allowed: int) -> Document:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop", "uid": f"pdb-{name}"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "minAvailable": 1},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 1 + allowed,
            "desiredHealthy": 1,
            "expectedPods": 1 + allowed,
        },
    }


def crowded() -> list[Document]:
    """Three pods of web and two of db on old, which holds 4 cpu, and two empty nodes."""
    pods = [a_pod_document(f"web-{each}", "old") for each in "abc"]
    pods += [a_pod_document(f"db-{each}", "old", owner="db") for each in "ab"]
    nodes = [a_node_document(name) for name in ("old", "new-1", "new-2")]
    return [*nodes, *pods, a_budget_document("db", allowed=0)]


def policies() -> list[Document]:
    """One that moves pods, and one for each reason not to."""
    cron = {"cron": "0 2 * * *", "triggers": ["NodeAdded"]}
    return [
        scheduled(rebalancing=a_rebalancing("RemoveDuplicates", schedule=cron)),
        a_policy_document("watched", rebalancing=a_rebalancing(LOW, mode="DryRun", anomalyRounds=3)),
        a_policy_document("resting", suspend=True, rebalancing=a_rebalancing("RemoveDuplicates")),
        a_policy_document("wrong", rebalancing=a_rebalancing("RemoveDuplicate")),
        a_policy_document("placing", scheduling={"schedulerName": "second"}),
    ]


#: What a record of a move by load says.
MOVED_LOAD: Document = {
    "basis": "Measured",
    "resources": [
        {
            "resource": "cpu",
            "expected": "800m",
            "source": {"beforePercent": 71.0, "afterPercent": 51.0},
            "target": {"beforePercent": 12.0, "afterPercent": 32.0},
        },
        {
            "resource": "memory",
            "expected": "536870912",
            "source": {"beforePercent": 40.0, "afterPercent": 37.0},
            "target": {"beforePercent": 22.0, "afterPercent": 25.0},
        },
    ],
}
USED_LOAD: Document = {
    "time": "2026-01-31T07:40:00Z",
    "resources": [
        {"resource": "cpu", "used": "880m", "errorPercent": 10.0},
        {"resource": "memory", "used": "530579456", "errorPercent": -1.2},
    ],
}


def a_record_document(  # noqa: PLR0913 - a test names only what it is about
    name: str,
    phase: str,
    *,
    minutes_ago: float,
    took: float = 40,
    landed: str = "new-1",
    owner: str = "web",
    reason: str = "",
    message: str = "",
    used: Document | None = None,
    **spec: Any,
) -> Document:
    """The record of a move from old to new-1."""
    planned = NOW - timedelta(minutes=minutes_ago)
    moments = [("Planned", planned)]
    if phase != "Planned":
        moments.append((phase, planned + timedelta(seconds=took)))
    status: Document = {
        "phase": phase,
        "transitions": [{"phase": each, "time": f"{time:%Y-%m-%dT%H:%M:%SZ}"} for each, time in moments],
    }
    if reason:
        status |= {"reason": reason, "message": message}
    if phase in ("Settled", "Returned"):
        status["replacement"] = {"name": f"{name}-next", "uid": f"{name}-next", "node": landed}
    if used is not None:
        status["load"] = used
    return {
        "kind": "Eviction",
        "metadata": {
            "name": f"{name}-0123abcd",
            "namespace": "shop",
            "creationTimestamp": f"{planned:%Y-%m-%dT%H:%M:%SZ}",
        },
        "spec": {
            "pod": {"namespace": "shop", "name": name, "uid": name},
            "owner": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner},
            "policy": "tidy",
            "strategy": "RemoveDuplicates",
            "mode": "Enforce",
            "reason": "3 pods of ReplicaSet web are on its node",
            "fromNode": "old",
            "targetNode": "new-1",
            "gain": 12,
            "gainMaximum": 900,
            **spec,
        },
        "status": status,
    }


def past() -> list[Document]:
    """Moves of every outcome within the last day, one of them of a replacement, and one from long ago."""
    return [
        a_record_document("web-z", "Settled", minutes_ago=3000),
        a_record_document("web-a", "Settled", minutes_ago=300, took=35),
        a_record_document(
            "web-a-next",
            "Settled",
            minutes_ago=280,
            took=610,
            fromNode="new-1",
            targetNode="old",
            landed="old",
            strategy="LowNodeUtilization",
            load=MOVED_LOAD,
            used=USED_LOAD,
        ),
        a_record_document(
            "web-b",
            "Returned",
            minutes_ago=100,
            landed="old",
            reason="SameNode",
            message="the replacement web-b-next is on node old again",
        ),
        a_record_document(
            "db-a",
            "Blocked",
            minutes_ago=90,
            owner="db",
            took=1,
            reason="PodDisruptionBudget",
            message="Cannot evict pod as it would violate the pod's disruption budget.",
        ),
        a_record_document(
            "db-b",
            "Failed",
            minutes_ago=80,
            owner="db",
            took=300,
            reason="ReplacementNotReady",
            message="the replacement was not Ready within 300 s",
        ),
        a_record_document("web-c", "Planned", minutes_ago=1),
        a_record_document("web-d", "Predicted", minutes_ago=2, mode="DryRun", policy="watched"),
    ]


def saved(folder: Path, *documents: Document) -> str:
    """A snapshot file of these objects; its name, below the folder."""
    with (folder / "cluster.plimsoll").open("wb") as stream:
        file.write(content_of(documents), stream)
    return "cluster.plimsoll"
