"""Placing and moving by the same numbers, on usage that is replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.conftest import define
from e2e.replayed_load import HIGH, ReplayedLoad, a_measured_node, by_load, placing
from e2e.scene import Scene
from e2e.speaker import speaking
from load_days.traces import synthetic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

#: Milli-cores that each workload uses on average: together 86 % of one node.
MEANS = {"a": 1_100, "b": 800, "c": 620, "d": 480, "e": 440}

#: The samples that are replayed after the moves: the rest of the day, every four hours.
LATER = (48, 96, 144, 192, 240)


def a_day(means: Mapping[str, int]) -> Mapping[str, Sequence[int]]:
    """Series that begin at their mean, then go where a trace goes."""
    rows = synthetic().cpu
    return {
        name: [mean, *(round(mean * float(each)) for each in rows[at, 1:] / rows[at].mean())]
        for at, (name, mean) in enumerate(means.items())
    }


async def test_pods_that_leave_a_hot_node_do_not_come_back(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """A policy that moves by load and places without says so; with NodeLoad the spot ends, and stays away."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig)
        scene = await Scene(speaker).begin()
        day = ReplayedLoad(scene, a_day(MEANS), operator)
        old = await a_measured_node(scene, "old")
        placed_by = await scene.policy(placing(scene), "scheduler")
        await day.begin(list(MEANS), old)
        for suffix in ("new-1", "new-2", "new-3"):
            await a_measured_node(scene, suffix)
        moving = scene.rebalancing(
            by_load(),
            mode="DryRun",
            metricsProviders=[{"source": "KubernetesMetrics"}],
            evictor={"minReplicas": 1},
        )
        policy = await scene.policy(moving)

        degraded = await scene.until_condition(policy, "Degraded", "True", "TwoYardsticks")

        assert f"profile {scene.scheduler} places them without" in degraded["message"]
        await scene.change_policy(placed_by, placing(scene, "NodeLoad"))
        await scene.until_condition(policy, "Degraded", "False")
        assert await day.hot() == [old]
        await scene.change_policy(policy, {"rebalancing": {"mode": "Enforce"}})
        records = await day.until_rest()

        assert any(each["status"]["phase"] == "Settled" for each in records)
        for sample in (*LATER, 0):
            await day.go_to(sample)
        assert await day.hot() == []  # although all pods use what they used then
        for record in await day.until_rest():
            if record["status"]["phase"] != "Cancelled":  # one that was not needed any more
                landed, expected, source, phase, reason = _in_short(record)
                assert (phase, source) == ("Settled", old)
                assert landed == expected != old
                assert reason.startswith("its node is over-used: cpu ")
                cpu = record["spec"]["load"]["resources"][0]
                assert record["spec"]["load"]["basis"] == "Measured"
                assert cpu["source"]["beforePercent"] > HIGH > cpu["target"]["afterPercent"]
        assert operator.metric("plimsoll_rebalancer_reversed_moves_total", policy=policy) == 0
        assert await operator.stop() == 0


def _in_short(record: Obj) -> tuple[str, str, str, str, str]:
    """Where its pod is now and was expected, where it was, how far the move has come, and why."""
    spec, status = record["spec"], record["status"]
    landed = status["replacement"]["node"]
    return landed, spec["targetNode"], spec["fromNode"], status["phase"], spec["reason"]
