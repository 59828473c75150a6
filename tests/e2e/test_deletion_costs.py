"""A scale-down deletes the pods that the plan wants gone, which then need not be moved."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from e2e.polls import eventually, throughout
from e2e.speaker import MERGE
from e2e.stories import taints_of
from plimsoll.model.kinds.deployment import DELETION_COST, LEAST_COST, WANTED_GONE

if TYPE_CHECKING:
    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

SOFT = "PreferNoSchedule"
STRATEGY = "RemovePodsViolatingNodeTaints"
BROKEN = {"spec": {"taints": [{"key": "broken", "value": "yes", "effect": "NoSchedule"}]}}


async def half_stranded(scene: Scene) -> tuple[str, str]:
    """Six pods of web, which its budget keeps: the older three on a node that has come to be broken."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 3)
    await asyncio.sleep(1.1)  # the times by which a ReplicaSet tells pods apart are whole seconds
    new = await scene.node("new")
    await scene.change_node(old, BROKEN)
    await scale(scene, 6)
    assert await scene.until_running(6, app="web") == sorted([old] * 3 + [new] * 3)
    await scene.budget("web", "web", minAvailable=6)
    return old, new


async def scale(scene: Scene, replicas: int) -> None:
    """As an autoscaler does."""
    path = scene.path("deployments/web", "/apis/apps/v1")
    (await scene.speaker.request("PATCH", path, {"spec": {"replicas": replicas}}, sends=MERGE)).accepted()


async def costs(scene: Scene) -> dict[str, list[str]]:
    """The nodes of pods with a cost of deletion, sorted, by the cost and the policy that asks for it."""
    found: dict[str, list[str]] = {}
    for pod in await scene.pods(app="web"):
        said = pod["metadata"].get("annotations") or {}
        if DELETION_COST in said or WANTED_GONE in said:
            key = f"{said.get(DELETION_COST)} {said.get(WANTED_GONE)}"
            found.setdefault(key, []).append(pod["spec"]["nodeName"])
    return {key: sorted(nodes) for key, nodes in found.items()}


def managers(pod: Obj) -> set[str]:
    """The field managers of a pod that own our mark."""
    return {
        each["manager"]
        for each in pod["metadata"]["managedFields"]
        if f"f:{WANTED_GONE}" in (each["fieldsV1"].get("f:metadata") or {}).get("f:annotations", {})
    }


def asking(scene: Scene, **more: Any) -> Obj:
    """A policy that asks for costs."""
    return scene.rebalancing(STRATEGY, **{"deletionCosts": True, **more})


@pytest.mark.parametrize("asks", [True, False])
async def test_a_scale_down_makes_the_moves(scene: Scene, asks: bool) -> None:
    """With costs the three pods of the broken node go, without them the younger ones: three moves saved."""
    old, new = await half_stranded(scene)
    policy = await scene.policy(asking(scene, deletionCosts=asks))
    await scene.runs(policy, 2)
    if asks:
        await eventually(lambda: costs(scene), lambda found: found == {f"{LEAST_COST} {policy}": [old] * 3})
        on_old = [each for each in await scene.pods(app="web") if each["spec"]["nodeName"] == old]
        assert [managers(each) for each in on_old] == [{"plimsoll-wanted-gone"}] * 3
    assert await scene.records() == []

    await scale(scene, 3)
    left = await eventually(lambda: scene.running(app="web"), lambda nodes: len(nodes) == 3)

    assert left == [new if asks else old] * 3
    await eventually(lambda: costs(scene), lambda found: not found)


async def test_others_costs_stay_and_ours_go_with_the_policy(scene: Scene, operator: Operator) -> None:
    """One pod has a cost already; a policy is deleted, and another one suspended after a crash."""
    old, _ = await half_stranded(scene)
    first = next(each for each in await scene.pods(app="web") if each["spec"]["nodeName"] == old)
    path = scene.path(f"pods/{first['metadata']['name']}")
    theirs = {"metadata": {"annotations": {DELETION_COST: "100"}}}
    (await scene.speaker.request("PATCH", path, theirs, sends=MERGE)).accepted()
    for turn in ("first", "second"):
        policy = await scene.policy(asking(scene), turn)
        ours = {f"{LEAST_COST} {policy}": [old] * 2, "100 None": [old]}
        await eventually(lambda: costs(scene), ours.__eq__)
        if turn == "first":
            gone = f"/apis/plimsoll.dev/v1alpha1/schedulingpolicies/{policy}"
            (await scene.speaker.request("DELETE", gone)).accepted()
        else:
            await scene.crash(operator)
            operator.start()
            await scene.runs(policy, 2)
            await throughout(lambda: costs(scene), ours.__eq__, 2)
            await scene.change_policy(policy, {"suspend": True})
        await eventually(lambda: costs(scene), lambda found: found == {"100 None": [old]})


@pytest.mark.parametrize("asks", [True, False])
async def test_a_rollout_empties_the_node_that_the_plan_would_empty(scene: Scene, asks: bool) -> None:
    """New pods go to the busier node, so that the little used one is empty at the end and no move is left."""
    little = await scene.node("little")
    await scene.scheduling()
    await scene.deployment("web", 2)
    await scene.change_node(little, {"spec": {"unschedulable": True}})
    await scene.node("busy")
    await scene.deployment("db", 3, cpu="800m")
    await scene.change_node(little, {"spec": {"unschedulable": None}})
    await scene.budget("web", "web", minAvailable=4)  # more than ever are, also in mid-rollout
    strategy = {"name": "ConsolidateNodes", "args": {"thresholds": {"cpu": 50}}}
    await scene.policy(scene.rebalancing(strategy, deletionCosts=asks, evictor={"minReplicas": 1}))
    if asks:
        await eventually(
            lambda: taints_of(scene, little), lambda found: [e["effect"] for e in found] == [SOFT]
        )

    path = scene.path("deployments/web", "/apis/apps/v1")
    fresh = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    before = {each["metadata"]["uid"] for each in await scene.pods(app="web")}
    (await scene.speaker.request("PATCH", path, fresh, sends=MERGE)).accepted()

    async def rolled_out() -> list[str]:
        found = [each for each in await scene.pods(app="web") if each["metadata"]["uid"] not in before]
        is_over = len(found) == len(await scene.pods(app="web")) == 2
        return await scene.running(app="web") if is_over else []

    nodes = await eventually(rolled_out, lambda found: len(found) == 2)
    assert await scene.records() == []
    assert (little in nodes) != asks
