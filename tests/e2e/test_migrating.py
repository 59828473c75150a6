"""Evictions that another controller carries out: KubeVirt migrates a virtual machine live.

The scene is that of descheduler's issue 1397, and of pull request 258 of kubevirt/community.
tests/rebalancing/moves/test_deferral.py has the other ends and the long migrations, in virtual time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.polls import eventually, throughout
from e2e.scene import FINISHED
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded
    from e2e.door import Call
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"


async def a_machine(scene: Scene, name: str, node: str, owner: Obj) -> None:
    """A pod in which the owner's virtual machine runs."""
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"vm": "a"}, "ownerReferences": [owner]},
        "spec": {**scene.pod_spec(terminationGracePeriodSeconds=0), "nodeName": node},
    }
    await scene.make(scene.path("pods"), document)
    await eventually(lambda: scene.a_pod(name), lambda pod: pod["status"].get("phase") == "Running")


async def test_a_migration_is_one_request_and_one_record(guarded: StartGuarded) -> None:
    """429 for the eviction, the annotation, a second pod, and the end of the first; runs go on meanwhile."""
    asked: list[Call] = []

    def trouble(call: Call) -> str:
        if call != ("create", "", "pods/eviction"):
            return ""
        asked.append(call)
        return "migrating"

    async with guarded("enforce", trouble) as (scene, _, operator):
        old, new = await scene.node("old"), await scene.node("new")
        instance = await scene.make(
            scene.path("configmaps"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vmi"}}
        )
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "vmi", "controller": True}
        owner["uid"] = instance["metadata"]["uid"]
        await a_machine(scene, "vm-a", old, owner)
        await scene.policy({"scheduling": {"schedulerName": scene.scheduler}}, "scheduler")
        await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
        policy = await scene.policy(
            scene.rebalancing("RemovePodsViolatingNodeTaints", evictor={"minReplicas": 0})
        )

        deferred = await eventually(
            scene.records,
            lambda found: any(each.get("status", {}).get("reason") == "Deferred" for each in found),
        )
        path = scene.path("pods") + "/vm-a"
        marked = {"metadata": {"annotations": {IN_PROGRESS: "kubevirt"}}}
        await scene.speaker.request("PATCH", path, marked, sends=MERGE)
        await scene.runs(policy, 2)
        await a_machine(scene, "vm-b", new, owner)
        await throughout(scene.phases, lambda phases: phases == ["Evicting"], 1.0)
        await scene.speaker.request(
            "PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}, sends=MERGE
        )
        records = await eventually(
            scene.records, lambda found: all(each["status"].get("phase") in FINISHED for each in found)
        )
        assert await operator.stop() == 0

    assert len(deferred) == len(records) == 1
    assert records[0]["status"]["phase"] == "Settled"
    assert records[0]["status"]["replacement"]["name"] == "vm-b"
    assert "triggered evacuation" in deferred[0]["status"]["message"]
    assert len(asked) == 1
