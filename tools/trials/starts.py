"""Makes random clusters from which rebalancing begins, in tests and benchmarks."""

import random
from typing import Any

from plimsoll.model.columns.cluster import Cluster
from plimsoll.testing.builders import a_cluster, a_node, a_pod

#: The status of a pod that serves.
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def some_start(seed: int, fewest: int = 2, most: int = 9) -> Cluster:
    """A random cluster of so many nodes: pods of seven applications thrown on nodes of many kinds."""
    chance = random.Random(seed)
    nodes = [
        a_node(
            f"n{number}",
            cpu=chance.choice(["2", "4", "8"]),
            memory=chance.choice(["8Gi", "16Gi"]),
            pods=chance.choice([10, 30]),
            labels={"zone": chance.choice("abc"), "disk": chance.choice(["ssd", "hdd"])},
            taints=["x:NoSchedule"] if chance.random() < 0.15 else (),
            unschedulable=chance.random() < 0.1,
        )
        for number in range(chance.randint(fewest, most))
    ]
    kinds = {app: _kind(app, chance) for app in "abcdefg"}
    pods = []
    for number in range(chance.randint(3, 8 * len(nodes))):
        app = chance.choice(sorted(kinds))
        pods.append(
            a_pod(
                f"p{number}",
                node=chance.choice(nodes).name,
                owner=f"ReplicaSet/{app}",
                labels={"app": app},
                status=READY,
                **kinds[app],
            )
        )
    return a_cluster(nodes, pods)


def _kind(app: str, chance: random.Random) -> dict[str, Any]:
    """What the pods of an application ask for."""
    term = {
        "topologyKey": chance.choice(["kubernetes.io/hostname", "zone"]),
        "labelSelector": {"matchLabels": {"app": app}},
    }
    spread = {"maxSkew": 1, "whenUnsatisfiable": chance.choice(["DoNotSchedule", "ScheduleAnyway"]), **term}
    prefers = {
        "weight": 5,
        "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
    }
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    extra: dict[str, Any] = chance.choice(
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
        "cpu": chance.choice([None, "100m", "500m", "1"]),
        "memory": chance.choice([None, "256Mi", "2Gi"]),
        **extra,
    }
