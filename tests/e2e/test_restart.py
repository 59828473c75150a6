"""The operator is killed in the middle of what it does; the next one finishes it, once."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from e2e.polls import LAST_PACE_S, eventually, throughout
from e2e.scene import FINISHED
from e2e.speaker import MERGE
from plimsoll.api.v1alpha1.eviction_phases import Phase, may_follow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

EVERYTHING = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"}


@asynccontextmanager
async def witnessed(scene: Scene) -> AsyncIterator[dict[str, set[str]]]:
    """The nodes that each pod was ever seen on, by uid."""
    seen: dict[str, set[str]] = defaultdict(set)

    async def look() -> None:
        while True:
            for pod in await scene.pods():
                if node := pod["spec"].get("nodeName"):
                    seen[pod["metadata"]["uid"]].add(node)
            await asyncio.sleep(LAST_PACE_S)

    task = asyncio.create_task(look())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def open_ones(records: list[Obj]) -> list[str]:
    """The phases of the records that wait for something."""
    phases = [record.get("status", {}).get("phase", "") for record in records]
    return [phase for phase in phases if phase not in FINISHED]


async def test_pods_are_bound_once_although_the_operator_dies(scene: Scene, operator: Operator) -> None:
    """Killed among sixty bindings, started again: every pod has one node, and no node too many pods."""
    for suffix in ("a", "b", "c"):
        await scene.node(suffix, cpu="2")
    await scene.scheduling()
    await asyncio.gather(*(scene.pod(f"pod-{number}") for number in range(60)))
    async with witnessed(scene) as seen:
        await eventually(scene.pods, lambda pods: any(pod["spec"].get("nodeName") for pod in pods))
        await scene.crash(operator)
        operator.start()

        nodes = await scene.until_running(60)

    assert Counter(nodes) == dict.fromkeys(nodes, 20)
    assert {len(places) for places in seen.values()} == {1}
    told = Counter(
        event["regarding"]["name"]
        for event in await scene.items(scene.path("events", "/apis/events.k8s.io/v1"))
        if event["reason"] == "Scheduled"
    )
    assert set(told.values()) <= {1}


async def test_the_target_of_an_evicted_pod_is_held_again(scene: Scene, operator: Operator) -> None:
    """Killed before the replacement exists: no pod takes its room meanwhile, and it goes there."""
    old = await scene.node("old", cpu="1")
    await scene.scheduling()
    labels = {"app": "db"}
    document = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 1,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": scene.pod_spec(cpu="700m")},
        },
    }
    await scene.make(scene.path("statefulsets", "/apis/apps/v1"), document)
    await scene.until_running(1, app="db")
    new = await scene.node("new", cpu="1")
    path = scene.path("pods/db-0")
    # A StatefulSet makes the replacement when the pod is gone, and the finalizer puts that off.
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    (await scene.speaker.request("PATCH", path, held, sends=MERGE)).accepted()
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", evictor={"minReplicas": 0}))
    await eventually(scene.records, lambda records: open_ones(records) == ["Evicted"])

    await scene.crash(operator)
    await scene.pod("thief", cpu="700m")
    operator.start().until_ready()
    reserved = "1 Insufficient cpu because of reservations"
    await eventually(lambda: scene.condition("thief"), lambda one: reserved in one.get("message", ""))
    await throughout(lambda: scene.node_of("thief"), lambda node: not node, 2)
    let_go = {"metadata": {"finalizers": None}}
    (await scene.speaker.request("PATCH", path, let_go, sends=MERGE)).accepted()

    (record,) = await scene.until_finished(1)
    assert (record["status"]["phase"], record["status"]["replacement"]["node"]) == ("Settled", new)
    assert await scene.node_of("thief") == ""


@pytest.mark.parametrize("moment", ["Evicting", "Evicted"])
async def test_each_open_record_is_finished_once_after_a_crash(
    moment: str, scene: Scene, operator: Operator
) -> None:
    """Killed with moves under way: none is lost, none is reported twice, and what was left undone is done."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 6)
    await asyncio.sleep(1)  # after a restart, a pod made in the second of an eviction counts as made after it
    await scene.node("prompt")
    slow = await scene.node("slow", runs_pods=False)  # its moves cannot be over before the crash
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    reached = {"Evicting": {"Evicting", "Evicted"}, "Evicted": {"Evicted"}}[moment]
    async with witnessed(scene) as seen:
        await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", limits=EVERYTHING))
        await eventually(scene.records, lambda records: any(phase in reached for phase in open_ones(records)))
        await scene.crash(operator)
        left = open_ones(await scene.records())
        await scene.run_pods_of(slow)
        operator.start()

        await eventually(lambda: scene.running(app="web"), lambda nodes: len(nodes) == 6 and old not in nodes)
        records = await scene.until_finished(len(left))

    assert left, "it was killed too late to leave anything"
    assert {len(places) for places in seen.values()} == {1}
    evicted: Counter[str] = Counter()
    for record in records:
        told = [Phase(each["phase"]) for each in record["status"]["transitions"]]
        assert all(may_follow(before, after) for before, after in zip([None, *told], told, strict=False))
        assert sum(phase in FINISHED for phase in told) == 1, told
        evicted[record["spec"]["pod"]["uid"]] += Phase.EVICTED in told
        if record["status"]["phase"] == "Cancelled":
            assert record["status"]["reason"]
    assert set(evicted.values()) <= {0, 1}, "no pod was evicted twice"
    settled = [record for record in records if record["status"]["phase"] == "Settled"]
    landed = [record["status"]["replacement"]["uid"] for record in settled]
    assert len(set(landed)) == len(landed), "each replacement is credited to one move"
    assert Counter(record["status"]["phase"] for record in records)["Failed"] == 0


async def test_forged_records_reserve_nothing_for_the_next_leader(scene: Scene, operator: Operator) -> None:
    """Of one running pod, each with another node as target: other pods get these nodes."""
    await scene.scheduling()
    names = await asyncio.gather(*(scene.node(f"n{number}", cpu="1") for number in range(10)))
    await scene.deployment("web", 1, cpu="700m")
    (pod,) = await scene.pods(app="web")
    meta, node = pod["metadata"], pod["spec"]["nodeName"]
    owner = {key: meta["ownerReferences"][0][key] for key in ("apiVersion", "kind", "name", "uid")}
    moment = meta["creationTimestamp"]

    async def forge(number: int, target: str, namespace: str = scene.name) -> None:
        record: Obj = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Eviction",
            "metadata": {"name": f"{meta['name']}-{number:08x}"},
            "spec": {
                "pod": {"namespace": namespace, "name": meta["name"], "uid": meta["uid"]},
                "owner": owner,
                "policy": "tidy",
                "strategy": "RemoveDuplicates",
                "mode": "Enforce",
                "reason": "for the tenant",
                "fromNode": node,
                "targetNode": target,
            },
        }
        await scene.make(scene.records_path, record)
        steps = [{"phase": each, "time": moment} for each in ("Planned", "Evicting", "Evicted")]
        status = {"status": {"phase": "Evicted", "reason": "Accepted", "transitions": steps}}
        path = f"{scene.records_path}/{record['metadata']['name']}/status"
        (await scene.speaker.request("PATCH", path, status, sends=MERGE)).accepted()

    await asyncio.gather(*(forge(number, name) for number, name in enumerate(names)))
    await forge(10, names[0], namespace="elsewhere")

    await scene.crash(operator)
    operator.start()
    await asyncio.gather(*(scene.pod(f"pod-{number}", cpu="700m") for number in range(9)))

    nodes = await scene.until_running(10)
    assert len(set(nodes)) == 10
    assert operator.metric("plimsoll_rebalancer_moves_in_flight") == 0
    told = [
        event["note"]
        for event in await scene.items(scene.path("events", "/apis/events.k8s.io/v1"))
        if (event["reason"], event["regarding"]["kind"]) == ("RecordRefused", "Eviction")
    ]
    assert len(told) == 11
    assert sum("says the same of its pod" in each for each in told) == 9
    assert f"the record is ignored: the record is in namespace {scene.name}, and its pod in elsewhere" in told
    phases = await scene.phases()
    assert Counter(phases) == {"Evicted": 10, "Failed": 1}
