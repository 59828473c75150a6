"""Another scheduler on the same nodes: each sees the other's pods, and kubelets settle what neither saw."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from e2e.polls import eventually
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

THEIRS = "first-fit"


def milli(pod: Obj) -> int:
    """What the scene's pods request: all of them say so in milli-cpu."""
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))


@contextlib.asynccontextmanager
async def first_fit(scene: Scene, nodes: list[str], room: int) -> AsyncIterator[None]:
    """A scheduler of its own: lists, takes the first node with room for each pod of its name, binds.

    Between its list and its bindings it is blind, as every scheduler is for as long as a watch takes.
    """

    async def bind(pod: Obj, node: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = scene.path(f"pods/{pod['metadata']['name']}/binding")
        await scene.speaker.request("POST", path, body)

    async def serve() -> None:
        while True:
            pods = await scene.pods()
            taken = Counter[str]()
            for pod in pods:
                if pod["spec"].get("nodeName") and pod["status"].get("phase") not in {"Failed", "Succeeded"}:
                    taken[pod["spec"]["nodeName"]] += milli(pod)
            for pod in pods:
                if pod["spec"]["schedulerName"] == THEIRS and not pod["spec"].get("nodeName"):
                    node = next((one for one in nodes if taken[one] + milli(pod) <= room), None)
                    if node is not None:
                        taken[node] += milli(pod)
                        await bind(pod, node)
            await asyncio.sleep(0.1)

    task = asyncio.ensure_future(serve())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_two_schedulers_share_nodes(scene: Scene, operator: Operator) -> None:
    """Fifty pods, half of them somebody else's, on room for thirty; no kubelet runs more than fits."""
    nodes = [await scene.node(suffix, cpu="1") for suffix in "abc"]
    await scene.scheduling()
    async with first_fit(scene, nodes, room=1000):
        for number in range(25):
            await scene.pod(f"ours-{number}")
            await scene.pod(f"theirs-{number}", schedulerName=THEIRS)

        def settled(pods: list[Obj]) -> bool:
            phases = Counter(str(pod["status"].get("phase", "Pending")) for pod in pods)
            bound = sum(1 for pod in pods if pod["spec"].get("nodeName"))
            return phases["Running"] + phases["Failed"] == bound and phases["Running"] == 30

        pods = await eventually(scene.pods, settled)

    running = Counter(pod["spec"]["nodeName"] for pod in pods if pod["status"].get("phase") == "Running")
    assert dict(running) == dict.fromkeys(nodes, 10)
    whose = {pod["spec"]["schedulerName"] for pod in pods if pod["status"].get("phase") == "Running"}
    assert whose == {scene.scheduler, THEIRS}
    refused = [pod for pod in pods if pod["status"].get("phase") == "Failed"]
    assert {pod["status"]["reason"] for pod in refused} <= {"OutOfcpu"}
    ours = [pod for pod in refused if pod["spec"]["schedulerName"] == scene.scheduler]
    await eventually(
        lambda: asyncio.to_thread(
            operator.metric, "plimsoll_scheduler_kubelet_refusals_total", profile=scene.scheduler
        ),
        lambda count: count == len(ours),
    )


async def test_a_pod_that_its_kubelet_refuses_is_counted_and_told(scene: Scene, operator: Operator) -> None:
    """The node promises more than its kubelet has: something took the room that the API does not show."""
    node = await scene.node("proud", cpu="1")
    await scene.scheduling()
    room = {"cpu": "4", "memory": "16Gi", "pods": "50"}
    status = {"status": {"capacity": room, "allocatable": room}}
    path = f"/api/v1/nodes/{node}/status"
    (await scene.speaker.request("PATCH", path, status, sends=MERGE)).accepted()
    await scene.pod("big", cpu="3000m")

    pod = await eventually(lambda: scene.a_pod("big"), lambda found: found["status"].get("phase") == "Failed")
    (event,) = await eventually(lambda: scene.events("big", "NotAdmitted"))

    assert (pod["spec"]["nodeName"], pod["status"]["reason"]) == (node, "OutOfcpu")
    assert f"the kubelet of {node} did not admit the pod: OutOfcpu" in event["note"]
    assert event["reportingController"] == scene.scheduler
    count = await asyncio.to_thread(
        operator.metric,
        "plimsoll_scheduler_kubelet_refusals_total",
        profile=scene.scheduler,
        reason="OutOfcpu",
    )
    assert count == 1
    assert "pod not admitted" in operator.said()
