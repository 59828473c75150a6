"""Claims that wait for their first pod: found, made, refused, late, or somewhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.polls import eventually
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

SELECTED = "volume.kubernetes.io/selected-node"
VOLUMES = "/api/v1/persistentvolumes"
ACCESS = ["ReadWriteOnce"]


async def with_class(scene: Scene, provisioner: str = "example.com/disks") -> str:
    """A class whose claims wait; only the test provisions."""
    name = f"{scene.name}-late"
    document: Obj = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await scene.make("/apis/storage.k8s.io/v1/storageclasses", document)
    return name


async def with_claim(scene: Scene, storage_class: str, name: str = "data") -> None:
    """A claim of a gibibyte."""
    claim: Obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ACCESS,
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await scene.make(scene.path("persistentvolumeclaims"), claim)


async def volume(scene: Scene, storage_class: str, node: str, claimed: bool = False) -> str:
    """A volume that one node reaches, available or made for the claim; its name."""
    name = f"{scene.name}-disk-{node[-1]}"
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    spec: Obj = {
        "accessModes": ACCESS,
        "storageClassName": storage_class,
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    if claimed:
        meta = (await claim(scene))["metadata"]
        spec["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": scene.name,
            "name": meta["name"],
            "uid": meta["uid"],
        }
    document = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    await scene.make(VOLUMES, document)
    phase = {"status": {"phase": "Bound" if claimed else "Available"}}
    (await scene.speaker.request("PATCH", f"{VOLUMES}/{name}/status", phase, sends=MERGE)).accepted()
    return name


async def claim(scene: Scene) -> Obj:
    """The claim as it is."""
    return (await scene.speaker.request("GET", scene.path("persistentvolumeclaims/data"))).accepted()


async def annotate(scene: Scene, **change: object) -> None:
    """Change the claim as provisioners and the volume controller do."""
    path = scene.path("persistentvolumeclaims/data")
    (await scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()


async def bind_claim(scene: Scene, name: str) -> None:
    """Play the volume controller: the claim has this volume."""
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    await annotate(scene, metadata={"annotations": done}, spec={"volumeName": name})
    status = {"status": {"phase": "Bound", "accessModes": ACCESS, "capacity": {"storage": "1Gi"}}}
    path = scene.path("persistentvolumeclaims/data/status")
    (await scene.speaker.request("PATCH", path, status, sends=MERGE)).accepted()


async def until_selected(scene: Scene) -> str:
    """Wait until the claim is to be provisioned for a node."""

    async def selected() -> str:
        annotations = (await claim(scene))["metadata"].get("annotations", {})
        return str(annotations.get(SELECTED, ""))

    return await eventually(selected)


def mounting() -> list[Obj]:
    """The claim as a pod's volume."""
    return [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


async def impatient(scene: Scene, seconds: int) -> None:
    """A policy whose pods wait so long for their volumes."""
    args = [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": seconds}}]
    spec = {"scheduling": {"schedulerName": scene.scheduler, "pluginConfig": args}}
    await scene.until_condition(await scene.policy(spec, "scheduler"), "Ready", "True")


async def test_a_pod_goes_where_its_volume_is(scene: Scene) -> None:
    """Of two nodes, the one that reaches the volume, which is kept for the claim before the pod binds."""
    await scene.node("a")
    node = await scene.node("b")
    await scene.scheduling()
    storage_class = await with_class(scene, "kubernetes.io/no-provisioner")
    name = await volume(scene, storage_class, node)
    await with_claim(scene, storage_class)
    await scene.pod("stateful", volumes=mounting())

    async def kept() -> str:
        found = (await scene.speaker.request("GET", f"{VOLUMES}/{name}")).accepted()
        return str(found["spec"].get("claimRef", {}).get("name", ""))

    assert await eventually(kept) == "data"
    pod = await scene.a_pod("stateful")
    if "nodeName" in pod["spec"]:  # a real control plane's volume controller need not be played
        assert (await claim(scene))["status"]["phase"] == "Bound"
    else:
        assert pod["status"].get("nominatedNodeName") == node
        await bind_claim(scene, name)

    assert await scene.until_bound("stateful") == node


async def test_a_claim_is_made_for_the_node_that_was_chosen(scene: Scene) -> None:
    """The provisioner reads the node, makes the volume, and the pod goes there."""
    node = await scene.node("a")
    await scene.scheduling()
    storage_class = await with_class(scene)
    await with_claim(scene, storage_class)
    await scene.pod("stateful", volumes=mounting())

    assert await until_selected(scene) == node
    await bind_claim(scene, await volume(scene, storage_class, node, claimed=True))

    assert await scene.until_bound("stateful") == node


async def test_a_provisioner_that_gives_up_has_the_pod_placed_again(scene: Scene) -> None:
    """It takes the annotation away; the pod says so, and the next node is tried as any."""
    node = await scene.node("a")
    await scene.scheduling()
    storage_class = await with_class(scene)
    await with_claim(scene, storage_class)
    await scene.pod("stateful", volumes=mounting())
    await until_selected(scene)

    await annotate(scene, metadata={"annotations": {SELECTED: None}})
    condition = await eventually(
        lambda: scene.condition("stateful"), lambda one: one.get("status") == "False"
    )
    assert await until_selected(scene) == node
    await bind_claim(scene, await volume(scene, storage_class, node, claimed=True))

    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == (
        'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for'
        f' persistentvolumeclaim "{scene.name}/data"'
    )
    assert await scene.until_bound("stateful") == node


async def test_waiting_for_a_volume_has_an_end_and_the_room_is_free(scene: Scene) -> None:
    """After bindTimeoutSeconds the pod backs off; another takes the node meanwhile."""
    node = await scene.node("a", cpu="1")
    await impatient(scene, 1)
    storage_class = await with_class(scene)
    await with_claim(scene, storage_class)
    await scene.pod("stateful", cpu="700m", volumes=mounting())
    await until_selected(scene)
    await scene.pod("other", cpu="700m")

    async def late() -> list[Obj]:
        events = await scene.events("stateful", "FailedScheduling")
        return [event for event in events if "timed out waiting for" in event["note"]]

    (event, *_) = await eventually(late)
    assert f"binding volumes: timed out waiting for {scene.name}/data" in event["note"]
    # Two pods want one room, and only one of them can have it: whichever waits does so honestly.
    assert await eventually(lambda: scene.node_of("other")) == node
    assert await scene.node_of("stateful") == ""


async def test_a_claim_that_is_made_elsewhere_takes_its_pod_there(scene: Scene) -> None:
    """The volume turns out to be reached from another node only: the pod follows it."""
    nodes = {await scene.node("a"), await scene.node("b")}
    await scene.scheduling()
    storage_class = await with_class(scene)
    await with_claim(scene, storage_class)
    await scene.pod("stateful", volumes=mounting())
    chosen = await until_selected(scene)
    (other,) = nodes - {chosen}

    await bind_claim(scene, await volume(scene, storage_class, other, claimed=True))

    assert await eventually(lambda: scene.node_of("stateful")) == other
