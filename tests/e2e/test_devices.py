"""Pods with resource claims: allocated, reserved and bound, over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from deploy.manifests import grants, grants_with
from e2e.polls import eventually

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

GROUP = "/apis/resource.k8s.io/v1"


async def with_class(scene: Scene, **spec: Any) -> str:
    """A class of the scene's devices; its name, and that of their driver."""
    expression = f'device.driver == "{scene.name}.example.com"'
    document: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": scene.name},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **spec},
    }
    await scene.make(f"{GROUP}/deviceclasses", document)
    return scene.name


async def with_devices(scene: Scene, node: str, count: int, **more: Any) -> str:
    """Devices of a node, named ``gpu-0`` and so on; the name of their slice."""
    document: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": f"{scene.name}.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{place}", **more} for place in range(count)],
        },
    }
    await scene.make(f"{GROUP}/resourceslices", document)
    return f"{node}-gpus"


async def with_claim(scene: Scene, name: str, count: int = 1) -> None:
    """A claim for devices of the scene's class."""
    exactly = {"deviceClassName": scene.name, "allocationMode": "ExactCount", "count": count}
    document: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    await scene.make(scene.path("resourceclaims", GROUP), document)


async def claim(scene: Scene, name: str) -> Obj:
    """As it is now."""
    path = scene.path(f"resourceclaims/{name}", GROUP)
    return (await scene.speaker.request("GET", path)).accepted()


def devices_of(found: Obj) -> list[str]:
    """The devices of a claim, as ``pool/device``."""
    results = found.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return [f"{each['pool']}/{each['device']}" for each in results]


def using(name: str) -> Obj:
    """What a pod with a claim says."""
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}


async def test_a_pod_goes_where_its_claim_gets_devices(scene: Scene) -> None:
    """Allocated for the pod's node, reserved for the pod, protected from deletion."""
    await scene.node("plain")
    node = await scene.node("gpus")
    await with_class(scene)
    await with_devices(scene, node, 2)
    await with_claim(scene, "pair", 2)
    await scene.scheduling()

    await scene.pod("trains", **using("pair"))
    await scene.until_bound("trains")

    found = await claim(scene, "pair")
    pod = await scene.a_pod("trains")
    assert pod["spec"]["nodeName"] == node
    assert devices_of(found) == [f"{node}/gpu-0", f"{node}/gpu-1"]
    assert [each["uid"] for each in found["status"]["reservedFor"]] == [pod["metadata"]["uid"]]
    assert found["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


async def test_devices_are_handed_out_once(scene: Scene) -> None:
    """Four pods, two devices: two wait, and one of them follows when a claim is given back."""
    node = await scene.node("gpus")
    await with_class(scene)
    await with_devices(scene, node, 2)
    await scene.scheduling()
    for number in range(4):
        await with_claim(scene, f"c{number}")
    for number in range(4):
        await scene.pod(f"p{number}", **using(f"c{number}"))

    async def placed() -> list[str]:
        return [each["metadata"]["name"] for each in await scene.pods() if each["spec"].get("nodeName")]

    async def refused() -> list[str]:
        return [
            condition["message"]
            for each in await scene.pods()
            for condition in each["status"].get("conditions", ())
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]

    first = await eventually(placed, lambda found: len(found) == 2)
    messages = await eventually(refused, lambda found: len(found) == 2)
    taken = [device for name in first for device in devices_of(await claim(scene, f"c{name[1]}"))]
    gone = first[0]
    await scene.speaker.request("DELETE", scene.path(f"pods/{gone}"), gracePeriodSeconds="0")
    later = await eventually(placed, lambda found: len(found) == 2 and gone not in found)

    assert all("cannot allocate all claims" in each for each in messages)
    assert sorted(taken) == [f"{node}/gpu-0", f"{node}/gpu-1"]
    assert set(later) > set(first) - {gone}


async def test_an_unused_allocation_out_of_reach_is_taken_back(scene: Scene) -> None:
    """The claim has a device of a node that is gone: it gets another one, and the pod is bound."""
    node = await scene.node("gpus")
    await with_class(scene)
    await with_devices(scene, node, 1)
    await with_claim(scene, "one")
    match = {"key": "metadata.name", "operator": "In", "values": ["gone"]}
    gone = {"request": "gpu", "driver": f"{scene.name}.example.com", "pool": "gone", "device": "gpu-0"}
    allocation = {
        "devices": {"results": [gone]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [match]}]},
    }
    found = await claim(scene, "one")
    path = scene.path("resourceclaims/one/status", GROUP)
    (await scene.speaker.request("PUT", path, {**found, "status": {"allocation": allocation}})).accepted()
    await scene.scheduling()

    await scene.pod("trains", **using("one"))
    await scene.until_bound("trains")

    assert devices_of(await claim(scene, "one")) == [f"{node}/gpu-0"]


async def test_the_component_s_rights_are_enough(entitled_operator: StartGuarded) -> None:
    """A named claim and an extended resource; nothing is refused, and nothing is granted in vain."""
    async with entitled_operator("enforce", component="devices") as (scene, entrance, operator):
        node = await scene.node("gpus")
        await with_class(scene, extendedResourceName="example.com/gpu")
        await with_devices(scene, node, 2)
        await with_claim(scene, "one")
        await scene.scheduling()
        await scene.pod("named", **using("one"))
        await scene.until_bound("named")
        amount = {"cpu": "100m", "example.com/gpu": "1"}
        container = {"name": "c", "image": "i", "resources": {"requests": amount, "limits": amount}}
        await scene.pod("extended", containers=[container])
        await scene.until_bound("extended")
        status = (await scene.a_pod("extended"))["status"]["extendedResourceClaimStatus"]
        assert await operator.stop() == 0

    used = {right for right in entrance.used if right[1] == "resource.k8s.io"}
    unused = grants_with("enforce", "devices") - grants("enforce") - used
    assert entrance.refused == set()
    assert status["requestMappings"][0]["resourceName"] == "example.com/gpu"
    assert unused == {
        ("get", "resource.k8s.io", "resourceclaims"),  # after a conflict
        ("delete", "resource.k8s.io", "resourceclaims"),  # when a binding has failed
    }


async def test_without_the_rights_a_pod_says_what_to_apply(entitled_operator: StartGuarded) -> None:
    """No request is sent that would be refused; other pods are served, and the operator is ready."""
    async with entitled_operator("enforce") as (scene, entrance, operator):
        await scene.node("gpus")
        await with_claim(scene, "one")
        policy = await scene.scheduling()
        await scene.pod("named", **using("one"))
        await scene.pod("plain")
        await scene.until_bound("plain")

        async def said() -> str:
            return str((await scene.condition("named")).get("message", ""))

        message = await eventually(said, lambda text: "deploy/components/devices" in text)
        ready, _ = await asyncio.to_thread(operator.ask, "/readyz")
        status = await scene.policy_status(policy)
        assert await operator.stop() == 0

    assert "resource claims are not served: the operator may not" in message
    assert entrance.refused == set()
    assert ready == 200
    assert [each["status"] for each in status["conditions"] if each["type"] == "Ready"] == ["True"]
    assert operator.said().count("pods with resource claims wait, all others are served") == 1
