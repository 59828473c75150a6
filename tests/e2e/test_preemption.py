"""Preemption: victims, budgets and records."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from e2e.polls import eventually, throughout
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e


async def with_classes(scene: Scene, **values: int) -> None:
    """Priority classes of the scene, by suffix."""
    for suffix, value in values.items():
        document: Obj = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": f"{scene.name}-{suffix}"},
            "value": value,
            "preemptionPolicy": "Never" if suffix == "polite" else "PreemptLowerPriority",
        }
        await scene.make("/apis/scheduling.k8s.io/v1/priorityclasses", document)


async def high_pod(scene: Scene, name: str = "high", suffix: str = "high", **spec: object) -> None:
    """A pod that needs most of a small node."""
    await scene.pod(name, cpu="700m", priorityClassName=f"{scene.name}-{suffix}", **spec)  # type: ignore[arg-type] # fields as in the API


async def low_pod(scene: Scene, name: str, node: str, app: str = "") -> None:
    """A pod without priority on one node; wait until it is ready."""
    await scene.pod(
        name,
        cpu="700m",
        labels={"app": app or name},
        nodeSelector={"kubernetes.io/hostname": node},
    )
    await eventually(lambda: scene.condition(name, "Ready"), lambda one: one.get("status") == "True")


async def evicting(scene: Scene) -> None:
    """A policy by which victims leave through the Eviction API."""
    spec = {"scheduling": {"schedulerName": scene.scheduler, "preemption": {"viaEviction": True}}}
    await scene.until_condition(await scene.policy(spec, "scheduler"), "Ready", "True")


async def until_allowed(scene: Scene, budget: str, count: int) -> None:
    """Wait until a budget allows so many disruptions."""
    path = scene.path(f"poddisruptionbudgets/{budget}", "/apis/policy/v1")

    async def allowed() -> int | None:
        status = (await scene.speaker.request("GET", path)).accepted().get("status", {})
        found: int | None = status.get("disruptionsAllowed")
        return found

    await eventually(allowed, lambda found: found == count)


async def names(scene: Scene) -> set[str]:
    """The scene's pods that stay."""
    return {
        pod["metadata"]["name"] for pod in await scene.pods() if "deletionTimestamp" not in pod["metadata"]
    }


async def test_a_victim_gets_a_reason_and_makes_room(scene: Scene) -> None:
    """As kube-scheduler does it: a condition, an event that names the preemptor, and no record."""
    await with_classes(scene, high=1000)
    node = await scene.node("only", cpu="1")
    await scene.scheduling()
    await low_pod(scene, "low", node)
    victim = await scene.a_pod("low")
    # A finalizer keeps the victim where its last condition can be read.
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    (await scene.speaker.request("PATCH", scene.path("pods/low"), held, sends=MERGE)).accepted()

    await high_pod(scene)
    condition = await eventually(lambda: scene.condition("low", "DisruptionTarget"))
    (event,) = await eventually(lambda: scene.events("low", "Preempted"))
    preemptor = await eventually(
        lambda: scene.a_pod("high"), lambda pod: pod["status"].get("nominatedNodeName") == node
    )
    let_go = {"metadata": {"finalizers": None}}
    (await scene.speaker.request("PATCH", scene.path("pods/low"), let_go, sends=MERGE)).accepted()

    assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
    assert condition["message"] == f"{scene.scheduler}: preempting to accommodate a higher priority pod"
    assert event["note"] == f"Preempted by pod {preemptor['metadata']['uid']} on node {node}"
    assert event["regarding"]["uid"] == victim["metadata"]["uid"]
    assert (event["related"]["name"], event["action"]) == ("high", "Preempting")
    assert await scene.until_bound("high") == node
    assert await scene.records() == []


async def test_victims_leave_the_policy_the_moves_of_its_minute(scene: Scene) -> None:
    """One policy does both, and may move one pod a minute: a victim on record is not one of its moves."""
    await with_classes(scene, high=1000)
    old = await scene.node("old", cpu="500m")
    spec = scene.rebalancing("RemovePodsViolatingNodeTaints", limits={"perMinute": 1})
    spec["scheduling"] = {"schedulerName": scene.scheduler, "preemption": {"viaEviction": True}}
    await scene.until_condition(await scene.policy(spec, "scheduler"), "Ready", "True")
    await scene.deployment("web", 2)
    only = await scene.node("only", cpu="1")
    await low_pod(scene, "low", only)

    await high_pod(scene)
    assert await scene.until_bound("high") == only
    (victim,) = await scene.until_finished(1)
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})

    records = await eventually(
        scene.records, lambda found: len(found) > 1 and all("status" in record for record in found)
    )
    assert victim["spec"]["strategy"] == "DefaultPreemption"
    assert {record["spec"]["strategy"] for record in records} - {"DefaultPreemption"} == {
        "RemovePodsViolatingNodeTaints"
    }
    first, second = sorted(record["status"]["transitions"][0]["time"] for record in records)[:2]
    assert datetime.fromisoformat(second) - datetime.fromisoformat(first) < timedelta(seconds=60)


async def test_a_pod_that_no_budget_protects_goes_first(scene: Scene) -> None:
    """Of two nodes, the one whose victim's budget is used up is spared."""
    await with_classes(scene, high=1000)
    nodes = [await scene.node(suffix, cpu="1") for suffix in "ab"]
    await scene.scheduling()
    await low_pod(scene, "spared", nodes[0], app="web")
    await low_pod(scene, "taken", nodes[1])
    await scene.budget("web", "web", minAvailable=1)
    await until_allowed(scene, "web", 0)

    await high_pod(scene)

    assert await scene.until_bound("high") == nodes[1]
    assert await names(scene) == {"spared", "high"}


async def test_a_budget_is_broken_where_nothing_else_helps(scene: Scene) -> None:
    """It is a preference to kube-scheduler, and to a policy that says nothing else."""
    await with_classes(scene, high=1000)
    node = await scene.node("only", cpu="1")
    await scene.scheduling()
    await low_pod(scene, "low", node, app="web")
    await scene.budget("web", "web", minAvailable=1)
    await until_allowed(scene, "web", 0)

    await high_pod(scene)

    assert await scene.until_bound("high") == node


async def test_via_eviction_a_budget_is_a_wall(scene: Scene) -> None:
    """The pod waits and says what for; when the budget allows it, the victim leaves, on record."""
    await with_classes(scene, high=1000)
    node = await scene.node("only", cpu="1")
    await evicting(scene)
    await low_pod(scene, "low", node, app="web")
    await scene.budget("web", "web", minAvailable=1)
    await until_allowed(scene, "web", 0)

    await high_pod(scene)
    condition = await eventually(lambda: scene.condition("high"), lambda one: one.get("status") == "False")
    assert "1 node(s) whose victims a PodDisruptionBudget protects" in condition["message"]
    await throughout(lambda: names(scene), lambda found: "low" in found, 1.0)
    assert await scene.records() == []
    allow = {"spec": {"minAvailable": 0}}
    path = scene.path("poddisruptionbudgets/web", "/apis/policy/v1")
    (await scene.speaker.request("PATCH", path, allow, sends=MERGE)).accepted()

    assert await eventually(lambda: scene.node_of("high")) == node
    (record,) = await scene.until_finished(1)
    assert record["status"]["phase"] == "Settled"
    assert record["spec"]["strategy"] == "DefaultPreemption"
    assert record["spec"]["policy"] == f"{scene.name}-scheduler"
    assert record["spec"]["pod"]["name"] == "low"
    assert f"preempted by pod {scene.name}/high" in record["spec"]["reason"]
    (event,) = await eventually(lambda: scene.events("low", "Preempted"))
    assert event["note"].endswith(f"(record {record['metadata']['name']})")


async def test_via_eviction_another_node_is_taken_when_its_budget_allows(scene: Scene) -> None:
    """Even if its victim is more important than the one that is protected."""
    await with_classes(scene, high=1000, middle=500)
    nodes = [await scene.node(suffix, cpu="1") for suffix in "ab"]
    await evicting(scene)
    await low_pod(scene, "spared", nodes[0], app="web")
    await high_pod(scene, "taken", "middle", nodeSelector={"kubernetes.io/hostname": nodes[1]})
    await scene.until_running(2)
    await scene.budget("web", "web", minAvailable=1)
    await until_allowed(scene, "web", 0)

    await high_pod(scene)

    assert await scene.until_bound("high") == nodes[1]
    records = await scene.until_finished(1)
    assert [record["spec"]["pod"]["name"] for record in records] == ["taken"]
    assert "spared" in await names(scene)


async def test_a_polite_pod_preempts_none(scene: Scene) -> None:
    """``preemptionPolicy: Never`` goes ahead in the queue, and waits for room all the same."""
    await with_classes(scene, polite=1000)
    node = await scene.node("only", cpu="1")
    await scene.scheduling()
    await low_pod(scene, "low", node)

    await high_pod(scene, suffix="polite")

    condition = await eventually(lambda: scene.condition("high"), lambda one: one.get("status") == "False")
    assert condition["message"].endswith("preemption: not eligible due to preemptionPolicy=Never.")
    await throughout(lambda: names(scene), lambda found: "low" in found, 0.5)


async def test_a_gated_pod_preempts_none_before_its_time(scene: Scene) -> None:
    """It is not tried, whatever its priority; ungated it takes the room."""
    await with_classes(scene, high=1000)
    node = await scene.node("only", cpu="1")
    await scene.scheduling()
    await low_pod(scene, "low", node)
    await high_pod(scene, schedulingGates=[{"name": "example.com/quota"}])

    await throughout(lambda: names(scene), lambda found: "low" in found, 0.5)
    assert await scene.events("high", "FailedScheduling") == []
    change: Any = {"spec": {"schedulingGates": []}}
    (await scene.speaker.request("PATCH", scene.path("pods/high"), change, sends=MERGE)).accepted()

    assert await scene.until_bound("high") == node
    assert "low" not in await names(scene)


async def test_a_pod_of_lower_priority_does_not_slip_into_the_room(scene: Scene) -> None:
    """It was made for another, who is nominated; the one between them waits."""
    await with_classes(scene, high=1000, middle=500)
    node = await scene.node("only", cpu="1")
    await scene.scheduling()
    await low_pod(scene, "low", node)
    await high_pod(scene)
    await high_pod(scene, "middle", "middle")

    assert await scene.until_bound("high") == node
    condition = await eventually(lambda: scene.condition("middle"), lambda one: one.get("status") == "False")
    assert condition["reason"] == "Unschedulable"
    assert await scene.node_of("middle") == ""
