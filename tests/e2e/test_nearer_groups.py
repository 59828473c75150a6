"""A running group that straddles racks goes into one, whole; an eviction that is refused ends it there."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from e2e.gangs import GROUP_LABEL, a_group, status_of
from e2e.polls import eventually, throughout
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded
    from e2e.door import Call
    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

RACK = "example.com/rack"
SIZE = 4
NEARER: Obj = {
    "name": "ImproveTopology",
    "args": {"topologyKey": RACK, "slowdownPercent": 100, "restartSeconds": 2},
}


async def straddling(scene: Scene, **node: Any) -> None:
    """A group of four that runs in two racks of two, then a rack with room for all of it."""
    await a_group(scene, "train", SIZE)
    for rack in ("r1", "r2"):
        await asyncio.gather(
            *(scene.node(f"{rack}-{n}", cpu="1", labels={RACK: f"{scene.name}-{rack}"}) for n in range(2))
        )
    await scene.scheduling()
    await scene.deployment("train", SIZE, {GROUP_LABEL: "train"}, cpu="700m")
    await asyncio.gather(
        *(scene.node(f"r3-{n}", cpu="1", labels={RACK: f"{scene.name}-r3"}, **node) for n in range(SIZE))
    )


def nearer(scene: Scene) -> Obj:
    return scene.rebalancing(NEARER, evictor={"minReplicas": 0}, limits={"total": 9})


async def racks(scene: Scene) -> Counter[str]:
    """How many members run in each rack."""
    return Counter(node.removeprefix(f"{scene.name}-")[:2] for node in await scene.running(app="train"))


def groups_of(records: list[Obj]) -> set[str]:
    return {each["spec"]["bundle"]["group"] for each in records}


async def test_a_group_goes_into_one_rack(scene: Scene) -> None:
    """All of its members, each by a record of its own; then it is left in peace."""
    await straddling(scene)
    await scene.policy(nearer(scene))

    records = await scene.until_finished(SIZE)

    assert Counter(each["status"]["phase"] for each in records) == {"Settled": SIZE}
    assert groups_of(records) == {f"PodGroup {scene.name}/train"}
    assert await racks(scene) == {"r3": SIZE}
    await eventually(lambda: status_of(scene, "train"), lambda found: found["running"] == SIZE)
    await throughout(scene.records, lambda found: len(found) == SIZE, 2)


async def test_after_a_refused_eviction_the_group_is_whole_again(guarded: StartGuarded) -> None:
    """The third is refused each time: two have left and run where their places were, two stay."""
    sent: list[str] = []

    def trouble(call: Call) -> str:
        if call != ("create", "", "pods/eviction"):
            return ""
        sent.append("eviction")
        return "conflict" if len(sent) > 2 else ""

    async with guarded("enforce", trouble) as (scene, _, operator):
        await straddling(scene)
        name = await scene.policy(nearer(scene))
        await eventually(lambda: asyncio.sleep(0, len(sent)), lambda count: count >= 3)
        await scene.change_policy(name, {"rebalancing": {"mode": "DryRun"}})
        records = [each for each in await scene.until_finished(SIZE) if each["spec"]["mode"] == "Enforce"]
        assert Counter(each["status"]["phase"] for each in records)["Settled"] == 2

        found = await eventually(lambda: racks(scene), lambda found: sum(found.values()) == SIZE)
        assert found["r3"] == 2
        await eventually(lambda: status_of(scene, "train"), lambda found: found["running"] == SIZE)
        assert await operator.stop() == 0


async def test_a_new_leader_evicts_no_further_member(scene: Scene, operator: Operator) -> None:
    """Killed while replacements cannot start: those that have left get their places, all run in the end."""
    await straddling(scene, runs_pods=False)
    await scene.policy(nearer(scene))

    async def phases() -> Counter[str]:
        return Counter(await scene.phases())

    await eventually(phases, lambda found: found["Evicted"] > 0)
    await scene.crash(operator)
    left = (await phases())["Evicted"]
    operator.start().until_ready()
    for number in range(SIZE):
        await scene.run_pods_of(f"{scene.name}-r3-{number}")

    records = await scene.until_finished(SIZE)
    ends = Counter(each["status"]["phase"] for each in records)
    assert ends["Settled"] >= left
    assert set(ends) <= {"Settled", "Cancelled"}
    await eventually(lambda: racks(scene), lambda found: sum(found.values()) == SIZE)


async def test_a_group_made_again_under_its_name_is_judged_afresh(scene: Scene) -> None:
    """The old one was moved; the new one starts in one rack and is left there."""
    await straddling(scene)
    await scene.policy(nearer(scene))
    await scene.until_finished(SIZE)
    path = scene.path("deployments/train", "/apis/apps/v1")
    await scene.speaker.request("PATCH", path, {"spec": {"replicas": 0}}, sends=MERGE)
    await eventually(lambda: scene.pods(app="train"), lambda found: not found)
    groups = scene.path("podgroups/train", "/apis/plimsoll.dev/v1alpha1")
    await scene.speaker.request("DELETE", groups)
    await scene.speaker.request("DELETE", f"/api/v1/nodes/{scene.name}-r3-0")
    await a_group(scene, "train", SIZE)
    await scene.speaker.request("PATCH", path, {"spec": {"replicas": SIZE}}, sends=MERGE)

    await scene.until_running(SIZE, app="train")
    await throughout(scene.records, lambda found: len(found) == SIZE, 3)
