"""Pods with resource claims are moved: devices of the target are held, none is given twice, over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from e2e.operator_process import summed
from e2e.polls import eventually
from e2e.scene import FINISHED
from e2e.speaker import MERGE
from e2e.test_devices import GROUP, claim, devices_of, with_claim, with_class, with_devices
from promises.commits import UNKNOWN, Commit
from promises.devices import CLAIMS, DevicePromise
from promises.findings import Findings
from promises.view import SLICES, View

if TYPE_CHECKING:
    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

TAINTS = "RemovePodsViolatingNodeTaints"
MOVABLE = {"podProtections": {"extraEnabled": ["PodsWithPVC"]}}
BROKEN = {"spec": {"taints": [{"key": "broken", "value": "yes", "effect": "NoSchedule"}]}}


async def trainers(scene: Scene, devices: int = 2) -> tuple[str, str]:
    """Two pods with a device each on a node that breaks, and another node with devices."""
    old = await scene.node("old")
    await with_class(scene)
    await with_devices(scene, old, 2)
    exactly = {"deviceClassName": scene.name, "allocationMode": "ExactCount", "count": 1}
    template: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }
    await scene.make(scene.path("resourceclaimtemplates", GROUP), template)
    await scene.scheduling()
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    await scene.deployment("train", 2, resourceClaims=claims)
    new = await scene.node("new")
    await with_devices(scene, new, devices)
    await scene.change_node(old, BROKEN)
    return old, new


async def taken(scene: Scene) -> list[str]:
    """The devices of all claims of the scene, as often as they were given."""
    found = await scene.items(scene.path("resourceclaims", GROUP))
    return sorted(device for each in found for device in devices_of(each))


async def records(scene: Scene) -> list[Obj]:
    """The scene's records."""
    return await scene.items(scene.records_path)


async def phases(scene: Scene) -> list[str]:
    """Their phases."""
    return sorted(each.get("status", {}).get("phase", "") for each in await records(scene))


async def test_pods_with_claims_move_and_their_replacements_get_devices(scene: Scene) -> None:
    """One after the other, verified, on record; in the end the old devices are free."""
    _, new = await trainers(scene)

    await scene.policy(scene.rebalancing(TAINTS, evictor=MOVABLE))
    nodes = await eventually(lambda: scene.running(app="train"), lambda found: found == [new, new])
    ended = await eventually(lambda: phases(scene), lambda found: found == ["Settled", "Settled"])
    devices = await eventually(lambda: taken(scene), lambda found: len(found) == 2)

    assert nodes == [new, new]
    assert ended == ["Settled", "Settled"]
    assert devices == [f"{new}/gpu-0", f"{new}/gpu-1"]
    assert {each["spec"]["targetNode"] for each in await records(scene)} == {new}


def claims_seen(operator: Operator) -> float:
    """How many events of claims the operator has received."""
    return summed(operator.ask("/metrics")[1], "plimsoll_watch_events_total", resource="resourceclaims")


async def test_devices_that_are_gone_by_then_stop_the_move(scene: Scene, operator: Operator) -> None:
    """Another scheduler takes them between the proposal and its approval: nothing is evicted."""
    old, new = await trainers(scene, devices=1)
    before = {each["metadata"]["uid"] for each in await scene.pods(app="train")}

    policy = await scene.policy(scene.rebalancing(TAINTS, mode="Approve", evictor=MOVABLE))
    (proposed,) = await eventually(lambda: records(scene))
    known = claims_seen(operator)
    await with_claim(scene, "theirs")
    result = {"request": "gpu", "driver": f"{scene.name}.example.com", "pool": new, "device": "gpu-0"}
    status: dict[str, Any] = {"status": {"allocation": {"devices": {"results": [result]}}}}
    path = scene.path("resourceclaims/theirs/status", GROUP)
    (await scene.speaker.request("PATCH", path, status, sends=MERGE)).accepted()
    assert devices_of(await claim(scene, "theirs")) == [f"{new}/gpu-0"]
    # What the watch has not shown yet, the operator cannot know: milliseconds, on a quiet machine.
    await eventually(lambda: asyncio.to_thread(claims_seen, operator), lambda seen: seen >= known + 2)
    approval = {"metadata": {"annotations": {"plimsoll.dev/approved": "true"}}}
    record = f"{scene.records_path}/{proposed['metadata']['name']}"
    (await scene.speaker.request("PATCH", record, approval, sends=MERGE)).accepted()

    async def ended() -> Obj:
        found = (await scene.speaker.request("GET", record)).accepted()
        return found["status"] if found["status"]["phase"] in FINISHED else {}

    story = await eventually(ended)

    assert policy
    assert story["phase"] == "Cancelled"
    assert "cannot allocate all claims" in story["message"]
    assert {each["metadata"]["uid"] for each in await scene.pods(app="train")} == before
    assert await scene.running(app="train") == [old, old]


async def with_slice(scene: Scene, name: str, node: str = "", **spec: Any) -> None:
    """A slice of a pool of that name, of a node or of all nodes."""
    place: Obj = {"nodeName": node} if node else {"allNodes": True}
    document: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": f"{scene.name}.example.com",
            "pool": {
                "name": spec.pop("pool", name),
                "generation": 1,
                "resourceSliceCount": spec.pop("of", 1),
            },
            **place,
            **spec,
        },
    }
    await scene.make(f"{GROUP}/resourceslices", document)


async def with_parts(scene: Scene, node: str) -> None:
    """A GPU as a whole or as halves, which draw on counters, and a card with bandwidth for several."""
    counters = [{"name": "gpu", "counters": {"memory": {"value": "8"}}}]
    parts = [
        {
            "name": name,
            "attributes": {"part": {"bool": amount == "4"}},
            "consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}],
        }
        for name, amount in (("whole", "8"), ("half-0", "4"), ("half-1", "4"))
    ]
    card = {
        "name": "net",
        "attributes": {"part": {"bool": False}},
        "allowMultipleAllocations": True,
        "capacity": {"bandwidth": {"value": "10"}},
    }
    await with_slice(scene, f"{node}-parts", node, pool=node, of=2, devices=[*parts, card])
    await with_slice(scene, f"{node}-counters", node, pool=node, of=2, sharedCounters=counters)


async def with_template(scene: Scene, name: str, *requests: Obj, **devices: Any) -> None:
    """Claims for devices of the scene's class."""
    asked = [{"name": f"r{place}", "exactly": each} for place, each in enumerate(requests)]
    template: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": asked, **devices}}},
    }
    await scene.make(scene.path("resourceclaimtemplates", GROUP), template)


def asked(scene: Scene, attribute: str, value: str, count: int = 1, **more: Any) -> Obj:
    """A request for devices with an attribute."""
    expression = f'device.attributes["{scene.name}.example.com"].{attribute} == {value}'
    return {
        "deviceClassName": scene.name,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": expression}}],
        **more,
    }


async def problems(scene: Scene) -> list[str]:
    """What a judge who knows nothing of the operator says of all devices now."""
    view = View()
    promise = DevicePromise(view, Findings())
    paths = {
        "nodes": "/api/v1/nodes",
        SLICES: f"{GROUP}/resourceslices",
        CLAIMS: scene.path("resourceclaims", GROUP),
        "pods": scene.path("pods"),
    }
    for collection, path in paths.items():
        for each in await scene.items(path):
            commit = Commit(collection, "ADDED", each, None, UNKNOWN, 0.0)
            view.see(commit)
            promise.judge(commit)
    return promise.unfinished()


async def moved(scene: Scene, old: str, new: str, count: int) -> list[str]:
    """The node breaks, the policy moves the pods; how the moves ended, once the pods run elsewhere."""
    await scene.change_node(old, BROKEN)
    await scene.policy(scene.rebalancing(TAINTS, evictor={**MOVABLE, "minReplicas": 0}))
    await eventually(lambda: scene.running(app="train"), lambda found: found == [new] * count)
    return await eventually(lambda: phases(scene), lambda found: found == ["Settled"] * count)


async def test_partitions_and_shares_of_a_capacity_move(scene: Scene) -> None:
    """Both halves of the target's GPU, its counters drawn on in full, and its card shared."""
    old = await scene.node("old")
    await with_class(scene)
    await with_parts(scene, old)
    share = asked(scene, "part", "false && device.allowMultipleAllocations")
    share["capacity"] = {"requests": {"bandwidth": "4"}}
    await with_template(scene, "parts", asked(scene, "part", "true"), share)
    await scene.scheduling()
    await scene.deployment("train", 2, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "parts"}])
    new = await scene.node("new")
    await with_parts(scene, new)

    ended = await moved(scene, old, new, 2)
    devices = await eventually(lambda: taken(scene), lambda found: len(found) == 4)

    assert ended == ["Settled", "Settled"]
    assert devices == [f"{new}/half-0", f"{new}/half-1", f"{new}/net", f"{new}/net"]
    assert await problems(scene) == []


async def test_devices_of_all_nodes_and_extended_resources_move(scene: Scene) -> None:
    """A device that the network reaches from both nodes, and one of the node by the name of a resource."""
    old = await scene.node("old")
    resource = f"{scene.name}.example.com/gpu"
    await with_class(scene, extendedResourceName=resource)
    await with_slice(
        scene, f"{scene.name}-wide", devices=[{"name": "far", "attributes": {"far": {"bool": True}}}]
    )
    near = {"far": {"bool": False}}
    await with_devices(scene, old, 1, attributes=near)
    await with_template(scene, "far", asked(scene, "far", "true"))
    await scene.scheduling()
    container = scene.pod_spec()["containers"][0]
    amounts = {**container["resources"]["requests"], resource: "1"}
    container["resources"] = {"requests": amounts, "limits": {resource: "1"}}
    await scene.deployment(
        "train",
        1,
        containers=[container],
        resourceClaims=[{"name": "far", "resourceClaimTemplateName": "far"}],
    )
    new = await scene.node("new")
    await with_devices(scene, new, 1, attributes=near)

    ended = await moved(scene, old, new, 1)
    devices = await eventually(lambda: taken(scene), lambda found: len(found) == 2)

    assert ended == ["Settled"]
    assert devices == sorted([f"{scene.name}-wide/far", f"{new}/gpu-0"])
    assert await problems(scene) == []
