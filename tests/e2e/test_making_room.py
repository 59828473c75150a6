"""A pending pod gets room without a victim: others move, and its place is kept meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from e2e.gangs import a_group, members, until_phase
from e2e.polls import eventually, throughout
from e2e.speaker import MERGE, STRATEGIC

if TYPE_CHECKING:
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e

RACK = "example.com/rack"


async def fragmented(scene: Scene) -> tuple[str, str]:
    """Two pods of 300m on a node of one cpu, half a cpu on another: nowhere 700m, though 900m are free."""
    old = await scene.node("old", cpu="1")
    await scene.scheduling()
    await scene.deployment("small", 2, cpu="300m")
    new = await scene.node("new", cpu="500m")
    await scene.pod("big", cpu="700m")
    await eventually(lambda: scene.condition("big"), lambda one: one.get("reason") == "Unschedulable")
    return old, new


def is_leaving(pod: dict[str, Any]) -> bool:
    """Whether the pod is terminating."""
    return "deletionTimestamp" in pod["metadata"]


async def keep(scene: Scene, pods: list[dict[str, Any]], finalizers: list[str]) -> None:
    """Let pods stay in the API while they have finalizers."""
    for pod in pods:
        path = scene.path(f"pods/{pod['metadata']['name']}")
        change = {"metadata": {"finalizers": finalizers}}
        (await scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()


async def test_a_pod_moves_so_that_a_pending_one_fits(scene: Scene) -> None:
    """One move is enough; the replacement goes where it was sent, and the room to whom it was made for."""
    old, new = await fragmented(scene)
    name = await scene.policy(scene.rebalancing("MakeRoomForPending"))

    assert await scene.until_bound("big") == old
    (record,) = await scene.until_finished(1)
    status = await scene.runs(name, 2)

    assert sorted(await scene.until_running(2, app="small")) == sorted([old, new])
    assert record["status"]["phase"] == "Settled"
    spec = record["spec"]
    assert (spec["strategy"], spec["fromNode"], spec["targetNode"]) == ("MakeRoomForPending", old, new)
    assert spec["reason"] == f"makes room on its node for pending pod {scene.name}/big"
    assert status["counts"]["planned"] == 0, "it converged"


async def test_room_is_made_and_kept_when_somebody_says_yes(scene: Scene) -> None:
    """The proposal names who it is for; approved, the pending pod gets the room."""
    old, new = await fragmented(scene)
    await scene.policy(scene.rebalancing("MakeRoomForPending", mode="Approve"))
    (record,) = await eventually(scene.records)
    assert record["spec"]["bundle"]["beneficiary"]["name"] == "big"
    assert record["spec"]["bundle"]["node"] == old
    await throughout(lambda: scene.node_of("big"), lambda node: not node, 2)

    await scene.answer(record)

    assert await scene.until_bound("big") == old
    assert sorted(await scene.until_running(2, app="small")) == sorted([old, new])


async def test_pods_that_race_for_reserved_room_do_not_get_it(scene: Scene) -> None:
    """Created while the moved pod leaves, when they would fit both nodes but for what is reserved there."""
    old, new = await fragmented(scene)
    small = await scene.pods(app="small")
    await keep(scene, small, ["plimsoll.dev/held"])  # it leaves when the test says so
    await scene.policy(scene.rebalancing("MakeRoomForPending"))
    await eventually(lambda: scene.pods(app="small"), lambda small: any(map(is_leaving, small)))

    racers = ["racer-0", "racer-1"]
    for racer in racers:
        await scene.pod(racer, cpu="350m")
    await eventually(lambda: scene.condition(racers[-1]), lambda one: one.get("reason") == "Unschedulable")
    await keep(scene, small, [])

    assert await scene.until_bound("big") == old
    (record,) = await scene.until_finished(1)
    assert record["status"]["phase"] == "Settled"
    assert sorted(await scene.until_running(2, app="small")) == sorted([old, new])
    assert [await scene.node_of(racer) for racer in racers] == ["", ""]


async def test_no_pod_moves_for_nothing(scene: Scene) -> None:
    """A pod that no move could help waits on, and what runs is left alone."""
    await fragmented(scene)
    before = {pod["metadata"]["uid"] for pod in await scene.pods(app="small")}
    await scene.pod("huge", cpu="900m")
    (await scene.speaker.request("DELETE", scene.path("pods/big"))).accepted()
    name = await scene.policy(scene.rebalancing("MakeRoomForPending"))

    await scene.runs(name, 3)

    assert {pod["metadata"]["uid"] for pod in await scene.pods(app="small")} == before
    assert await scene.records() == []
    await throughout(lambda: scene.node_of("huge"), lambda node: not node, 1)


@pytest.mark.parametrize("required", ["", RACK], ids=["anywhere", "in-one-rack"])
async def test_a_gang_gets_its_room_whole(required: str, scene: Scene) -> None:
    """With a place for one of two pods in the way no pod moves; with a second one both do, and it starts."""
    rack = {RACK: f"{scene.name}-1"}
    old = [await scene.node(suffix, cpu="1", labels=rack) for suffix in ("old-0", "old-1")]
    await scene.scheduling()
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "small"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    await scene.deployment("small", 2, cpu="500m", affinity=apart)
    await scene.node("spare-0", cpu="500m")
    await a_group(scene, "train", 2, **({"topology": {"required": required}} if required else {}))
    await members(scene, "train", 2, cpu="700m")
    await eventually(lambda: scene.condition("train-0"), lambda one: one.get("reason") == "Unschedulable")
    limits = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"}
    spec = scene.rebalancing("MakeRoomForPending", limits=limits, evictor={"minReplicas": 0})
    name = await scene.policy(spec)
    await scene.runs(name, 3)
    assert await scene.records() == []

    await scene.node("spare-1", cpu="500m")

    await until_phase(scene, "train", "Running")
    assert sorted([await scene.node_of("train-0"), await scene.node_of("train-1")]) == sorted(old)
    records = await scene.until_finished(2)
    bundles = [record["spec"]["bundle"] for record in records]
    assert len({bundle["name"] for bundle in bundles}) == 1
    found = {(bundle["beneficiary"]["name"], bundle["members"][0]["pod"]["name"]) for bundle in bundles}
    assert found == {("train-0", "train-1")}


async def test_a_neighbour_moves_so_that_a_deferred_resize_is_granted(scene: Scene) -> None:
    """The resized pod stays where it is; the kubelet grants what it asked for once the neighbour has left."""
    old = await scene.node("old", cpu="1")
    await scene.scheduling()
    await scene.pod("grows", cpu="300m")
    await scene.until_bound("grows")
    await scene.deployment("small", 1, cpu="300m")
    await scene.until_running(1, app="small")
    new = await scene.node("new", cpu="500m")
    container = (await scene.a_pod("grows"))["spec"]["containers"][0]["name"]
    wanted = {"spec": {"containers": [{"name": container, "resources": {"requests": {"cpu": "900m"}}}]}}
    path = scene.path("pods/grows/resize")
    (await scene.speaker.request("PATCH", path, wanted, sends=STRATEGIC)).accepted()
    deferred = await eventually(lambda: scene.condition("grows", "PodResizePending"))

    name = await scene.policy(scene.rebalancing("MakeRoomForPending", evictor={"minReplicas": 0}))

    (record,) = await scene.until_finished(1)
    await eventually(lambda: scene.condition("grows", "PodResizePending"), lambda one: not one)
    grown = await scene.a_pod("grows")
    status = await scene.runs(name, 2)

    assert deferred["reason"] == "Deferred"
    assert record["status"]["phase"] == "Settled"
    spec = record["spec"]
    assert (spec["fromNode"], spec["targetNode"]) == (old, new)
    assert spec["reason"] == f"makes room on its node for the resize of pod {scene.name}/grows"
    assert (spec["bundle"]["beneficiary"]["name"], spec["bundle"]["node"]) == ("grows", old)
    assert grown["spec"]["nodeName"] == old
    assert grown["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "900m"
    assert status["counts"]["planned"] == 0, "it converged"
