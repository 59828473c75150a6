"""A plan does not depend on the order in which nodes and pods came: an operator and a list see the same."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOW = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 40}}


def a_drifted_cluster(seed: int) -> Cluster:
    """Always the same objects, in an order of their own; a node that went has moved the last row."""
    order = random.Random(seed)
    nodes = [a_node(f"n{number:02}", taints=["old:NoSchedule"] if number < 2 else ()) for number in range(16)]
    pods = [
        a_pod(f"p{number}", labels={"app": f"a{number % 5}"}, owner=f"ReplicaSet/a{number % 5}", cpu="400m",
              node=f"n{number % 6:02}")
        for number in range(40)
    ]  # fmt: skip
    cluster = Cluster()
    for objects in (nodes, pods):
        order.shuffle(objects)
    for node in [a_node("gone"), *nodes]:
        cluster.set_node(node)
    cluster.remove_node("gone")
    for pod in pods:
        cluster.place(cluster.templates.info(pod), pod.spec.node_name)
    return cluster


def a_policy(planner: Planner, *strategies: str) -> RebalancingConfig:
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    registry = StrategyRegistry(IN_TREE)
    args = {"LowNodeUtilization": LOW}
    profile = build_profile(ProfileConfig("default-scheduler"), Registry(PLUGINS), defaults)
    return replace(
        RebalancingConfig(
            strategies=[registry.build(name, args.get(name, {}), name) for name in strategies],
            evictors=(EvictorRegistry(EVICTORS).build("DefaultEvictor", {}, "evictor"),),
            profiles={"default-scheduler": profile},
        ),
        limits=Limits(per_node=Ceiling(count=4), per_workload=NO_CEILING),
        planner=planner,
    )


@pytest.mark.parametrize("planner", [Planner.PROVEN, Planner.UPSTREAM])
@pytest.mark.parametrize(
    "strategies",
    [
        ("RemovePodsViolatingNodeTaints", "RemoveDuplicates", "LowNodeUtilization"),
        ("RemoveDuplicates", "LowNodeUtilization"),
    ],
)
def test_the_order_of_arrival_changes_no_move(planner: Planner, strategies: tuple[str, ...]) -> None:
    """The same pods, in the same order, to the same nodes."""
    policy = a_policy(planner, *strategies)
    plans = [
        [
            (move.pod.name, move.source, move.target, move.strategy, move.gain)
            for move in make_plan(policy, a_drifted_cluster(seed), PlanningContext(now=NOW)).moves
        ]
        for seed in range(3)
    ]

    assert plans[0]
    assert plans[1:] == plans[:1] * 2
