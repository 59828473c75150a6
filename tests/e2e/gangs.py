"""Gangs of a scene: PodGroups and the pods that name them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from e2e.polls import PATIENCE_S, eventually
from e2e.speaker import TABLE

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

GROUP_LABEL = "plimsoll.dev/pod-group"


def groups_path(scene: Scene) -> str:
    """The collection of the scene's PodGroups."""
    return scene.path("podgroups", "/apis/plimsoll.dev/v1alpha1")


CORE = "/apis/scheduling.k8s.io/v1alpha2"


async def serves_core_groups(scene: Scene) -> bool:
    """Whether the API server has PodGroups of the core API."""
    return (await scene.speaker.request("GET", f"{CORE}/podgroups", limit="1")).status == 200


async def a_core_group(scene: Scene, name: str, least: int, **spec: Any) -> None:
    """Create a PodGroup of the core API, a gang."""
    document: Obj = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}, **spec},
    }
    await scene.make(scene.path("podgroups", CORE), document)


async def core_condition(scene: Scene, name: str) -> tuple[str, str]:
    """Status and reason of the condition of a PodGroup of the core API; empty without one."""
    path = f"{scene.path('podgroups', CORE)}/{name}"
    status: Obj = (await scene.speaker.request("GET", path)).accepted().get("status", {})
    found = {each["type"]: each for each in status.get("conditions", ())}.get("PodGroupScheduled", {})
    return found.get("status", ""), found.get("reason", "")


async def a_group(scene: Scene, name: str, min_member: int, **spec: Any) -> None:
    """Create a PodGroup."""
    document: Obj = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": min_member, **spec},
    }
    await scene.make(groups_path(scene), document)


async def members(scene: Scene, group: str, count: int, *, first: int = 0, **spec: Any) -> None:
    """Create pods of a gang, several at a time."""
    for start in range(first, first + count, 20):
        numbers = range(start, min(start + 20, first + count))
        await asyncio.gather(
            *(scene.pod(f"{group}-{number}", labels={GROUP_LABEL: group}, **spec) for number in numbers)
        )


async def a_gang(scene: Scene, name: str, count: int, **spec: Any) -> None:
    """Create a PodGroup and its pods, all of which it needs."""
    await a_group(scene, name, count)
    await members(scene, name, count, **spec)


async def the_group(scene: Scene, name: str) -> Obj:
    """A PodGroup as it is."""
    return (await scene.speaker.request("GET", f"{groups_path(scene)}/{name}")).accepted()


async def status_of(scene: Scene, name: str) -> Obj:
    """The status of a PodGroup."""
    status: Obj = (await the_group(scene, name)).get("status", {})
    return status


async def until_phase(scene: Scene, name: str, phase: str, within_s: float = PATIENCE_S) -> Obj:
    """Wait until a PodGroup is in a phase; its status then."""
    return await eventually(
        lambda: status_of(scene, name), lambda status: status.get("phase") == phase, within_s
    )


async def bound(scene: Scene, group: str) -> list[str]:
    """The nodes of a gang's pods that have one."""
    pods = await scene.pods(**{GROUP_LABEL: group})
    return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]


async def row(scene: Scene, name: str) -> dict[str, Any]:
    """What ``kubectl get podgroups`` prints of one, by column."""
    answer = await scene.speaker.request("GET", f"{groups_path(scene)}/{name}", takes=TABLE)
    table = answer.accepted()
    headings = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(headings, table["rows"][0]["cells"], strict=True))
