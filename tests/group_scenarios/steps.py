"""The steps of a situation: objects made and deleted, and the pods and conditions that must then be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from e2e.gangs import CORE, core_condition
from e2e.polls import eventually, throughout
from e2e.scene import Scene

#: Seconds within which what must happen happens, and for which what must not happen does not.
WITHIN_S, HOLD_S = 40.0, 4.0

#: Node labels of the situations.
RACK, ZONE = "example.com/rack", "example.com/zone"

#: Priorities, each of which has a class.
PRIORITIES = (5, 10, 20, 30, 50, 100, 500)

#: Looks at pods or changes them. What does not come about is an AssertionError.
Step = Callable[[Scene], Awaitable[None]]


class NotSeenError(Exception):
    """What must be seen was not seen in time, or what must not happen happened."""


def _looking(step: Step) -> Step:
    """A step that only looks: a failure is an outcome, where one of others breaks the run."""

    async def look(scene: Scene) -> None:
        try:
            await step(scene)
        except AssertionError as exc:
            raise NotSeenError from exc

    return look


@dataclass(frozen=True, slots=True)
class Situation:
    """A cluster and what happens in it.

    Attributes:
        title: What happens, for a reader of the table.
        nodes: Cpus of each node, with its rack and zone; "" for a node without the label.
        steps: In order.
        source: The function of Kubernetes' tests that it is from; "" for one of ours.
    """

    title: str
    nodes: dict[str, tuple[int, str, str]]
    steps: tuple[Step, ...]
    source: str = ""


def class_of(priority: int) -> str:
    """The name of the priority class of a value."""
    return f"p{priority}"


def group(
    name: str, least: int, *, priority: int = 100, key: str = "", whole: bool = False, again: bool = False
) -> Step:
    """Make a PodGroup, and its Workload: a gang of at least so many, or a basic group of 0.

    Args:
        name: Of both.
        least: ``minCount``.
        priority: That of its class.
        key: The node label whose value its members share.
        whole: Whether its members leave together (``disruptionMode: PodGroup``).
        again: Whether the Workload is there already.
    """
    policy: dict[str, Any] = {"gang": {"minCount": least}} if least else {"basic": {}}
    spec: dict[str, Any] = {"schedulingPolicy": policy, "priorityClassName": class_of(priority)}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    if whole:
        spec["disruptionMode"] = "PodGroup"

    async def make(scene: Scene) -> None:
        kind = {"apiVersion": "scheduling.k8s.io/v1alpha2", "metadata": {"name": name}}
        workload = {**kind, "kind": "Workload", "spec": {"podGroupTemplates": [{"name": "t", **spec}]}}
        of = {"workload": {"workloadName": name, "podGroupTemplateName": "t"}}
        if not again:
            await scene.make(scene.path("workloads", CORE), workload)
        document = {**kind, "kind": "PodGroup", "spec": {**spec, "podGroupTemplateRef": of}}
        await scene.make(scene.path("podgroups", CORE), document)

    return make


def pods(
    names: str, group: str = "", *, cpu: str = "1", priority: int = 100, on: str = "", app: str = ""
) -> Step:
    """Make pods in this order, which a group has unless it is ""; ``on`` names their node."""

    async def make(scene: Scene) -> None:
        spec: dict[str, Any] = {"schedulerName": "default-scheduler", "priorityClassName": class_of(priority)}
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        if on:
            spec["nodeName"] = f"{scene.name}-{on}"
        for name in names.split():
            await scene.pod(name, labels={"app": app} if app else {}, cpu=cpu, **spec)

    return make


def budget(app: str, least: int) -> Step:
    """Make a budget for the pods of a label, and wait until they are counted."""

    async def make(scene: Scene) -> None:
        await scene.budget(app, app, minAvailable=least)

    return make


def delete(names: str) -> Step:
    """Delete pods, and wait until they are gone."""

    async def remove(scene: Scene) -> None:
        for name in names.split():
            await _removed(scene, scene.path(f"pods/{name}"))

    return remove


def delete_group(name: str) -> Step:
    """Delete a PodGroup, and let go of what keeps it until its pods have gone."""

    async def remove(scene: Scene) -> None:
        path = f"{scene.path('podgroups', CORE)}/{name}"
        (await scene.speaker.request("DELETE", path)).accepted()
        let_go = {"metadata": {"finalizers": None}}
        await scene.speaker.request("PATCH", path, let_go, sends="application/merge-patch+json")
        await _gone(scene, path)

    return remove


async def _removed(scene: Scene, path: str) -> None:
    (await scene.speaker.request("DELETE", path)).accepted()
    await _gone(scene, path)


async def _gone(scene: Scene, path: str) -> None:
    await eventually(
        lambda: scene.speaker.request("GET", path), lambda answer: answer.status == 404, WITHIN_S
    )


async def _places(scene: Scene) -> dict[str, str]:
    """The node of each pod that stays, "" for none, without the scene's name."""
    return {
        each["metadata"]["name"]: each["spec"].get("nodeName", "").removeprefix(f"{scene.name}-")
        for each in await scene.pods()
        if "deletionTimestamp" not in each["metadata"]
    }


def _see(holds: Callable[[dict[str, str]], object]) -> Step:
    async def look(scene: Scene) -> None:
        await eventually(lambda: _places(scene), holds, WITHIN_S)

    return _looking(look)


def bound(names: str) -> Step:
    """All of these pods have a node."""
    return _see(lambda places: all(places.get(each) for each in names.split()))


def some(count: int, names: str) -> Step:
    """So many of these pods have a node, and it stays so."""

    def holds(places: dict[str, str]) -> bool:
        return sum(bool(places.get(each)) for each in names.split()) == count

    async def look(scene: Scene) -> None:
        await _see(holds)(scene)
        await throughout(lambda: _places(scene), holds, HOLD_S)

    return _looking(look)


def wait(names: str) -> Step:
    """None of these pods gets a node."""
    return some(0, names)


def refused(names: str) -> Step:
    """The scheduler says of each of these pods that it has no place, and none gets a node."""

    async def look(scene: Scene) -> None:
        for name in names.split():
            await eventually(
                lambda name=name: scene.condition(name),  # type: ignore[misc] # mypy: a default of a lambda
                lambda found: (found.get("status"), found.get("reason")) == ("False", "Unschedulable"),
                WITHIN_S,
            )
        await wait(names)(scene)

    return _looking(look)


def gone(names: str) -> Step:
    """None of these pods stays."""
    return _see(lambda places: places.keys().isdisjoint(names.split()))


def stay(names: str) -> Step:
    """All of these pods keep their nodes."""
    return some(len(names.split()), names)


def on(nodes: str, names: str) -> Step:
    """All of these pods are on some of these nodes."""
    return _see(lambda places: {places.get(each) for each in names.split()} <= {*nodes.split()})


def together(names: str) -> Step:
    """Those of these pods that have a node are in one rack; the nodes bear its name and a digit."""
    return _see(lambda places: len({places[each][:-1] for each in names.split() if places.get(each)}) == 1)


def says(group: str, status: str) -> Step:
    """The condition of the PodGroup has this status."""

    async def look(scene: Scene) -> None:
        await eventually(lambda: core_condition(scene, group), lambda found: found[0] == status, WITHIN_S)

    return _looking(look)


async def outcome(scene: Scene, situation: Situation) -> str:
    """Play a situation; "" if all of it came about, else what was seen instead."""
    made = (
        scene.node(
            name, cpu=str(cpu), labels={key: text for key, text in ((RACK, rack), (ZONE, zone)) if text}
        )
        for name, (cpu, rack, zone) in situation.nodes.items()
    )
    await asyncio.gather(*made)
    for step in situation.steps:
        try:
            await step(scene)
        except NotSeenError:
            return _told(await _places(scene))
    return ""


def _told(places: dict[str, str]) -> str:
    """The pods that run by node, and those that wait."""
    by_node: dict[str, list[str]] = {}
    for name, node in sorted(places.items()):
        by_node.setdefault(node, []).append(name)
    waiting = by_node.pop("", [])
    parts = [f"{node}: {' '.join(names)}" for node, names in sorted(by_node.items())]
    return "; ".join([*parts, *([f"waiting: {' '.join(waiting)}"] if waiting else [])]) or "no pod is left"
