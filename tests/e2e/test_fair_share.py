"""Queues share a cluster: the smallest share is next, limits hold, and deserved shares are reclaimed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from e2e.conftest import define
from e2e.polls import eventually, throughout
from e2e.scene import Scene
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

QUEUE_LABEL = "plimsoll.dev/queue"


async def sharing(scene: Scene, *queues: dict[str, Any], **more: Any) -> None:
    """A policy with these queues."""
    spec = {"schedulerName": scene.scheduler, "fairShare": {"queues": list(queues), **more}}
    name = await scene.policy({"scheduling": spec}, "fair")
    await scene.until_condition(name, "Ready", "True")


async def pods(scene: Scene, queue: str, count: int, **spec: Any) -> None:
    """Pods of a queue."""
    for number in range(count):
        await scene.pod(f"{queue}-{number}", labels={QUEUE_LABEL: queue}, cpu="1", **spec)


async def running(scene: Scene) -> dict[str, int]:
    """Pods that run, by queue."""
    return {queue: len(await scene.running(**{QUEUE_LABEL: queue})) for queue in ("a", "b")}


@asynccontextmanager
async def own_cluster(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> AsyncIterator[Scene]:
    """A scene on a cluster without other nodes: shares are of the whole cluster."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig)
        yield await Scene(speaker).begin()
        assert await operator.stop() == 0


async def test_room_is_shared_by_weight(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """All of b's pods came first; of four places a, weight three, gets three."""
    async with own_cluster(start_roadstead, start_operator) as scene:
        await pods(scene, "b", 4)
        await pods(scene, "a", 4)
        await scene.node("n", cpu="4")
        await sharing(scene, {"name": "a", "weight": 3}, {"name": "b"})

        await eventually(lambda: running(scene), lambda got: got == {"a": 3, "b": 1})


async def test_a_queue_takes_back_what_it_deserves_and_no_more(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """B runs on all four places when a, of another team, comes with as many pods: in the end each has two."""
    async with own_cluster(start_roadstead, start_operator) as scene:
        for suffix in ("n0", "n1"):
            await scene.node(suffix, cpu="2")
        teams: list[dict[str, Any]] = [{"name": f"team-{queue}"} for queue in "ab"]
        queues = [{"name": queue, "parent": f"team-{queue}", "guaranteed": {"cpu": "1"}} for queue in "ab"]
        await sharing(scene, *teams, *queues, reclaim="AboveDeserved")
        await pods(scene, "b", 4)
        await eventually(lambda: running(scene), lambda got: got == {"a": 0, "b": 4})

        await pods(scene, "a", 4)

        await eventually(lambda: running(scene), lambda got: got == {"a": 2, "b": 2})
        await throughout(lambda: running(scene), lambda got: got == {"a": 2, "b": 2}, 1.0)
        # The others may have been tried last before all had settled: a new pod is tried now.
        await scene.pod("a-late", labels={QUEUE_LABEL: "a"}, cpu="1")
        condition = await eventually(
            lambda: scene.condition("a-late"), lambda found: found.get("reason") == "Unschedulable"
        )
        assert "reclaim: queue a would be above what it deserves." in condition["message"]


async def test_a_queue_stays_below_its_capability(scene: Scene) -> None:
    """The third pod waits, says why, and goes when another one has left."""
    await scene.node("n", cpu="8")
    await sharing(scene, {"name": "a", "capability": {"cpu": "2"}})
    await pods(scene, "a", 3)
    await pods(scene, "b", 2)

    await eventually(lambda: running(scene), lambda got: got == {"a": 2, "b": 2})
    waiting = [pod["metadata"]["name"] for pod in await scene.pods() if not pod["spec"].get("nodeName")]
    condition = await eventually(lambda: scene.condition(waiting[0]), lambda one: one.get("message"))
    assert condition["message"].endswith("queue a has no capability left for this pod: cpu.")
    assert condition["reason"] == "NotReadyForScheduling"  # no autoscaler acts on it
    gone = next(
        pod["metadata"]["name"]
        for pod in await scene.pods(**{QUEUE_LABEL: "a"})
        if pod["metadata"]["name"] != waiting[0]
    )
    await scene.speaker.request("DELETE", scene.path(f"pods/{gone}"))

    await scene.until_bound(waiting[0])
