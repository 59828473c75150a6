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
    """Nodes come and go with the demand; no pod is moved to or off a node that goes, none twice over."""
    day, conditions = await a_day(autoscaler)

    assert day.wrong == []
    assert conditions == {}
    assert not {"moves", "nodes added", "nodes removed"} - day.counts.keys()
    assert max(day.changes_of_mind.values(), default=0) <= 1


async def test_two_that_empty_nodes_are_said() -> None:
    """With the node, and what to switch off on which side; not for one that removes empty nodes only."""
    day, conditions = await a_day(replace(KARPENTER, empties_below=0.6, idle_s=120.0), hours=4.0)

    assert day.counts["pods that the autoscaler moved"]
    reason, said = conditions["Contested"]
    assert reason == "AutoscalerEmptiesNodes"
    assert "Karpenter, which was about to remove node" in said
    assert "consolidationPolicy: WhenEmpty" in said


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
