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
