"""A gang shares the devices of one claim of its PodGroup, where the API server has PodGroups with claims."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cli.commands import say
from e2e.gangs import CORE, a_core_group, serves_core_groups
from e2e.polls import eventually
from e2e.test_devices import GROUP, devices_of, with_class, with_devices
from e2e.test_moving_devices import problems, with_template

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

SHARED = {"name": "gpu", "resourceClaimTemplateName": "shared"}


async def claims(scene: Scene) -> list[Obj]:
    """The claims of the scene."""
    return await scene.items(scene.path("resourceclaims", GROUP))


async def the_group(scene: Scene) -> Obj:
    """As it is now."""
    path = f"{scene.path('podgroups', CORE)}/train"
    return (await scene.speaker.request("GET", path)).accepted()


async def test_a_gang_shares_one_claim_that_is_reserved_for_its_group(scene: Scene, defined: Path) -> None:
    """Members wait for it; it is reserved once. One made again joins them; the group's end frees devices."""
    if not await serves_core_groups(scene):
        pytest.skip("the API server does not serve scheduling.k8s.io/v1alpha2")
    nodes = [await scene.node(name, cpu="4") for name in ("a", "b")]
    await with_class(scene)
    for node in nodes:
        await with_devices(scene, node, 1)
    await scene.scheduling()
    await a_core_group(scene, "train", 3, resourceClaims=[SHARED])
    group = await the_group(scene)
    if not group["spec"].get("resourceClaims"):
        pytest.skip("the API server does not have the gate DRAWorkloadResourceClaims")
    named: dict[str, Any] = {
        "schedulingGroup": {"podGroupName": "train"},
        "resourceClaims": [SHARED],
        "cpu": "100m",
    }

    await asyncio.gather(*(scene.pod(f"p{number}", **named) for number in range(3)))

    words = ["explain", "pod", "p0", "-n", scene.name, "--kubeconfig", str(defined)]
    said = await asyncio.to_thread(say, *words)
    assert f'ResourceClaim "gpu" of PodGroup {scene.name}/train not created yet' in " ".join(said.out.split())
    exactly = {"deviceClassName": scene.name, "allocationMode": "ExactCount", "count": 1}
    await with_template(scene, "shared", exactly)

    there = await asyncio.gather(*(scene.until_bound(f"p{number}") for number in range(3)))
    (claim,) = await claims(scene)
    reserved = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train"}
    assert set(there) == {there[0]}
    assert devices_of(claim) == [f"{there[0]}/gpu-0"]
    assert await problems(scene) == []
    assert claim["status"]["reservedFor"] == [{**reserved, "uid": group["metadata"]["uid"]}]

    path = f"{scene.path('pods')}/p0"
    await scene.speaker.request("DELETE", path, {"gracePeriodSeconds": 0})
    await eventually(lambda: scene.speaker.request("GET", path), lambda answer: answer.status == 404)
    await scene.pod("p0", **named)
    assert await scene.until_bound("p0") == there[0]
    (again,) = await claims(scene)
    assert again["status"] == claim["status"]

    for number in range(3):
        await scene.speaker.request("DELETE", f"{scene.path('pods')}/p{number}", {"gracePeriodSeconds": 0})
    await scene.speaker.request("DELETE", f"{scene.path('podgroups', CORE)}/train")
    await eventually(lambda: claims(scene), lambda found: found == [])
