"""Gangs start together or not at all, on any control plane."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from e2e.gangs import (
    GROUP_LABEL,
    a_gang,
    a_group,
    bound,
    groups_path,
    members,
    row,
    status_of,
    until_phase,
)
from e2e.polls import eventually, throughout
from e2e.scene import Scene

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded
    from e2e.door import Call

pytestmark = pytest.mark.e2e

BINDING = ("create", "", "pods/binding")


async def fifty_nodes(scene: Scene, more: int = 0) -> list[str]:
    """Nodes with room for two members each."""
    names: list[str] = []
    for start in range(0, 50 + more, 10):
        suffixes = range(start, min(start + 10, 50 + more))
        names += await asyncio.gather(*(scene.node(f"n{number}", cpu="2") for number in suffixes))
    return names


async def message_of(scene: Scene, pod: str, like: str) -> str:
    """Wait until the condition that says why a pod is not scheduled contains a text; all of it."""
    condition = await eventually(
        lambda: scene.condition(pod),
        lambda one: one.get("status") == "False" and like in one["message"],
    )
    return str(condition["message"])


async def test_a_gang_of_a_hundred_starts_on_fifty_nodes_though_one_goes(scene: Scene) -> None:
    """A node is deleted while members are being bound; its pods are replaced, all hundred run."""
    nodes = await fifty_nodes(scene, more=1)
    await scene.scheduling()
    await a_group(scene, "train", 100)
    template = {"metadata": {"labels": {"app": "train", GROUP_LABEL: "train"}}}
    spec = scene.pod_spec(cpu="900m")
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train"},
        "spec": {
            "replicas": 100,
            "selector": {"matchLabels": {"app": "train"}},
            "template": {**template, "spec": spec},
        },
    }
    await scene.make(scene.path("deployments", "/apis/apps/v1"), deployment)
    first = (await eventually(lambda: bound(scene, "train")))[0]

    await scene.speaker.request("DELETE", f"/api/v1/nodes/{first}")

    async def clear() -> list[str]:
        """What the garbage collector of pods does after a while: pods of nodes that are gone go, too."""
        for pod in await scene.pods(app="train"):
            if pod["spec"].get("nodeName") == first:
                path = scene.path(f"pods/{pod['metadata']['name']}")
                await scene.speaker.request("DELETE", path, gracePeriodSeconds="0")
        return await scene.running(app="train")

    placed = await eventually(clear, lambda found: len(found) == 100 and first not in found)
    assert max(Counter(placed).values()) == 2
    assert set(placed) <= set(nodes) - {first}
    await until_phase(scene, "train", "Running")


async def test_bindings_fail_in_the_middle_and_all_get_bound(guarded: StartGuarded) -> None:
    """A quarter of the bindings is answered 409, 429, 500, or not at all; every member is bound once."""
    rng = random.Random(3)
    troubled: Counter[str] = Counter()

    def trouble(call: Call) -> str:
        if call != BINDING or rng.random() > 0.25:
            return ""
        how = rng.choice(["conflict", "busy", "broken", "silent", "deaf"])
        troubled[how] += 1
        return how

    async with guarded("enforce", trouble) as (scene, _, operator):
        await fifty_nodes(scene)
        await scene.scheduling()
        await a_gang(scene, "train", 100, cpu="900m")

        status = await until_phase(scene, "train", "Running")
        assert (status["running"], status["scheduled"]) == (100, 100)
        assert max(Counter(await bound(scene, "train")).values()) == 2
        assert await operator.stop() == 0
    assert sum(troubled.values()) >= 10


async def test_two_gangs_that_cannot_both_fit_do_not_share_the_room(scene: Scene) -> None:
    """Their pods come mixed; one gang runs, the other takes nothing, until the first is gone."""
    for suffix in ("a", "b"):
        await scene.node(suffix, cpu="2")
    await scene.scheduling()
    for name in ("one", "two"):
        await a_group(scene, name, 3)
    for number in range(3):
        for name in ("one", "two"):
            await members(scene, name, 1, first=number, cpu="900m")

    winner = (await eventually(scene.running, lambda found: len(found) == 3)) and (
        "one" if await bound(scene, "one") else "two"
    )
    loser = {"one": "two", "two": "one"}[winner]  # type: ignore[index] # known to exist in this test
    await message_of(scene, f"{loser}-0", "1 of 3 members fit, 3 must")
    await throughout(lambda: bound(scene, loser), lambda found: not found, 0.5)
    for number in range(3):
        await scene.speaker.request("DELETE", scene.path(f"pods/{winner}-{number}"))

    await until_phase(scene, loser, "Running")


async def test_a_gang_that_cannot_fit_says_what_is_missing(scene: Scene) -> None:
    """On each pod, on the PodGroup and as its event; and the room is there for others."""
    for suffix in ("a", "b"):
        await scene.node(suffix, cpu="1")
    await scene.scheduling()
    await a_gang(scene, "large", 5, cpu="900m")

    message = await message_of(scene, "large-0", "members fit")
    status = await eventually(
        lambda: status_of(scene, "large"),
        lambda found: found.get("conditions") and found["conditions"][0]["message"] == message,
    )
    (event,) = await eventually(lambda: scene.events("large", "Unschedulable"))
    await scene.pod("small", cpu="900m")

    assert message.startswith("2 of 5 members fit, 5 must; 3 lack a node: 0/")
    assert "2 Insufficient cpu" in message
    assert status["phase"] == "Pending"
    assert status["conditions"][0]["type"] == "Scheduled"
    assert event["note"] == message[:1024]
    await scene.until_bound("small")
    assert await bound(scene, "large") == []


async def test_a_start_that_takes_too_long_is_reported_and_mended(guarded: StartGuarded) -> None:
    """Two members are bound, the API server refuses the third: Unknown after two seconds, then Running."""
    healed = False
    asked = 0

    def trouble(call: Call) -> str:
        nonlocal asked
        asked += call == BINDING
        return "broken" if call == BINDING and asked > 2 and not healed else ""

    async with guarded("enforce", trouble) as (scene, _, operator):
        await scene.node("a", cpu="4")
        await scene.scheduling()
        await a_group(scene, "train", 3, scheduleTimeoutSeconds=2)
        await members(scene, "train", 3)

        status = await until_phase(scene, "train", "Unknown")
        (event,) = await eventually(lambda: scene.events("train", "StartTimedOut"))
        healed = True

        assert status["scheduled"] == 2
        assert status["conditions"][0]["reason"] == "TimedOut"
        assert event["note"].startswith("2 of 3 members are placed after 2 s; they stay")
        await until_phase(scene, "train", "Running")
        assert await operator.stop() == 0


async def test_kubectl_shows_how_far_a_gang_has_come(scene: Scene) -> None:
    """Its columns: waiting for siblings, then running."""
    await scene.node("a")
    await scene.scheduling()
    await a_group(scene, "train", 3)
    await members(scene, "train", 2)
    await eventually(lambda: status_of(scene, "train"), lambda found: found.get("phase") == "Pending")
    early = await eventually(lambda: row(scene, "train"), lambda cells: "number: 2" in cells["Message"])
    await message_of(scene, "train-0", "cannot find enough sibling pods")

    await members(scene, "train", 1, first=2)
    await until_phase(scene, "train", "Running")
    late = await row(scene, "train")

    assert (early["Phase"], early["MinMember"], early["Scheduled"]) == ("Pending", 3, 0)
    assert [late[name] for name in ("Phase", "Scheduled", "Running", "Failed")] == ["Running", 3, 3, 0]


async def test_a_gang_takes_room_from_pods_of_lower_priority_only_if_it_then_fits(scene: Scene) -> None:
    """Two victims for a gang of two; none for one of five."""
    for suffix in ("a", "b"):
        await scene.node(suffix, cpu="1")
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"{scene.name}-high"},
        "value": 1000,
    }
    await scene.make("/apis/scheduling.k8s.io/v1/priorityclasses", high)
    await scene.scheduling()
    for number in range(2):
        await scene.pod(f"low-{number}", cpu="900m", labels={"app": "low"})
    await scene.until_running(2, app="low")

    await a_gang(scene, "five", 5, cpu="900m", priorityClassName=high["metadata"]["name"])  # type: ignore[index] # known to exist in this test
    await message_of(scene, "five-0", "0 of 5 members fit")
    await throughout(lambda: scene.running(app="low"), lambda found: len(found) == 2, 0.5)
    await a_gang(scene, "two", 2, cpu="900m", priorityClassName=high["metadata"]["name"])  # type: ignore[index] # known to exist in this test

    await until_phase(scene, "two", "Running")
    assert await scene.running(app="low") == []
    assert len((await scene.speaker.request("GET", groups_path(scene))).accepted()["items"]) == 2


async def test_the_pods_of_an_indexed_job_form_a_group(scene: Scene) -> None:
    """Without a PodGroup: the policy says so, and the Job says how many."""
    await scene.node("n0", cpu="2")
    spec = {"scheduling": {"schedulerName": scene.scheduler, "groups": {"derive": "Automatic"}}}
    await scene.until_condition(await scene.policy(spec, "scheduler"), "Ready", "True")
    template = {
        "metadata": {"labels": {"app": "train"}},
        "spec": {**scene.pod_spec(cpu="900m"), "restartPolicy": "Never"},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": template},
    }
    await scene.make(scene.path("jobs", "/apis/batch/v1"), job)
    pods = await eventually(lambda: scene.pods(app="train"), lambda found: len(found) == 3)

    said = await message_of(scene, pods[0]["metadata"]["name"], "2 of 3 members fit, 3 must")
    assert "1 lack a node" in said
    assert await scene.running(app="train") == []

    await scene.node("n1", cpu="2")

    await eventually(lambda: scene.running(app="train"), lambda found: len(found) == 3)
