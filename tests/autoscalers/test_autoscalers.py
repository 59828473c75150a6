"""A policy that empties nodes, and an autoscaler that removes empty ones, over 24 hours of virtual time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from autoscalers.player import CLUSTER_AUTOSCALER, KARPENTER, POLICY, AutoscaledWorld, Autoscaler, Day
from plimsoll.strategies.consolidate_nodes import ConsolidateNodes
from plimsoll.testing.builders import a_node, a_pod
from strategies.builders import a_strategy
from strategies.making_room import planned


def a_policy() -> dict[str, Any]:
    """Empties nodes that are half used, for a scheduler that fills nodes."""
    fit = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    return {
        "kind": "SchedulingPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "scheduling": {
                "schedulerName": "default-scheduler",
                "pluginConfig": [{"name": "NodeResourcesFit", "args": fit}],
            },
            "rebalancing": {
                "mode": "Enforce",
                "evictor": {"minReplicas": 0},
                "strategies": [
                    {"name": "ConsolidateNodes", "args": {"thresholds": {"cpu": 50}, "headroomPercent": 0}}
                ],
            },
        },
    }


async def a_day(
    autoscaler: Autoscaler, hours: float = 24.0, seed: int = 44
) -> tuple[Day, dict[str, tuple[str, str]]]:
    """The day, and the conditions of the policy that hold at its end."""
    world = AutoscaledWorld(autoscaler, seed)
    async with world.running():
        for _ in range(3):
            world.add_node()
        await world.set_policy(a_policy())
        day = await world.play(hours)
        return day, world.conditions


@pytest.mark.parametrize("autoscaler", [CLUSTER_AUTOSCALER, KARPENTER], ids=lambda each: each.name)
async def test_a_day_without_a_fight(autoscaler: Autoscaler) -> None:
    """No pod is moved to or off a node that goes, no node is emptied twice, or filled and emptied again.

    docs/rebalancing/autoscalers.md has the figures.
    """
    day, conditions = await a_day(autoscaler)

    assert day.wrong == []
    assert conditions == {}
    assert day.counts == {"moves": 2, "nodes added": 6, "nodes removed": 7}
    assert day.emptied
    assert day.filled
    assert day.changes_of_mind == {}


@pytest.mark.parametrize(
    ("autoscaler", "remedy"),
    [
        pytest.param(KARPENTER, "consolidationPolicy: WhenEmpty", id="Karpenter"),
        pytest.param(CLUSTER_AUTOSCALER, "--scale-down-utilization-threshold=0", id="cluster-autoscaler"),
    ],
)
async def test_two_that_empty_nodes_are_said(autoscaler: Autoscaler, remedy: str) -> None:
    """With the node, and what to switch off on which side; the pods of such a node are left to its owner."""
    day, conditions = await a_day(replace(autoscaler, empties_below=0.6, idle_s=120.0), hours=4.0)

    assert day.wrong == []
    assert day.counts["pods that the autoscaler moved"]
    reason, said = conditions["Contested"]
    assert reason == "AutoscalerEmptiesNodes"
    assert f"{autoscaler.name}, which was about to remove node" in said
    assert remedy in said


async def moves_with(taint: str, marked: str) -> dict[str, str]:
    """Where the pods go if a node has the taint: of a little used, a half used and a full one."""
    world = AutoscaledWorld(KARPENTER, 0)
    used = {"little": "500m", "half": "1500m", "full": "3"}
    for name, cpu in used.items():
        node: dict[str, Any] = {"kind": "Node", "metadata": {"name": name}}
        node["status"] = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "50"}}
        if name == marked:
            effect = "PreferNoSchedule" if taint == CLUSTER_AUTOSCALER.candidate else "NoSchedule"
            node["spec"] = {"taints": [{"key": taint, "effect": effect}]}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
        owner |= {"name": f"rs-{name}", "uid": f"rs-{name}"}
        containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
        pod = {"kind": "Pod", "metadata": {"name": f"on-{name}", "ownerReferences": [owner]}}
        world.apply(node, {**pod, "spec": {"nodeName": name, "containers": containers}})
    async with world.running():
        await world.set_policy(a_policy())
        await world.rebalance(POLICY)
    specs = [each["spec"] for each in world.records.values()]
    return {each["pod"]["name"]: each["targetNode"] for each in specs}


@pytest.mark.parametrize("marked", ["little", "full"])
@pytest.mark.parametrize(
    ("taint", "leaves"),
    [
        ("example.com/any", True),
        ("DeletionCandidateOfClusterAutoscaler", True),
        ("ToBeDeletedByClusterAutoscaler", False),
        ("karpenter.sh/disrupted", False),
        ("karpenter.sh/disruption", False),
        ("aws-node-termination-handler/spot-itn", False),
        ("aws-node-termination-handler/scheduled-maintenance", False),
        ("aws-node-termination-handler/asg-lifecycle-termination", False),
        ("aws-node-termination-handler/rebalance-recommendation", True),
        ("cloud.google.com/impending-node-termination", False),
        ("remediator.kubernetes.azure.com/unschedulable", False),
    ],
)
async def test_a_node_that_goes_is_no_target_and_its_pods_are_left(
    taint: str, leaves: bool, marked: str
) -> None:
    """Without a mark the little used node's pod goes to the full one; a mere candidate's pods may leave."""
    moves = await moves_with(taint, marked)

    if marked == "full":
        assert moves
        assert "full" not in moves.values()
    else:
        assert moves == ({"on-little": "full"} if leaves else {})


@pytest.mark.parametrize(("busy", "moves"), [("4", 2), ("5", 0)])
def test_headroom_of_pause_pods_stays(busy: str, moves: int) -> None:
    """A node with a pod and a pause pod is emptied if both have a place elsewhere, of 6 cpu, or not."""
    nodes = [a_node("full", cpu="6"), a_node("little", cpu="4")]
    pods = [
        a_pod("busy", cpu=busy, node="full", owner="ReplicaSet/busy"),
        a_pod("web", cpu="1", node="little", owner="ReplicaSet/web"),
        a_pod("pause", cpu="1", node="little", owner="ReplicaSet/pause", priority=-10),
    ]
    strategy = a_strategy(ConsolidateNodes, thresholds={"cpu": 50}, headroomPercent=0)

    assert len(planned(strategy, nodes, pods).moves) == moves
