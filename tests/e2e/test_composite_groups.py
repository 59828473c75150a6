"""CompositePodGroups of the core API: a leader and its workers start in one block, each group in a rack."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from e2e.polls import eventually, throughout

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e

API = "/apis/scheduling.k8s.io/v1alpha3"
RACK, BLOCK = "example.com/rack", "example.com/block"
PARENT = {"parentCompositePodGroupName": "serve"}


async def made(scene: Scene, kind: str, name: str, policy: dict[str, Any], label: str, **spec: Any) -> None:
    """A group of the core API, or a composite one."""
    document = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "workloadRef": {"workloadName": "serve", "templateName": name},
            "schedulingPolicy": {"gang": policy},
            "schedulingConstraints": {"topology": [{"key": label}]},
            **spec,
        },
    }
    await scene.make(scene.path(f"{kind.lower()}s", API), document)


async def condition(scene: Scene, plural: str, name: str) -> tuple[str, str, str]:
    """Type, status and reason of the only condition of a group; empty without one."""
    found = (await scene.speaker.request("GET", scene.path(f"{plural}/{name}", API))).accepted()
    conditions = (found.get("status") or {}).get("conditions") or [{}]
    first = conditions[0]
    return first.get("type", ""), first.get("status", ""), first.get("reason", "")


async def pods(scene: Scene, group: str, count: int) -> None:
    """The pods of a group."""
    named = {"podGroupName": group}
    await asyncio.gather(
        *(
            scene.pod(f"{group}-{n}", cpu="700m", labels={"group": group}, schedulingGroup=named)
            for n in range(count)
        )
    )


async def test_the_groups_of_a_composite_group_start_together(guarded: StartGuarded) -> None:
    """Late objects are waited for; then all start in a block; made again under its name, they start again."""
    async with guarded("enforce", composite_groups=True) as (scene, _, _):
        racks = {"x1": 2, "x2": 1, "y1": 2, "y2": 2}
        await asyncio.gather(
            *(
                scene.node(f"{rack}-{n}", cpu="1", labels={RACK: rack, BLOCK: rack[0]})
                for rack, size in racks.items()
                for n in range(size)
            )
        )
        await scene.scheduling()
        for name in ("prefill", "decode"):
            await made(scene, "PodGroup", name, {"minCount": 2}, RACK, **PARENT)
            await pods(scene, name, 2)
        found = await eventually(
            lambda: scene.condition("decode-0"), lambda one: "CompositePodGroup" in one.get("message", "")
        )
        assert f"waiting for CompositePodGroup {scene.name}/serve" in found["message"]

        await made(scene, "CompositePodGroup", "serve", {"minGroupCount": 2}, BLOCK)

        await scene.until_running(2, group="prefill")
        await scene.until_running(2, group="decode")
        placed = [await scene.running(group=name) for name in ("prefill", "decode")]
        used = [
            {node.removeprefix(f"{scene.name}-").rpartition("-")[0] for node in nodes} for nodes in placed
        ]
        assert sorted(used, key=min) == [{"y1"}, {"y2"}]
        kind = "CompositePodGroupInitiallyScheduled"
        await eventually(
            lambda: condition(scene, "compositepodgroups", "serve"),
            lambda known: known == (kind, "True", "Scheduled"),
        )
        await eventually(
            lambda: condition(scene, "podgroups", "decode"),
            lambda known: known == ("PodGroupInitiallyScheduled", "True", "Scheduled"),
        )

        for path in ("pods", "podgroups", "compositepodgroups"):
            collection = scene.path(path) if path == "pods" else scene.path(path, API)
            await scene.speaker.request("DELETE", collection, gracePeriodSeconds="0")
        await eventually(scene.pods, lambda left: not left)
        await made(scene, "CompositePodGroup", "serve", {"minGroupCount": 2}, BLOCK)
        await made(scene, "PodGroup", "prefill", {"minCount": 2}, RACK, **PARENT)
        await made(scene, "PodGroup", "decode", {"minCount": 3}, RACK, **PARENT)
        await pods(scene, "prefill", 2)
        await pods(scene, "decode", 3)
        await eventually(
            lambda: condition(scene, "compositepodgroups", "serve"),
            lambda known: known == (kind, "False", "Unschedulable"),
        )
        await throughout(lambda: scene.running(group="prefill"), lambda nodes: nodes == [], 0.5)

        await scene.node("x1-2", cpu="1", labels={RACK: "x1", BLOCK: "x"})
        await scene.node("x2-1", cpu="1", labels={RACK: "x2", BLOCK: "x"})

        await scene.until_running(3, group="decode")
        await scene.until_running(2, group="prefill")
