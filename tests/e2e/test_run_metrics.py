"""Metrics of rebalancing runs, from a policy's first run until it is deleted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from e2e.operator_process import summed
from e2e.polls import eventually

if TYPE_CHECKING:
    from e2e.operator_process import Operator
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e

TAINTS = "RemovePodsViolatingNodeTaints"


async def test_runs_are_counted_timed_and_say_what_they_find(scene: Scene, operator: Operator) -> None:
    """Two pods on a node that gets a taint are two violations, until the policy may move them."""
    old = await scene.node("old", cpu="1")
    await scene.scheduling()
    await scene.deployment("web", 2)
    await eventually(lambda: scene.running(app="web"), lambda nodes: nodes == [old, old])
    await scene.node("new", cpu="1")
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    policy = await scene.policy(scene.rebalancing(TAINTS, mode="DryRun"))

    def value(name: str, **labels: str) -> float:
        return operator.metric(f"plimsoll_rebalancer_{name}", policy=policy, **labels)

    began = time.time()
    await scene.runs(policy, 2)

    async def succeeded() -> float:
        return value("runs_total", result="succeeded")

    await eventually(succeeded, lambda found: found >= 2)  # counted after the status is written
    assert value("violations", strategy=TAINTS) == 2
    assert value("imbalance_percentage_points", resource="cpu", usage="requests") == pytest.approx(10)

    scraped = operator.ask("/metrics")[1]

    def runs(metric: str, **labels: str) -> float:
        return summed(scraped, f"plimsoll_rebalancer_{metric}", policy=policy, **labels)

    begun = runs("runs_total") - runs("runs_total", result="skipped")  # where the machine is slow
    assert runs("runs_total", result="succeeded") == begun == runs("run_duration_seconds_count")
    assert value("strategy_duration_seconds_count", strategy=TAINTS) >= 2
    assert 0 < value("strategy_duration_seconds_sum") <= value("run_duration_seconds_sum")
    for moment in ("last_success", "next_run", "run_due"):
        assert began < value(f"{moment}_timestamp_seconds") < time.time() + 2
    assert value("moves_in_flight") == 0
    stalled = f'plimsoll_scheduler_stalled_pods{{profile="{scene.scheduler}"}} 0.0'
    assert stalled in operator.ask("/metrics")[1]

    await scene.change_policy(policy, {"rebalancing": {"mode": "Enforce"}})

    async def mended() -> tuple[float, float]:
        return value("violations", strategy=TAINTS), value("moves_in_flight")

    assert await eventually(mended, lambda found: found == (0, 0)) == (0, 0)
    await scene.change_policy(policy, {"suspend": True})

    async def stopped() -> float:
        return value("next_run_timestamp_seconds")

    assert await eventually(stopped, lambda found: found == 0) == 0
    assert value("violations") == 0


async def test_a_strategy_that_fails_is_a_failed_run_and_a_reason(scene: Scene, operator: Operator) -> None:
    """Of the run that it is in; the policy is degraded for it."""
    failing = {"name": "RemovePodsViolatingNodeAffinity", "args": {"nodeAffinityType": ["sometimes"]}}
    await scene.node("a")
    policy = await scene.policy(scene.rebalancing(failing, mode="DryRun"))

    async def failed() -> tuple[float, bool]:
        return (
            operator.metric("plimsoll_policy_degraded", policy=policy, reason="StrategyFailed"),
            operator.metric("plimsoll_rebalancer_runs_total", policy=policy, result="failed") >= 1,
        )

    await eventually(failed, lambda found: found == (1, True))
    assert operator.metric("plimsoll_rebalancer_last_success_timestamp_seconds", policy=policy) == 0
