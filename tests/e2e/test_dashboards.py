"""Every panel of the dashboards has data when a real Prometheus scrapes the demo."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from deploy.test_alerts import groups
from deploy.test_dashboards import FILES, expressions
from e2e.conftest import ROOT
from e2e.drawn_dashboards import draw
from e2e.polls import eventually
from e2e.prometheus import Prometheus, prometheus
from e2e.replayed_load import a_measured_node, by_load
from e2e.scene import Scene
from e2e.served_extenders import Extender, extenders_served, with_extenders
from e2e.speaker import speaking
from forked import NURSERY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.e2e

#: What Grafana puts in for its variables.
VARIABLES = {
    "$__rate_interval": "5m",
    "$cluster": ".*",
    "$job": "plimsoll",
    "$policy": ".+",
    "$profile": ".+",
}

#: Seconds for the demo to end, and for the data that come after it.
TOLD_S, FILLED_S = 300.0, 300.0


@asynccontextmanager
async def demo(folder: Path) -> AsyncIterator[Path]:
    """``make demo KEEP=1``: the folder of its processes, once its operator serves metrics."""
    out = folder / "demo.log"
    with out.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            NURSERY.commands / "python",
            *("-m", "demo", "--nodes", "10", "--keep"),
            cwd=ROOT,
            env={
                **os.environ,
                "TMPDIR": str(folder),
                "PYTHONUNBUFFERED": "1",
                "PYTHONPATH": str(ROOT / "examples"),
            },
            stdout=sink,
            stderr=sink,
        )

    async def started() -> Path | None:
        assert process.returncode is None, out.read_text()
        return next((log.parent for log in logs_of(folder) if port_of(log)), None)

    try:
        home = await eventually(started, within_s=TOLD_S)
        assert home is not None
        yield home
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def logs_of(folder: Path) -> list[Path]:
    """The operators' logs."""
    return list(folder.glob("plimsoll-demo-*/operator.log"))


def port_of(log: Path) -> int:
    """Where an operator serves metrics, by its log; 0 before it does."""
    found = re.search(r"\bport\W{1,4}(\d+)", re.sub(r"\x1b\[[\d;]*m", "", log.read_text(errors="replace")))
    return int(found[1]) if found else 0


async def what_the_demo_does_not_tell(scene: Scene, extender: Extender) -> None:
    """Records above their number, a failing strategy, pods that fit nowhere, ask an extender or preempt."""
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"{scene.name}-high"},
        "value": 1000,
    }
    await scene.make("/apis/scheduling.k8s.io/v1/priorityclasses", high)
    old = await scene.node("old", cpu="1")
    await scene.scheduling()
    await scene.deployment("web", 2)
    node = await scene.node("new", cpu="1", allocatable={"pods": "1000"})
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    moving = scene.rebalancing("RemovePodsViolatingNodeTaints", records={"maxCount": 1})
    policy = await scene.policy(moving)
    await eventually(lambda: scene.running(app="web"), lambda nodes: nodes == [node, node])
    await scene.until_finished(1)
    await scene.runs(policy, 2)
    failing = {"name": "RemovePodsViolatingNodeAffinity", "args": {"nodeAffinityType": ["sometimes"]}}
    await scene.policy(scene.rebalancing(failing), "failing")
    await scene.pod("big", cpu="2")
    await extender.does(filter={"only": [node]})
    scheduler, _ = await with_extenders(scene, {"urlPrefix": extender.url, "filterVerb": "filter"})
    for number in range(3):
        await scene.pod(f"extended-{number}", schedulerName=scheduler, cpu="1m")
        await scene.until_bound(f"extended-{number}")
        await asyncio.sleep(1)  # so that Prometheus sees one after the other
    await a_measured_node(scene, "measured", unschedulable=True)  # or the big pod would fit
    measuring = scene.rebalancing(
        by_load(), mode="DryRun", metricsProviders=[{"source": "KubernetesMetrics"}]
    )
    await scene.policy(measuring, "measuring")
    await scene.pod("low", cpu="700m")
    await scene.until_bound("low")
    await scene.pod("high", cpu="700m", priorityClassName=f"{scene.name}-high")
    await scene.until_bound("high")


async def without_data(server: Prometheus) -> dict[str, str]:
    """The queries of panels without results, by where they are."""
    empty = {}
    for where, expression in expressions():
        query = expression
        for name, value in VARIABLES.items():
            query = query.replace(name, value)
        if not await server.values(query):
            empty[where] = query
    return empty


@pytest.mark.slow(reason="the whole story of a small cluster, and as much again")
async def test_every_panel_has_data_and_every_alert_is_evaluated(tmp_path: Path) -> None:
    """While the demo runs, and after it; and no alert fires about a cluster that is well."""
    with prometheus(tmp_path, groups()) as server:
        await eventually(server.is_ready)
        async with demo(tmp_path) as home:
            server.scrape(port_of(home / "operator.log"))

            async def told() -> str:
                text = (tmp_path / "demo.log").read_text(errors="replace")
                operator = (home / "operator.log").read_text(errors="replace")
                assert "✗" not in text, f"{text}\n{operator}"
                return text

            await eventually(told, lambda text: "Still running" in text, within_s=TOLD_S)
            async with speaking(home / "kubeconfig") as speaker:
                with extenders_served() as served:
                    scene = await Scene(speaker).begin()
                    await what_the_demo_does_not_tell(scene, Extender(served, scene.name))
                    placed = 0

                    async def more_pods() -> dict[str, str]:
                        """Place some: one attempt of ten is timed, and a rate needs two that are."""
                        nonlocal placed
                        for _ in range(5):
                            await scene.pod(f"more-{placed}", cpu="0")  # or they would fill the node
                            await scene.until_bound(f"more-{placed}")
                            placed += 1
                        await asyncio.sleep(1)  # so that Prometheus sees these after those before
                        return await without_data(server)

                    await eventually(more_pods, lambda empty: not empty, within_s=FILLED_S)
                    if folder := os.environ.get("PLIMSOLL_DASHBOARDS"):
                        await draw(server, FILES, VARIABLES, ROOT / folder)
        rules = (await server.ask("/api/v1/rules"))["data"]["groups"][0]["rules"]

    assert {rule["name"]: (rule["health"], rule.get("lastError", "")) for rule in rules} == {
        rule["alert"]: ("ok", "") for rule in groups()["groups"][0]["rules"]
    }
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []
