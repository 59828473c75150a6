"""Furnishes the cluster of a soak: definitions, two policies, and workloads of both, some with budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from plimsoll.kube.session.session import Session

NAMESPACE, ENFORCED, PREDICTED = "soak", "enforced", "predicted"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/events"
RECORDS = "/apis/plimsoll.dev/v1alpha1/evictions"
POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll"

#: Seconds between two runs of each policy, and the records that each keeps.
EVERY_S, RECORDS_KEPT = 30, 200
#: Deployments, and pods of each.
APPS, REPLICAS = 40, 30

_LOW, _HIGH = {"cpu": 15, "memory": 15, "pods": 15}, {"cpu": 60, "memory": 60, "pods": 60}
_STRATEGIES = [
    {"name": "RemovePodsViolatingNodeTaints"},
    {"name": "RemoveDuplicates"},
    {"name": "LowNodeUtilization", "args": {"thresholds": _LOW, "targetThresholds": _HIGH}},
]


def policy(name: str, **rebalancing: Any) -> dict[str, Any]:
    """A policy that schedules the pods with its name as schedulerName, and rebalances."""
    of_runs = {
        "schedule": {"intervalSeconds": EVERY_S},
        "strategies": _STRATEGIES,
        "records": {"maxCount": RECORDS_KEPT},
        "limits": {"total": 12, "perNamespace": 12, "perMinute": 24},
        **rebalancing,
    }
    return {
        "metadata": {"name": name},
        "spec": {"scheduling": {"schedulerName": name}, "rebalancing": of_runs},
    }


def deployment(name: str, scheduler: str) -> dict[str, Any]:
    """Pods of a usual size that prefer to spread over zones."""
    labels = {"app": name}
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    spread = {
        "maxSkew": 3,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    pod = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "pause", "resources": resources}],
        "topologySpreadConstraints": [spread],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "replicas": REPLICAS, "template": template},
    }


async def furnish(session: Session) -> None:
    """Create everything but the nodes."""
    crds = Path(__file__).parents[2] / "crds"
    for file in sorted(crds.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            await session.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
    await session.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    evictor = {"minPodAge": "1s"}
    await session.request("POST", POLICIES, policy(ENFORCED, mode="Enforce", evictor=evictor))
    await session.request(
        "POST", POLICIES, policy(PREDICTED, mode="DryRun", planner="Upstream", evictor=evictor)
    )
    for number in range(APPS):
        name = f"app-{number:02}"
        await session.request("POST", DEPLOYMENTS, deployment(name, (ENFORCED, PREDICTED)[number % 2]))
        if number % 4 == 0:
            budget = {"maxUnavailable": "20%", "selector": {"matchLabels": {"app": name}}}
            await session.request("POST", BUDGETS, {"metadata": {"name": name}, "spec": budget})
