"""The operator under exactly the rights of deploy/: nothing that it needs is refused, nothing is idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deploy.manifests import grants
from e2e.conftest import define
from e2e.ganging import a_gang, until_phase
from e2e.granting import door, kubeconfig_for
from e2e.polling import eventually
from e2e.scene import POLICIES, Scene
from e2e.speaking import MERGE, speaking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import StartDevCluster
    from e2e.operating import Operator
    from e2e.scene import Obj

pytestmark = pytest.mark.e2e

#: Granted, and not used in these few seconds.
LATER = {("patch", "events.k8s.io", "events")}  # the count of an event that comes again after a minute


async def test_the_enforcing_role_is_enough_and_no_more(
    start_devcluster: StartDevCluster, start_operator: Callable[[Path], Operator], tmp_path: Path
) -> None:
    """Placing, telling why not, preempting, moving, recording, tidying up."""
    cluster = start_devcluster()
    async with (
        speaking(cluster.kubeconfig) as speaker,
        door(cluster.plain_url, grants("enforce")) as entrance,
    ):
        await define(speaker)
        scene = await Scene(speaker).begin()
        high: Obj = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
        await scene.make("/apis/scheduling.k8s.io/v1/priorityclasses", high)
        operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))
        old = await scene.node("old", cpu="1")
        await scene.scheduling()
        await scene.deployment("web", 2)
        await scene.node("new", cpu="1")
        await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
        name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", records={"maxCount": 1}))
        await eventually(lambda: scene.running(app="web"), lambda nodes: len(nodes) == 2 and old not in nodes)
        await scene.until_finished(1)
        await scene.runs(name, 2)
        await speaker.request("DELETE", f"{POLICIES}/{name}")
        await scene.pod("low", cpu="700m")
        await scene.until_bound("low")
        await scene.pod("high", cpu="700m", priorityClassName="high")
        await scene.until_bound("high")
        await claims_that_wait(scene)
        await a_gang(scene, "gang", 2, cpu="10m")
        await until_phase(scene, "gang", "Running")

        assert operator.terminate() == 0
    assert entrance.refused == set()
    assert grants("enforce") - entrance.used == LATER


async def claims_that_wait(scene: Scene) -> None:
    """A pod whose claims get a volume that exists, and one that is provisioned; until both are told."""
    storage, claims = "/apis/storage.k8s.io/v1/storageclasses", scene.path("persistentvolumeclaims")
    document: Obj = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await scene.make(storage, document)
    wanted: Obj = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    volume: Obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {**wanted, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"}},
    }
    await scene.make("/api/v1/persistentvolumes", volume)
    available = {"status": {"phase": "Available"}}
    path = "/api/v1/persistentvolumes/disk"
    (await scene.speaker.request("PATCH", f"{path}/status", available, sends=MERGE)).accepted()
    for name, size in (("found", "1Gi"), ("made", "2Gi")):
        claim: Obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {**wanted, "resources": {"requests": {"storage": size}}},
        }
        await scene.make(claims, claim)
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("found", "made")]
    await scene.pod("stateful", cpu="10m", volumes=volumes)

    async def told() -> tuple[object, object]:
        kept = (await scene.speaker.request("GET", path)).accepted()["spec"].get("claimRef", {}).get("name")
        meta = (await scene.speaker.request("GET", f"{claims}/made")).accepted()["metadata"]
        return kept, meta.get("annotations", {}).get("volume.kubernetes.io/selected-node")

    await eventually(told, lambda found: found[0] == "found" and found[1])


async def test_the_dry_run_role_is_enough_to_predict(
    start_devcluster: StartDevCluster, start_operator: Callable[[Path], Operator], tmp_path: Path
) -> None:
    """And a policy that wants more is refused by the API server, says so, and harms nobody."""
    cluster = start_devcluster()
    async with (
        speaking(cluster.kubeconfig) as speaker,
        door(cluster.plain_url, grants("dry-run")) as entrance,
    ):
        await define(speaker)
        scene = await Scene(speaker).begin()
        old = await scene.node("old")
        bound: Obj = {"nodeName": old, "schedulerName": "default-scheduler"}
        await scene.deployment("web", 2, **bound)
        await scene.node("new")
        await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
        operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))
        name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", mode="DryRun"))
        await scene.until_finished(1)
        assert entrance.refused == set()

        await scene.change_policy(name, {"rebalancing": {"mode": "Enforce"}})
        await eventually(scene.phases, lambda phases: "Failed" in phases)

        assert entrance.refused == {("create", "", "pods/eviction")}
        assert await scene.running(app="web") == [old, old]
        assert operator.terminate() == 0
