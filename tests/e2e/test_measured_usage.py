"""Rebalancing by usage from the metrics API instead of requests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from e2e.conftest import define
from e2e.polls import eventually
from e2e.replayed_load import USAGE, a_measured_node, placing
from e2e.scene import Scene
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e


def by_load(**providers: object) -> Obj:
    """LowNodeUtilization by the metrics API."""
    return {
        "name": "LowNodeUtilization",
        "args": {
            "thresholds": {"cpu": 20},
            "targetThresholds": {"cpu": 60},
            "metricsUtilization": {"source": "KubernetesMetrics"},
            **providers,
        },
    }


async def test_pods_leave_the_node_that_is_busy_whatever_they_request(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """Four pods request a tenth of a core and use nine: by load alone one node is full."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig)
        scene = await Scene(speaker).begin()
        old = await a_measured_node(scene, "old")
        placed_by = await scene.policy(placing(scene, "NodeLoad"), "scheduler")
        await scene.until_condition(placed_by, "Ready", "True")
        await scene.deployment("web", 4, annotations={USAGE: "cpu=900m,memory=100Mi"})
        assert await scene.running(app="web") == [old] * 4
        await a_measured_node(scene, "new")

        policy = await scene.policy(
            scene.rebalancing(by_load(), metricsProviders=[{"source": "KubernetesMetrics"}])
        )

        nodes = await eventually(
            lambda: scene.running(app="web"), lambda found: len(found) == 4 and len(set(found)) == 2
        )
        assert max(Counter(nodes).values()) < 4
        # A run that finds no recent measurement, on a machine with other work, is followed by one that does.
        await eventually(
            lambda: scene.policy_status(policy),
            lambda told: "lastRun" in told and not told["lastRun"].get("failures"),
        )
        assert await operator.stop() == 0


async def test_a_small_pod_makes_room_for_a_large_one_that_fits_nowhere_cool(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """By requests the cool node is full. The large pod is evicted when the small one's place is free."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig)
        scene = await Scene(speaker).begin()
        await scene.until_condition(
            await scene.policy(placing(scene, "NodeLoad"), "scheduler"), "Ready", "True"
        )
        nodes = {}
        for node, app, replicas, use in (
            ("hot", "large", 2, 1_800),
            ("cool", "small", 2, 80),
            ("mid", "other", 1, 1_500),
        ):
            nodes[node] = await a_measured_node(scene, node)
            uses = {USAGE: f"cpu={use}m,memory=100Mi"}
            await scene.deployment(app, replicas, annotations=uses, memory="8Gi")  # half of a node
            assert await scene.running(app=app) == [nodes[node]] * replicas

        await scene.policy(scene.rebalancing(by_load(), metricsProviders=[{"source": "KubernetesMetrics"}]))

        records = await scene.until_finished(2)
        assert [
            (each["spec"]["fromNode"], each["spec"]["targetNode"], each["status"]["phase"])
            for each in sorted(records, key=lambda each: each["spec"]["bundle"]["position"])
        ] == [(nodes["cool"], nodes["mid"], "Settled"), (nodes["hot"], nodes["cool"], "Settled")]
        assert sorted(await scene.running(app="large")) == sorted([nodes["hot"], nodes["cool"]])
        assert sorted(await scene.running(app="small")) == sorted([nodes["cool"], nodes["mid"]])
        assert await operator.stop() == 0


async def test_a_cluster_without_the_metrics_api_degrades_the_strategy_only(scene: Scene) -> None:
    """A sentence in the status, and no eviction; served without readings is no better than not served."""
    await scene.node("a")
    await scene.node("b")
    name = await scene.policy(
        scene.rebalancing(by_load(), metricsProviders=[{"source": "KubernetesMetrics"}])
    )

    status = await scene.runs(name, 1)

    (failure,) = status["lastRun"]["failures"]
    assert failure["name"] == "LowNodeUtilization"
    assert "metrics API" in failure["message"]
    degraded = await scene.until_condition(name, "Degraded", "True", "StrategyFailed")
    assert "LowNodeUtilization could not judge the cluster: " in degraded["message"]
    assert "metrics API" in status["lastRun"]["message"]


async def test_what_a_prometheus_answers_is_not_shown(scene: Scene) -> None:
    """Else a policy would read for its writer what only the operator can reach."""
    secret = "the-secret-of-another-service"

    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({"status": "error", "errorType": "bad_data", "error": secret}, status=400)

    application = web.Application()
    application.router.add_get("/api/v1/query", refuse)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        await scene.node("a")
        await scene.node("b")
        strategy = by_load(
            thresholds={"MetricResource": 20},
            targetThresholds={"MetricResource": 60},
            metricsUtilization={"source": "Prometheus", "prometheus": {"query": "up"}},
        )
        name = await scene.policy(
            scene.rebalancing(
                strategy, metricsProviders=[{"source": "Prometheus", "prometheus": {"url": url}}]
            )
        )

        degraded = await scene.until_condition(name, "Degraded", "True", "StrategyFailed")

        told = f"Prometheus at {url} answered HTTP 400: error type bad_data, check the query"
        assert told in degraded["message"]
        assert secret not in str(await scene.policy_status(name))
    finally:
        await runner.cleanup()
