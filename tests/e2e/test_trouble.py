"""The API server fails, cuts and forgets; the operator comes back, and does nothing twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from e2e.polls import eventually, throughout
from e2e.scene import FINISHED, POLICIES
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded
    from e2e.door import Call
    from e2e.scene import Obj

pytestmark = pytest.mark.e2e

WRITES = {"create", "patch", "delete"}


async def test_an_outage_is_survived_and_caught_up_with(guarded: StartGuarded) -> None:
    """What happened meanwhile is seen afterwards: a pod, a node, a policy that came and one that went."""
    async with guarded("enforce") as (scene, entrance, operator):
        await scene.node("a")
        gone = await scene.scheduling()
        await scene.pod("before")
        await scene.until_bound("before")

        entrance.close()
        await scene.speaker.request("DELETE", f"{POLICIES}/{gone}")
        other = f"{scene.scheduler}-other"
        new = await scene.policy({"scheduling": {"schedulerName": other}}, "new")
        node = await scene.node("b", labels={"new": "yes"})
        await scene.pod("meanwhile", schedulerName=other, nodeSelector={"new": "yes"})
        await asyncio.sleep(0.5)
        entrance.is_open = True

        assert await eventually(lambda: scene.node_of("meanwhile")) == node
        await scene.until_condition(new, "Ready", "True")
        await scene.pod("orphan")
        await throughout(lambda: scene.node_of("orphan"), lambda found: found == "", 0.3)
        assert operator.status is None
        assert await operator.stop() == 0


async def test_an_eviction_whose_answer_is_lost_is_seen_to_its_end(guarded: StartGuarded) -> None:
    """The watch of pods lags behind and the retry finds no pod: it was ours, and its record goes on."""
    asked: list[Call] = []
    watched = asyncio.Event()

    def trouble(call: Call) -> str:
        if call != ("create", "", "pods/eviction"):
            return ""
        asked.append(call)
        if len(asked) > 1:
            return ""
        entrance.held["watch", "", "pods"] = watched
        return "deaf"

    async with guarded("enforce", trouble) as (scene, entrance, operator):
        old = await scene.node("old")
        await scene.policy({"scheduling": {"schedulerName": scene.scheduler}}, "scheduler")
        await scene.deployment("web", 2, terminationGracePeriodSeconds=0)
        await scene.node("new")
        await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
        await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", limits={"total": 1}))

        def answered(records: list[Obj]) -> bool:
            return any(each.get("status", {}).get("phase") in {"Evicted", *FINISHED} for each in records)

        first = await eventually(scene.records, answered)
        watched.set()
        await eventually(
            lambda: scene.running(app="web"), lambda nodes: len(nodes) == 2 and old not in nodes, 40
        )
        records = await eventually(
            scene.records,
            lambda found: all(each.get("status", {}).get("phase") in FINISHED for each in found),
        )
        assert await operator.stop() == 0

    assert [record["status"]["phase"] for record in first] == ["Evicted"]
    assert Counter(record["status"]["phase"] for record in records) == {"Settled": 2}
    assert len(asked) == 2  # one for each pod: the retry reads that the first is gone, and sends nothing


@pytest.mark.parametrize("planner", ["Proven", "Upstream"])
async def test_a_pod_that_the_watch_shows_otherwise_than_it_is_stays(
    guarded: StartGuarded, planner: str
) -> None:
    """The watch of pods stands still, as on a half-open connection, while somebody annotates them."""
    async with guarded("enforce") as (scene, entrance, operator):
        old = await scene.node("old")
        await scene.policy({"scheduling": {"schedulerName": scene.scheduler}}, "scheduler")
        await scene.deployment("web", 2)
        await scene.node("new")
        watched = entrance.held["watch", "", "pods"] = asyncio.Event()
        change = {"metadata": {"annotations": {"plimsoll.dev/evict": "false"}}}
        for pod in await scene.pods(app="web"):
            path = scene.path(f"pods/{pod['metadata']['name']}")
            (await scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()
        await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
        spec = scene.rebalancing("RemovePodsViolatingNodeTaints", planner=planner)
        name = await scene.policy(spec)

        def finished(records: list[Obj]) -> bool:
            return any(each.get("status", {}).get("phase") in FINISHED for each in records)

        record = (await eventually(scene.records, finished))[0]
        watched.set()
        status = await eventually(
            lambda: scene.policy_status(name),
            lambda found: any(
                each["reason"] == "NeverEvict" for each in found.get("counts", {}).get("refused", ())
            ),
        )
        assert await scene.running(app="web") == [old, old]
        assert await operator.stop() == 0

    assert (record["status"]["phase"], record["status"]["reason"]) == ("Cancelled", "Changed")
    assert record["status"]["message"] == "the pod has other annotations than the watch has shown"
    assert status["counts"].get("evicted", 0) == 0
    assert ("create", "", "pods/eviction") not in entrance.used


async def test_one_request_in_five_fails_and_all_gets_done(guarded: StartGuarded) -> None:
    """Refused, broken, cut before and after: pods are placed, moved once, and every record is finished."""
    rng = random.Random(1)
    troubled: Counter[str] = Counter()

    def trouble(call: Call) -> str:
        if call[0] not in WRITES or rng.random() > 0.2:
            return ""
        how = rng.choice(["busy", "broken", "silent", "deaf"])
        troubled[how] += 1
        return how

    async with guarded("enforce", trouble) as (scene, _, operator):
        old = await scene.node("old")
        await scene.policy({"scheduling": {"schedulerName": scene.scheduler}}, "scheduler")
        await scene.deployment("web", 6)
        for suffix in ("b", "c"):
            await scene.node(suffix)
        await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
        name = await scene.policy(
            scene.rebalancing("RemovePodsViolatingNodeTaints", limits={"perWorkload": 3})
        )

        await eventually(
            lambda: scene.running(app="web"), lambda nodes: len(nodes) == 6 and old not in nodes, 40
        )
        records = await eventually(
            scene.records,
            lambda found: found and all(each.get("status", {}).get("phase") in FINISHED for each in found),
        )
        await scene.until_condition(name, "Ready", "True")
        await scene.until_condition(f"{scene.name}-scheduler", "Ready", "True")
        assert operator.status is None
        assert await operator.stop() == 0

    assert len(troubled) == 4
    assert Counter(record["status"]["phase"] for record in records) == {"Settled": 6}
    assert len({record["spec"]["pod"]["uid"] for record in records}) == 6
