"""Pods are placed, or told why not, as a user of kube-scheduler knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from e2e.polls import eventually, throughout
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e


async def nodes_elsewhere(scene: Scene) -> int:
    """Nodes of the cluster that are not the scene's."""
    every = await scene.items("/api/v1/nodes")
    return sum(scene.name not in node["metadata"]["name"] for node in every)


async def told(scene: Scene, pod: str) -> Obj:
    """Wait for the condition that says why a pod is not scheduled."""
    return await eventually(lambda: scene.condition(pod), lambda one: one.get("status") == "False")


async def test_the_smallest_policy_places_pods(scene: Scene) -> None:
    """A scheduler name is all it takes; events and conditions are kube-scheduler's."""
    node = await scene.node("a")
    await scene.pod("early")
    await scene.scheduling()
    await scene.pod("late")

    assert await scene.until_bound("early") == await scene.until_bound("late") == node
    (event,) = await eventually(lambda: scene.events("late", "Scheduled"))
    assert event["note"] == f"Successfully assigned {scene.name}/late to {node}"
    assert (event["type"], event["action"]) == ("Normal", "Binding")
    assert event["reportingController"] == scene.scheduler
    assert (await scene.condition("late"))["status"] == "True"
    assert len(await scene.until_running(2)) == 2


async def test_a_pod_that_was_bound_before_its_kubelet_spoke_runs(scene: Scene) -> None:
    """So it is with a scheduler that sees a new node before the test has made it ready."""
    node = await scene.node("a", is_up=False)
    await scene.pod("early", nodeName=node)

    await scene.start_kubelet(node)

    assert await scene.until_running(1) == [node]


async def test_a_pod_that_fits_nowhere_gets_a_reason_and_is_placed_when_a_node_comes(scene: Scene) -> None:
    """In kube-scheduler's words, with every node accounted for."""
    await scene.node("small", cpu="1")
    await scene.scheduling()
    await scene.pod("big", cpu="3")

    condition = await told(scene, "big")
    elsewhere = await nodes_elsewhere(scene)
    (event,) = await eventually(lambda: scene.events("big", "FailedScheduling"))
    big = await scene.node("big", cpu="4")

    assert condition["reason"] == "Unschedulable"
    refusal = "1 Insufficient cpu"
    if elsewhere:
        refusal += f", {elsewhere} node(s) didn't match Pod's node affinity/selector"
    assert condition["message"].startswith(f"0/{elsewhere + 1} nodes are available: {refusal}.")
    assert event["note"] == condition["message"]
    assert (event["type"], event["action"]) == ("Warning", "Scheduling")
    assert await scene.until_bound("big") == big


async def test_a_pod_is_placed_when_room_is_freed(scene: Scene) -> None:
    """The deletion of another pod is an event that helps."""
    node = await scene.node("only", cpu="1")
    await scene.scheduling()
    await scene.pod("first", cpu="800m")
    await scene.until_bound("first")
    await scene.pod("second", cpu="800m")
    await told(scene, "second")

    await scene.speaker.request("DELETE", scene.path("pods/first"))

    assert await scene.until_bound("second") == node


async def test_a_taint_is_named_with_its_key_and_value(scene: Scene) -> None:
    """And its removal places the pod."""
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    node = await scene.node("tainted", taints=[taint])
    await scene.scheduling()
    await scene.pod("web")

    condition = await told(scene, "web")
    await scene.change_node(node, {"spec": {"taints": None}})

    assert "1 node(s) had untolerated taint(s)" in condition["message"]
    assert await scene.until_bound("web") == node


async def test_a_cordoned_node_is_left_alone(scene: Scene) -> None:
    """Until it is uncordoned."""
    node = await scene.node("cordoned")
    await scene.change_node(node, {"spec": {"unschedulable": True}})
    await scene.scheduling()
    await scene.pod("web")

    condition = await told(scene, "web")
    await scene.change_node(node, {"spec": {"unschedulable": None}})

    assert "1 node(s) were unschedulable" in condition["message"]
    assert await scene.until_bound("web") == node


async def test_a_gated_pod_waits_for_its_gates(scene: Scene) -> None:
    """It is neither placed nor called unschedulable, until the last gate is gone."""
    node = await scene.node("a")
    await scene.scheduling()
    await scene.pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    await scene.pod("free")
    await scene.until_bound("free")

    assert await scene.node_of("gated") == ""
    assert (await scene.condition("gated"))["reason"] == "SchedulingGated"
    change: Any = {"spec": {"schedulingGates": []}}
    (await scene.speaker.request("PATCH", scene.path("pods/gated"), change, sends=MERGE)).accepted()
    assert await scene.until_bound("gated") == node
    assert await scene.events("gated", "FailedScheduling") == []


async def test_pods_of_other_schedulers_are_not_touched(scene: Scene) -> None:
    """A name that no policy serves is somebody else's business."""
    await scene.node("a")
    await scene.scheduling()
    await scene.pod("theirs", schedulerName="somebody-else")
    await scene.pod("ours")
    await scene.until_bound("ours")

    assert await scene.node_of("theirs") == ""
    assert await scene.condition("theirs") == {}


async def test_many_pods_never_overcommit_a_node(scene: Scene) -> None:
    """Forty pods on room for thirty: thirty run, ten get a reason, none is refused by a kubelet."""
    for suffix in ("a", "b", "c"):
        await scene.node(suffix, cpu="1")
    await scene.scheduling()
    for number in range(40):
        await scene.pod(f"pod-{number}")

    nodes = await scene.until_running(30)
    waiting = await eventually(
        scene.pods,
        lambda pods: (
            sum(
                any(
                    each["type"] == "PodScheduled" and each["status"] == "False"
                    for each in pod["status"].get("conditions", [])
                )
                for pod in pods
            )
            == 10
        ),
    )

    assert sorted(nodes.count(node) for node in set(nodes)) == [10, 10, 10]
    assert {pod["status"].get("phase", "Pending") for pod in waiting} == {"Running", "Pending"}


async def test_a_pod_bound_by_somebody_else_is_left_where_it_is(scene: Scene) -> None:
    """Another scheduler was faster: no event, no second binding, and its room counts."""
    node = await scene.node("only", cpu="1")
    await scene.scheduling()
    await scene.pod("theirs", schedulerName="somebody-else", cpu="800m")
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "theirs"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    (await scene.speaker.request("POST", scene.path("pods/theirs/binding"), binding)).accepted()
    await scene.pod("ours", cpu="800m")

    assert "1 Insufficient cpu" in (await told(scene, "ours"))["message"]
    await throughout(lambda: scene.node_of("ours"), lambda name: name == "", 0.3)
