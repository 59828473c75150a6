"""Nodes are emptied on request, kept closed, and opened again when that is over or cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.gangs import GROUP_LABEL, a_group
from e2e.node_maintenances import maintenance, status, until_phase
from e2e.polls import eventually
from e2e.speaker import MERGE
from e2e.stories import taints_of

if TYPE_CHECKING:
    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

OURS = "plimsoll.dev/consolidating"


async def marks(scene: Scene, node: str) -> list[str]:
    """The effects of our taint of the node."""
    return [each["effect"] for each in await taints_of(scene, node) if each["key"] == OURS]


async def is_closed(scene: Scene, node: str) -> bool:
    """Whether the node has our taint that keeps new pods away."""
    return "NoSchedule" in await marks(scene, node)


async def until_open(scene: Scene, *nodes: str) -> None:
    """Wait until none of the nodes has our taint."""
    for node in nodes:
        await eventually(lambda node=node: marks(scene, node), lambda found: not found)  # type: ignore[misc] # a lambda that keeps a variable of the loop


async def three_kinds(scene: Scene) -> None:
    """A Deployment with one replica, one with several, and a StatefulSet, on the nodes that there are."""
    await scene.scheduling()
    await scene.deployment("single", 1)
    await scene.deployment("web", 4)
    labels = {"app": "db"}
    document: Obj = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": scene.pod_spec()},
        },
    }
    await scene.make(scene.path("statefulsets", "/apis/apps/v1"), document)
    await scene.until_running(2, app="db")


async def test_nodes_are_drained_and_opened_at_the_end(scene: Scene, operator: Operator) -> None:
    """Two nodes, one after the other, although the operator dies in between; deleted, both are open again."""
    first, second = await scene.node("first"), await scene.node("second")
    await three_kinds(scene)
    await scene.node("other")

    path = await maintenance(scene, first, second)
    await eventually(lambda: is_closed(scene, first))
    await scene.crash(operator)
    operator.start()

    found = await until_phase(scene, path, "Drained")
    assert (found["drained"], found["total"]) == (2, 2)
    assert {each["type"]: each["status"] for each in found["conditions"]} == {"Drained": "True"}
    assert {*await scene.running()} == {f"{scene.name}-other"}
    assert len(await scene.running()) == 7
    assert await is_closed(scene, first)
    assert await is_closed(scene, second)

    (await scene.speaker.request("DELETE", path)).accepted()
    await until_open(scene, first, second)


async def test_what_cannot_leave_is_named_before_anything_moves(scene: Scene) -> None:
    """A bare pod keeps its node, which stays open; the other node goes on; suspended, both are open."""
    stuck, free = await scene.node("stuck"), await scene.node("free")
    await scene.scheduling()
    await scene.change_node(free, {"spec": {"unschedulable": True}})
    await scene.pod("solo")
    await scene.until_bound("solo")
    await scene.change_node(free, {"spec": {"unschedulable": None}})
    await scene.change_node(stuck, {"spec": {"unschedulable": True}})
    await scene.deployment("web", 2)
    await scene.change_node(stuck, {"spec": {"unschedulable": None}})
    await scene.node("other")

    path = await maintenance(scene, stuck, free, maxConcurrent=2)

    found = await until_phase(scene, path, "Blocked")
    (first, second) = found["nodes"]
    assert (first["phase"], first["reason"], second["phase"]) == ("Blocked", "FailedBarePods", "Drained")
    assert f"pod {scene.name}/solo" in found["conditions"][0]["message"]
    assert await scene.node_of("solo") == stuck
    assert not await is_closed(scene, stuck)
    assert await is_closed(scene, free)

    suspended = {"spec": {"suspend": True}}
    (await scene.speaker.request("PATCH", path, suspended, sends=MERGE)).accepted()
    await until_open(scene, free)
    await until_phase(scene, path, "Suspended")
    await eventually(lambda: status(scene, path), lambda one: one["drained"] == 0)


@pytest.mark.parametrize(("needed", "phase"), [(3, "Blocked"), (2, "Drained")])
async def test_a_group_is_named_beforehand_and_never_broken(scene: Scene, needed: int, phase: str) -> None:
    """A member that the others need keeps its node; one that they can spare leaves it."""
    node = await scene.node("small", cpu="1")
    await scene.node("large", cpu="2")
    await scene.scheduling()
    await a_group(scene, "ranks", needed)
    await scene.deployment("ranks", 3, labels={GROUP_LABEL: "ranks"}, cpu="700m")
    await scene.until_running(3, **{GROUP_LABEL: "ranks"})
    before = {each["metadata"]["uid"] for each in await scene.pods()}
    await scene.node("new")

    path = await maintenance(scene, node)

    found = await until_phase(scene, path, phase)
    same = {each["metadata"]["uid"] for each in await scene.pods()} & before
    assert len(await scene.until_running(3, **{GROUP_LABEL: "ranks"})) == 3
    if phase == "Blocked":
        (told,) = found["nodes"]
        assert told["reason"] == "BreaksGroup"
        assert "ranks" in found["conditions"][0]["message"]
        assert same == before
        assert not await is_closed(scene, node)
        assert [each for each in await scene.records() if each["spec"]["mode"] == "Enforce"] == []
    else:
        assert len(same) == 2


async def test_new_pods_prefer_nodes_that_do_not_wait_for_maintenance(
    scene: Scene, operator: Operator
) -> None:
    """Though the other node is fuller; where it has no room, they go to the one that waits."""
    waiting = await scene.node("waiting")
    await scene.scheduling()
    path = await maintenance(scene, waiting, window={"schedule": "0 2 31 1 *", "duration": "1m"})
    await eventually(lambda: marks(scene, waiting), ["PreferNoSchedule"].__eq__)
    other = await scene.node("other")
    await scene.deployment("web", 4)
    assert await scene.until_running(4, app="web") == [other] * 4

    await scene.crash(operator)
    operator.start()
    await scene.pod("small")
    assert await scene.until_bound("small") == other
    await scene.pod("large", cpu="3900m")
    assert await scene.until_bound("large") == waiting
    await eventually(lambda: marks(scene, waiting), ["PreferNoSchedule"].__eq__)

    (await scene.speaker.request("DELETE", path)).accepted()
    await until_open(scene, waiting)


async def test_it_stops_at_the_first_move_that_fails(scene: Scene) -> None:
    """No replacement becomes ready: the second node is not begun, and the first is opened."""
    first, second = await scene.node("first"), await scene.node("second")
    await scene.scheduling()
    rollout = {"progressDeadlineSeconds": 5}
    await scene.deployment("one", 1, rollout=rollout)
    await scene.deployment("two", 1, rollout=rollout)
    before = await scene.running()
    await scene.node("other", readies_pods=False)

    path = await maintenance(scene, first, second)

    found = await until_phase(scene, path, "Stopped")
    assert "failed" in found["conditions"][0]["message"]
    await until_open(scene, first, second)
    assert await eventually(scene.running, lambda nodes: nodes == before)
    made = [each for each in await scene.records() if each["spec"]["mode"] == "Enforce"]
    assert [each["status"]["phase"] for each in made] == ["Failed"]
