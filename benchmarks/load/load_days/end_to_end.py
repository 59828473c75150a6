"""Plays a day with the real operator on the development cluster: make bench-load ARGS="--end-to-end".

The world is that of the replay, with few nodes; time is real. B0 and P2 are played simultaneously, each on a
cluster of its own; afterwards the replay plays the same worlds.
"""

import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from child_processes import cpu_s, process

from load_days.days import play
from load_days.measures import Tally
from load_days.movers import PER_NODE, PER_WORKLOAD, TOTAL, low_node_utilization
from load_days.policies import POLICIES, a_profile
from load_days.replayed_cluster import SCHEDULER, ReplayedCluster, Unplaced
from load_days.report import heading, line
from load_days.scenarios import Scenario
from load_days.traces import Traces
from roadstead.clients import RunningCluster
from roadstead.processes import running

CRDS = Path(__file__).parents[3] / "crds"

#: Nodes; hours, and the part of them that is not counted.
NODES, HOURS, WARM_UP = 8, 0.75, 1 / 6

KEYS = ("B0", "P2")

BY_REQUESTS = {"schedulerName": SCHEDULER}
BY_LOAD = BY_REQUESTS | {"plugins": {"score": {"enabled": [{"name": "NodeLoad", "weight": 3}]}}}

#: As P2 of the replay has it.
MOVED_BY_LOAD: Mapping[str, Any] = {
    "mode": "Enforce",
    "schedule": {"intervalSeconds": 120},
    "anomalyRounds": 3,
    "metricsProviders": [{"source": "KubernetesMetrics"}],
    "limits": {"total": TOTAL, "perNode": PER_NODE, "perWorkload": PER_WORKLOAD},
    "evictor": {"minReplicas": 1},
    "strategies": [{"name": "LowNodeUtilization", "args": low_node_utilization(5, 10, deviation=True)}],
}


def a_policy(key: str) -> dict[str, Any]:
    """What the operator is given once the first pods are placed."""
    spec = (
        {"scheduling": BY_REQUESTS} if key == "B0" else {"scheduling": BY_LOAD, "rebalancing": MOVED_BY_LOAD}
    )
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "load"},
        "spec": spec,
    }


def a_day(
    cluster: RunningCluster, key: str, scenario: Scenario, traces: Traces, seed: int, minute_s: float = 60.0
) -> dict[str, object]:
    """One row, of a cluster with our definitions that an operator serves."""
    world = Unplaced(scenario, traces, seed, a_profile())
    policy = POLICIES[key]
    tally = Tally(world, policy.line, policy.by_deviation)
    day = ReplayedCluster(cluster, world, tally, minute_s)
    cluster.apply(a_policy("B0"))
    day.begin()
    cluster.apply(a_policy(key))
    day.go_on()
    records = [each["status"].get("phase") for each in cluster.list("evictions.plimsoll.dev")]
    print(
        f"{key}: records {', '.join(f'{records.count(one)} {one}' for one in sorted(set(records))) or 'none'}"
    )
    return {"scenario": scenario.name, "policy": key, "seed": seed, **asdict(tally.figures())}


def a_day_of_processes(key: str, scenario: Scenario, traces: Traces, seed: int) -> dict[str, object]:
    """The same with a cluster and an operator that live as long."""
    cpu, memory = f"{traces.node_cpu}m", str(traces.node_memory)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(
            Path(folder), nodes=scenario.nodes, node_cpu=cpu, node_memory=memory, node_pods=234
        ) as cluster,
    ):
        cluster.apply(*sorted(CRDS.glob("*.yaml")))
        command = (sys.executable, "-m", "plimsoll", "run", "--kubeconfig", str(cluster.kubeconfig))
        ports = ("--metrics-port", "0", "--health-port", "0", "--bind-address", "127.0.0.1")
        with process(*command, *ports, log=Path(folder) / "operator.log") as operator:
            row = a_day(cluster, key, scenario, traces, seed)
            return row | {"cpu_seconds": sum(cpu_s(operator.pid))}


def end_to_end(scenario: Scenario, traces: Traces, seed: int, hours: float = HOURS) -> None:
    """Print one table: two days with the operator, and the same two in the replay."""
    small = replace(scenario, nodes=NODES, hours=hours, warm_up=hours * WARM_UP, begins=hours)
    with ThreadPoolExecutor(len(KEYS)) as threads:
        rows = list(threads.map(lambda key: a_day_of_processes(key, small, traces, seed), KEYS))
    print(
        f"\n{small.name}, {NODES} nodes, {hours * 60:.0f} minutes, seed {seed}: {traces.name}\n\n{heading()}"
    )
    for key, row in zip(KEYS, rows, strict=True):
        print(line(f"{key}, end to end", [row]))
        print(line(f"{key}, replay", [play(small, POLICIES[key], traces, seed).row()]))
