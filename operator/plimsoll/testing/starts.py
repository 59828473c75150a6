"""Clusters that nobody planned: where rebalancing begins, in tests and benchmarks."""

import random
from typing import Any

from plimsoll.model.columns.cluster import Cluster
from plimsoll.testing.builders import a_cluster, a_node, a_pod

#: The status of a pod that serves.
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def some_start(seed: int) -> Cluster:
    """A cluster that nobody planned: pods of seven applications thrown on nodes of many kinds."""
    dice = random.Random(seed)  # noqa: S311 - the same cluster for the same seed
    nodes = [
        a_node(
            f"n{number}",
            cpu=dice.choice(["2", "4", "8"]),
            memory=dice.choice(["8Gi", "16Gi"]),
            pods=dice.choice([10, 30]),
            labels={"zone": dice.choice("abc"), "disk": dice.choice(["ssd", "hdd"])},
            taints=["x:NoSchedule"] if dice.random() < 0.15 else (),
            unschedulable=dice.random() < 0.1,
        )
        for number in range(dice.randint(2, 9))
    ]
    kinds = {app: _kind(app, dice) for app in "abcdefg"}
    pods = []
    for number in range(dice.randint(3, 8 * len(nodes))):
        app = dice.choice(sorted(kinds))
        pods.append(
            a_pod(
                f"p{number}",
                node=dice.choice(nodes).name,
                owner=f"ReplicaSet/{app}",
                labels={"app": app},
                status=READY,
                **kinds[app],
            )
        )
    return a_cluster(nodes, pods)


def _kind(app: str, dice: random.Random) -> dict[str, Any]:
    """What the pods of an application ask for."""
    term = {
        "topologyKey": dice.choice(["kubernetes.io/hostname", "zone"]),
        "labelSelector": {"matchLabels": {"app": app}},
    }
    spread = {"maxSkew": 1, "whenUnsatisfiable": dice.choice(["DoNotSchedule", "ScheduleAnyway"]), **term}
    prefers = {
        "weight": 5,
        "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
    }
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    extra: dict[str, Any] = dice.choice(
        [
            {},
            {"affinity": {"podAntiAffinity": {required: [term]}}},
            {"topologySpreadConstraints": [spread]},
            {"affinity": {"nodeAffinity": {preferred: [prefers]}}},
            {"node_selector": {"disk": "ssd"}},
            {"tolerations": [{"operator": "Exists"}]},
        ]
    )
    return {
        "cpu": dice.choice([None, "100m", "500m", "1"]),
        "memory": dice.choice([None, "256Mi", "2Gi"]),
        **extra,
    }
