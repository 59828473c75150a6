"""One story a decision: the log tells it, line by line, under one key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from e2e.conftest import define
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e


@pytest.mark.slow(reason="a cluster and an operator of its own, for it logs otherwise")
async def test_a_decision_is_logged_from_its_beginning_to_its_end(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """In JSON: a placement by its pod's uid, one that finds no place too, and a move by its record."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig, "--log-format", "json", "--log-level", "DEBUG")
        operator.until_ready()
        scene = await Scene(speaker).begin()
        old = await scene.node("old", cpu="1")
        await scene.scheduling()
        await scene.deployment("web", 2)
        before = await scene.pods(app="web")
        big = await scene.pod("big", cpu="64")
        await eventually(lambda: scene.condition("big"))
        await scene.node("new", cpu="1")
        await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
        await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints"))
        records = await scene.until_finished(2)

        def story(decision: str) -> list[dict[str, Any]]:
            return [line for line in lines if line.get("decision") == decision]

        assert await operator.stop() == 0
        lines = [json.loads(line) for line in operator.said().splitlines()]

    for pod in before:
        told = story(pod["metadata"]["uid"])
        assert [line["event"] for line in told] == ["placement: assumed", "placement: bound"]
        assert {(line["pod"], line["node"]) for line in told} == {
            (f"{scene.name}/{pod['metadata']['name']}", old)
        }
    refused = story(big["metadata"]["uid"])
    assert {line["event"] for line in refused} == {"placement: not placed"}
    assert "Insufficient cpu" in refused[0]["reason"]
    for record in records:
        told = story(f"{scene.name}/{record['metadata']['name']}")
        phases = [each["phase"] for each in record["status"]["transitions"]]
        assert [line["event"] for line in told] == [f"move: {phase}" for phase in phases]
        assert {line["uid"] for line in told} == {record["spec"]["pod"]["uid"]}
        assert phases[-1] == "Settled"
