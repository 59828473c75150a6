"""A day of the load benchmark, played by a real operator: it counts what the operator does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from load_days.measures import Tally
from load_days.policies import a_profile
from load_days.replayed_cluster import SCHEDULER, ReplayedCluster, Unplaced
from load_days.scenarios import Scenario
from load_days.traces import synthetic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

CRDS = "crds"
NODES = 2
SMALL = Scenario("small", 0.5, nodes=NODES, hours=0.1, warm_up=-1.0, begins=1.0)


async def test_a_replayed_day_sees_placements_moves_and_use(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator], pytestconfig: pytest.Config
) -> None:
    """Six minutes in six seconds: every pod has a node, and one that is evicted is a move and is replaced."""
    traces = synthetic(rows=40)
    cluster = start_roadstead(
        nodes=NODES,
        node_cpu=f"{traces.node_cpu}m",
        node_memory=str(traces.node_memory),
        node_pods=234,
        kubelets=True,
    )
    cluster.apply(*sorted((pytestconfig.rootpath / CRDS).glob("*.yaml")))
    operator = start_operator(cluster.kubeconfig)
    world = Unplaced(SMALL, traces, 1, a_profile())
    tally = Tally(world)
    day = ReplayedCluster(cluster, world, tally, minute_s=1.0)
    cluster.apply(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": "load"},
            "spec": {"scheduling": {"schedulerName": SCHEDULER}},
        }
    )
    day.begin()
    assert len(world.running) == len(world.tenants) > 10
    (first, *_) = cluster.list("pods", "default")
    cluster.request(
        "POST",
        f"/api/v1/namespaces/default/pods/{first['metadata']['name']}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": first["metadata"]["name"]}},
    )
    day.go_on()
    found = tally.figures()
    assert found.evictions == 1
    assert found.pending_minutes <= 2
    assert found.mean == pytest.approx(50, abs=20)
    used = cluster.request("GET", "/apis/metrics.k8s.io/v1beta1/nodes")["items"]
    shares = [int(each["usage"]["cpu"].removesuffix("n")) / 10**6 / traces.node_cpu for each in used]
    assert sum(shares) / NODES == pytest.approx(found.mean / 100, abs=0.1)
    assert await operator.stop() == 0
