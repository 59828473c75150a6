"""Moves: predicted or carried out, recorded, verified, and never past a budget, a limit or a protection."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from cli.commands import say
from e2e.polls import eventually, throughout
from e2e.scene import LABEL, POLICIES
from e2e.speaker import MERGE, STRATEGIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

STORY = ["Planned", "Evicting", "Evicted", "Settled"]
LOW: Obj = {
    "name": "LowNodeUtilization",
    "args": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}},
}
TAINTED = {"spec": {"taints": [{"key": "broken", "effect": "NoSchedule"}]}}
UNLIMITED = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"}


async def crowded(scene: Scene, replicas: int = 2, **spec: Any) -> tuple[str, str]:
    """A Deployment whose pods had but one node when they were placed, and a second node that came later."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", replicas, **spec)
    return old, await scene.node("new")


def story_of(record: Obj) -> list[str]:
    """The phases that a record went through."""
    return [each["phase"] for each in record["status"]["transitions"]]


async def duplicates(scene: Scene) -> Callable[[], Awaitable[bool]]:
    """Two pods of one owner share a node while another is free."""
    await crowded(scene)

    async def mended() -> bool:
        return len(set(await scene.running(app="web"))) == 2

    return mended


async def violated_taint(scene: Scene) -> Callable[[], Awaitable[bool]]:
    """A taint comes to a node whose pods do not tolerate it."""
    old, new = await crowded(scene)
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})

    async def mended() -> bool:
        return await scene.running(app="web") == [new, new]

    return mended


async def violated_node_affinity(scene: Scene) -> Callable[[], Awaitable[bool]]:
    """A node loses the label that its pods require."""
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    old = await scene.node("old", labels={"disk": "ssd"})
    await scene.scheduling()
    await scene.deployment("web", 2, affinity=affinity)
    new = await scene.node("new", labels={"disk": "ssd"})
    await scene.change_node(old, {"metadata": {"labels": {"disk": "hdd"}}})

    async def mended() -> bool:
        return await scene.running(app="web") == [new, new]

    return mended


async def violated_anti_affinity(scene: Scene) -> Callable[[], Awaitable[bool]]:
    """A pod comes to bear a label that its neighbours cannot stand."""
    term = {"labelSelector": {"matchLabels": {"noisy": "yes"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("quiet", 2, affinity=affinity)
    await scene.deployment("loud", 2)
    await scene.node("new")
    for pod in await scene.pods(app="loud"):
        path = scene.path(f"pods/{pod['metadata']['name']}")
        change = {"metadata": {"labels": {"noisy": "yes"}}}
        (await scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()

    async def mended() -> bool:
        quiet, loud = set(await scene.running(app="quiet")), set(await scene.running(noisy="yes"))
        return bool(quiet) and not quiet & loud

    assert set(await scene.running(app="quiet")) == {old}
    return mended


async def better_score(scene: Scene) -> Callable[[], Awaitable[bool]]:
    """A node comes that the pods prefer: one goes, the other stays for the sake of their spreading."""
    wants = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = [{"weight": 100, "preference": wants}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    old = await scene.node("old", labels={"disk": "hdd"})
    await scene.scheduling()
    await scene.deployment("web", 2, affinity=affinity)
    new = await scene.node("new", labels={"disk": "ssd"})

    async def mended() -> bool:
        return sorted(await scene.running(app="web")) == sorted([old, new])

    return mended


async def overutilized(scene: Scene) -> Callable[[], Awaitable[bool]]:
    """A full node and an empty one."""
    await crowded(scene, 7, cpu="500m")

    async def mended() -> bool:
        nodes = Counter(await scene.running(app="web"))
        return sum(nodes.values()) == 7 and max(nodes.values()) <= 4

    return mended


@pytest.mark.parametrize(
    ("strategy", "trouble"),
    [
        pytest.param("RemoveDuplicates", duplicates, id="RemoveDuplicates"),
        pytest.param("RemovePodsViolatingNodeTaints", violated_taint, id="NodeTaints"),
        pytest.param(
            {
                "name": "RemovePodsViolatingNodeAffinity",
                "args": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
            },
            violated_node_affinity,
            id="NodeAffinity",
        ),
        pytest.param(
            "RemovePodsViolatingInterPodAntiAffinity", violated_anti_affinity, id="InterPodAntiAffinity"
        ),
        pytest.param(LOW, overutilized, id="LowNodeUtilization"),
        pytest.param({"name": "FollowScore", "args": {"marginPercent": 10}}, better_score, id="FollowScore"),
    ],
)
async def test_each_strategy_mends_its_trouble(
    strategy: str | Obj, trouble: Callable[[Scene], Awaitable[Callable[[], Awaitable[bool]]]], scene: Scene
) -> None:
    """Pods move to where the scheduler wants them, and every record tells its story to the end."""
    mended = await trouble(scene)
    assert not await mended()
    name = await scene.policy(scene.rebalancing(strategy))

    await eventually(mended)
    records = await scene.until_finished(1)
    status = await scene.runs(name, 1)

    landed = Counter(record["status"].get("phase") for record in records)
    assert landed == {"Settled": len(records)}, records
    for record in records:
        spec, outcome = record["spec"], record["status"]
        assert story_of(record) == STORY
        assert spec["mode"] == "Enforce"
        assert spec["strategy"] == (strategy if isinstance(strategy, str) else strategy["name"])
        assert spec["targetNode"] != spec["fromNode"]
        assert outcome["replacement"]["node"] != spec["fromNode"]
        assert outcome["replacement"]["uid"] != spec["pod"]["uid"]
        assert spec["reason"]
    assert len({record["spec"]["pod"]["uid"] for record in records}) == len(records)
    assert status["counts"]["planned"] == status["counts"]["evicted"] == 0, "it converged"
    gone = records[0]["spec"]["pod"]["name"]
    event, *_ = await eventually(lambda: scene.events(gone, "Evicted"))
    assert records[0]["spec"]["fromNode"] in event["note"]


async def test_a_dry_run_predicts_and_touches_nothing(scene: Scene) -> None:
    """Records with targets, no eviction, and the same prediction is not written again in each run."""
    old, new = await crowded(scene, 3)
    before = {pod["metadata"]["uid"] for pod in await scene.pods()}
    name = await scene.policy(scene.rebalancing("RemoveDuplicates", mode="DryRun", limits=UNLIMITED))

    first = await scene.until_finished(1)
    status = await scene.runs(name, 3)
    records = await scene.records()

    assert {record["metadata"]["name"] for record in records} == {
        record["metadata"]["name"] for record in first
    }
    for record in records:
        assert record["status"]["phase"] == "Predicted"
        assert (record["spec"]["fromNode"], record["spec"]["targetNode"]) == (old, new)
        assert record["spec"]["mode"] == "DryRun"
    assert status["lastRun"]["mode"] == "DryRun"
    assert status["counts"]["planned"] == len(records)
    assert status["counts"]["evicted"] == 0
    assert "nextRunTime" in status
    assert {pod["metadata"]["uid"] for pod in await scene.pods()} == before
    assert await scene.running() == [old, old, old]


async def test_a_prediction_does_not_depend_on_how_ties_fall(scene: Scene) -> None:
    """With three nodes that are as good, each pod keeps its one record over many runs."""
    await crowded(scene, 2)
    for suffix in ("other", "third"):
        await scene.node(suffix)
    name = await scene.policy(scene.rebalancing("RemoveDuplicates", mode="DryRun"))

    await scene.runs(name, 4)

    pods = [record["spec"]["pod"]["uid"] for record in await scene.records()]
    assert len(pods) == len(set(pods)) == 1


async def test_dry_run_becomes_real_when_the_mode_says_so(scene: Scene) -> None:
    """The first thing that a careful user does, and the second; predictions go with their mode."""
    await crowded(scene)
    name = await scene.policy(scene.rebalancing("RemoveDuplicates", mode="DryRun"))
    await scene.until_finished(1)

    await scene.change_policy(name, {"rebalancing": {"mode": "Enforce"}})

    await eventually(lambda: scene.running(app="web"), lambda nodes: len(set(nodes)) == 2)
    await eventually(scene.phases, lambda phases: phases == ["Settled"])


async def test_a_budget_that_allows_nothing_is_named_and_kept(scene: Scene) -> None:
    """No pod is evicted, and the policy's status says which budget it was."""
    await crowded(scene)
    await scene.budget("strict", "web", minAvailable=2)
    before = {pod["metadata"]["uid"] for pod in await scene.pods()}
    name = await scene.policy(scene.rebalancing("RemoveDuplicates"))

    status = await scene.runs(name, 2)

    refused = {each["reason"]: each for each in status["counts"]["refused"]}
    assert any(f"{scene.name}/strict" in each["message"] for each in refused.values()), refused
    assert {pod["metadata"]["uid"] for pod in await scene.pods()} == before
    assert not any("Evicted" in story_of(record) for record in await scene.records())


async def test_a_budget_is_never_violated_on_the_way(scene: Scene) -> None:
    """Six pods move although only one at a time may be missing."""
    old, _ = await crowded(scene, 6)
    await scene.budget("gentle", "web", maxUnavailable=1)
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})
    await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", limits=UNLIMITED))
    path = scene.path("poddisruptionbudgets/gentle", "/apis/policy/v1")

    async def moved() -> bool:
        status = (await scene.speaker.request("GET", path)).accepted()["status"]
        assert status["currentHealthy"] >= status["desiredHealthy"] == 5, status
        nodes = await scene.running(app="web")
        return len(nodes) == 6 and old not in nodes

    await eventually(moved)

    records = await scene.until_finished(6)
    assert sum(record["status"]["phase"] == "Settled" for record in records) == 6


@pytest.mark.parametrize("total", [1, 2])
async def test_with_descheduler_s_decisions_a_refused_eviction_gives_its_place_to_the_next(
    scene: Scene, total: int
) -> None:
    """The budget of the first two pods says no; the next candidates go in the same run, within the limit."""
    old = await scene.node("old")
    await scene.scheduling()
    for name in ("api", "web"):
        await scene.deployment(name, 2)
    await scene.node("new")
    await scene.budget("strict", "api", minAvailable=2)
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})
    guarded = {pod["metadata"]["uid"] for pod in await scene.pods(app="api")}
    spec = scene.rebalancing(
        "RemovePodsViolatingNodeTaints", planner="Upstream", limits={**UNLIMITED, "total": total}
    )
    spec["rebalancing"]["schedule"] = {"intervalSeconds": 3600}
    name = await scene.policy(spec)

    counts = (await scene.runs(name, 1))["counts"]
    records = await scene.until_finished(1 + total)

    assert (counts["planned"], counts["evicted"]) == (total, total)
    refused = {each["reason"]: each for each in counts["refused"]}
    assert "strict" in refused["PodDisruptionBudget"]["message"]
    assert refused["PodDisruptionBudget"]["count"] == 2
    owners = [record["spec"]["owner"]["name"].partition("-")[0] for record in records]
    stories = Counter((owner, *story_of(record)) for owner, record in zip(owners, records, strict=True))
    assert stories == {("api", "Planned", "Evicting", "Blocked"): 1, ("web", *STORY): total}
    assert {pod["metadata"]["uid"] for pod in await scene.pods(app="api")} == guarded


async def test_limits_hold_in_each_run(scene: Scene) -> None:
    """One pod of a workload in a run, although all are in the wrong place; the rest gets a reason."""
    old, new = await crowded(scene, 4)
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})
    limits = {**UNLIMITED, "perWorkload": 1}
    spec = scene.rebalancing("RemovePodsViolatingNodeTaints", limits=limits)
    spec["rebalancing"]["schedule"] = {"intervalSeconds": 3600}
    name = await scene.policy(spec)

    status = await scene.runs(name, 1)
    await scene.until_finished(1)

    assert status["counts"]["considered"] == 4
    assert status["counts"]["planned"] == 1
    (refused,) = status["counts"]["refused"]
    assert refused["count"] == 3
    assert refused["message"].startswith(f"at most 1 eviction of ReplicaSet {scene.name}/web-")
    assert Counter(await scene.until_running(4, app="web")) == {old: 3, new: 1}


async def test_the_next_move_of_a_workload_waits_for_ready(scene: Scene) -> None:
    """A replacement that runs is not enough: what it waits for has to happen first."""
    gate = "example.com/warm"
    old, new = await crowded(scene, 2, readinessGates=[{"conditionType": gate}])

    async def warm(node: str) -> None:
        for pod in await scene.pods(app="web"):
            if pod["spec"].get("nodeName") == node:
                path = scene.path(f"pods/{pod['metadata']['name']}/status")
                change = {"status": {"conditions": [{"type": gate, "status": "True"}]}}
                (await scene.speaker.request("PATCH", path, change, sends=STRATEGIC)).accepted()

    async def running_and_ready() -> tuple[int, int]:
        pods = [pod for pod in await scene.pods(app="web") if pod["spec"].get("nodeName") == new]
        conditions = [each for pod in pods for each in pod["status"].get("conditions", ())]
        return (
            sum(pod["status"].get("phase") == "Running" for pod in pods),
            sum(each["type"] == "Ready" and each["status"] == "True" for each in conditions),
        )

    await warm(old)
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})
    evictor = {"minReplicas": 1}
    name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", evictor=evictor))
    await eventually(running_and_ready, lambda counts: counts == (1, 0))

    status = await scene.runs(name, 2)
    assert await scene.phases() == ["Evicted"]
    assert [each["reason"] for each in status["counts"]["refused"]] == ["WorkloadLimit"]

    await warm(new)
    await eventually(running_and_ready, lambda counts: counts == (2, 1))
    await eventually(scene.phases, lambda phases: phases == ["Evicted", "Settled"])
    await warm(new)
    await eventually(scene.phases, lambda phases: phases == ["Settled", "Settled"])


async def test_a_pod_without_a_better_place_stays(scene: Scene) -> None:
    """The promise: where the scheduler has no other node, nothing is evicted."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 2)
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})
    await scene.node("full", cpu="50m")
    name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints"))

    status = await scene.runs(name, 2)

    assert status["counts"]["considered"] == 2
    assert status["counts"]["planned"] == 0
    assert sum(each["count"] for each in status["counts"]["refused"]) == 2
    assert await scene.records() == []


async def test_suspension_stops_moves(scene: Scene) -> None:
    """And its end lets them go on."""
    await crowded(scene)
    name = await scene.policy({**scene.rebalancing("RemoveDuplicates"), "suspend": True})
    await scene.until_condition(name, "Ready", "False", "Suspended")
    await throughout(scene.records, lambda records: records == [], 1.5)

    await scene.change_policy(name, {"suspend": False})

    await eventually(lambda: scene.running(app="web"), lambda nodes: len(set(nodes)) == 2)


async def test_pods_of_other_schedulers_move_only_when_the_policy_names_these(scene: Scene) -> None:
    """The status says which field would allow it; then they go, and their targets are forecasts."""
    old = await scene.node("old")
    theirs: Obj = {"nodeName": old, "schedulerName": f"{scene.scheduler}-theirs"}
    await scene.deployment("web", 2, **theirs)
    new = await scene.node("new")
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    spec = scene.rebalancing("RemovePodsViolatingNodeTaints")
    name = await scene.policy(spec)

    status = await scene.runs(name, 2)
    (refused,) = status["counts"]["refused"]
    assert (refused["reason"], refused["count"]) == ("OtherScheduler", 2)
    assert "spec.scope.otherSchedulers does not name it" in refused["message"]
    assert await scene.records() == []

    await scene.change_policy(name, {"scope": {"otherSchedulers": [theirs["schedulerName"]]}})

    records = await eventually(scene.records)
    assert (records[0]["spec"]["forecast"], records[0]["spec"]["targetNode"]) == (True, new)
    assert records[0]["spec"]["fromNode"] == old


@pytest.mark.parametrize("planner", ["Proven", "Upstream"])
async def test_a_pod_that_says_never_stays(scene: Scene, planner: str) -> None:
    """Its siblings go; the status says why it stays, and it goes when the annotation does."""
    old, new = await crowded(scene, 3)
    pods = await scene.pods(app="web")
    path = scene.path(f"pods/{pods[0]['metadata']['name']}")

    async def annotate(value: str | None) -> None:
        change = {"metadata": {"annotations": {"plimsoll.dev/evict": value}}}
        (await scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()

    await annotate("false")
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})
    spec = scene.rebalancing("RemovePodsViolatingNodeTaints", planner=planner, limits=UNLIMITED)
    name = await scene.policy(spec)

    await eventually(lambda: scene.running(app="web"), lambda nodes: nodes == sorted([old, new, new]))
    status = await scene.runs(name, 2)
    (refused,) = status["counts"]["refused"]
    assert (refused["reason"], refused["count"]) == ("NeverEvict", 1)
    assert refused["message"] == "the pod's annotation plimsoll.dev/evict: false forbids its eviction"
    assert await scene.running(app="web") == sorted([old, new, new])

    await annotate(None)
    await eventually(lambda: scene.running(app="web"), lambda nodes: nodes == [new, new, new])


async def test_one_annotation_stops_all_policies(scene: Scene, operator: Operator) -> None:
    """On the operator's own namespace; the condition says so, and its removal lets them go on."""
    await crowded(scene)
    own = "plimsoll" if "plimsoll" in operator.options else "kube-system"
    path = f"/api/v1/namespaces/{own}"

    async def press(value: str | None) -> None:
        change = {"metadata": {"annotations": {"plimsoll.dev/stop": value}}}
        (await scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()

    await press("true")
    try:
        name = await scene.policy(scene.rebalancing("RemoveDuplicates"))
        await scene.until_condition(name, "Paused", "True", "Stopped")
        await scene.runs(name, 2)
        assert await scene.records() == []
    finally:
        await press(None)

    await eventually(lambda: scene.running(app="web"), lambda nodes: len(set(nodes)) == 2)
    await scene.until_condition(name, "Degraded", "False")


async def test_a_deleted_policy_runs_no_more(scene: Scene) -> None:
    """It predicts nothing more, and what it predicted is gone."""
    await crowded(scene, 3)
    name = await scene.policy(scene.rebalancing("RemoveDuplicates", mode="DryRun"))
    await scene.until_finished(1)
    await scene.speaker.request("DELETE", f"{POLICIES}/{name}")
    await asyncio.sleep(0.2)
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.node("another", taints=[taint])

    await eventually(scene.records, lambda records: not records)
    await throughout(scene.records, lambda records: not records, 1.5)


async def test_records_are_kept_to_their_number(scene: Scene, operator: Operator) -> None:
    """Past the cap no further prediction is written; the metric says how many were not."""
    for suffix in ("b", "c", "d", "e"):
        await scene.node(suffix, taints=[{"key": "later", "effect": "NoSchedule"}])
    old, _ = await crowded(scene, 5)
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    name = await scene.policy(
        scene.rebalancing(
            "RemovePodsViolatingNodeTaints", mode="DryRun", limits=UNLIMITED, records={"maxCount": 2}
        )
    )

    status = await scene.runs(name, 2)

    async def dropped() -> float:
        return operator.metric("plimsoll_rebalancer_dropped_records_total", policy=name, why="breaker")

    assert status["counts"]["planned"] == 4  # the fifth is the last ready one of its owner
    assert len(await scene.records()) == 2
    assert await eventually(dropped) >= 2


async def test_the_oldest_finished_records_make_room(scene: Scene) -> None:
    """A history of real moves is cut to its latest."""
    old, _ = await crowded(scene, 4)
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    name = await scene.policy(
        scene.rebalancing("RemovePodsViolatingNodeTaints", limits={"perWorkload": 1}, records={"maxCount": 1})
    )

    await eventually(lambda: scene.running(app="web"), lambda nodes: len(nodes) == 4 and old not in nodes)
    await scene.until_finished(1)
    await scene.runs(name, 2)

    assert await scene.phases() == ["Settled"]


async def test_a_prediction_that_somebody_deleted_is_made_again(scene: Scene) -> None:
    """`kubectl delete` is no veto; what still holds is predicted again."""
    await crowded(scene)
    name = await scene.policy(scene.rebalancing("RemoveDuplicates", mode="DryRun"))
    (record,) = await scene.until_finished(1)

    await scene.speaker.request("DELETE", f"{scene.records_path}/{record['metadata']['name']}")
    await scene.runs(name, 2)

    (again,) = await scene.until_finished(1)
    assert again["metadata"]["uid"] != record["metadata"]["uid"]
    assert LABEL not in again["metadata"]["labels"]


async def test_a_move_waits_for_a_persons_yes(scene: Scene) -> None:
    """Proposed as a record; the annotation carries it out, and nothing goes before."""
    old, new = await crowded(scene, 2)
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", mode="Approve"))
    await scene.runs(name, 3)
    assert await scene.running(app="web") == [old, old]
    assert await scene.phases() == ["Planned"]

    (record,) = await scene.records()
    await scene.answer(record)

    await eventually(lambda: scene.running(app="web"), lambda nodes: sorted(nodes) == sorted([old, new]))

    async def story() -> list[str]:
        moved = record["metadata"]["name"]
        return next(story_of(each) for each in await scene.records() if each["metadata"]["name"] == moved)

    await eventually(story, lambda phases: phases[:3] == ["Planned", "Evicting", "Evicted"])


async def test_a_run_can_be_asked_for_and_triggered(scene: Scene) -> None:
    """Its schedule is years away: an annotation runs it immediately, a new node within seconds."""
    await crowded(scene, 1)
    leap_day = {"cron": "0 0 29 2 *", "triggers": ["NodeAdded"]}
    name = await scene.policy(scene.rebalancing("RemoveDuplicates", mode="DryRun", schedule=leap_day))

    change = {"metadata": {"annotations": {"plimsoll.dev/run": "now"}}}
    policy = f"/apis/plimsoll.dev/v1alpha1/schedulingpolicies/{name}"
    asked = asyncio.create_task(scene.runs(name, 1))
    (await scene.speaker.request("PATCH", policy, change, sends=MERGE)).accepted()
    await asked

    triggered = asyncio.create_task(scene.runs(name, 1))
    await asyncio.sleep(0)
    await scene.node("third")
    await triggered


@pytest.mark.parametrize("trigger", ["NodeLabelsChanged", "NodeTaintsChanged"])
async def test_an_update_of_labels_and_taints_fires_either_trigger(scene: Scene, trigger: str) -> None:
    """Whichever of the two a policy waits for, its pods leave soon, although its turn is years away."""
    old, new = await crowded(scene)
    leap_day = {"cron": "0 0 29 2 *", "triggers": [trigger]}
    spec = scene.rebalancing("RemovePodsViolatingNodeTaints", schedule=leap_day, limits=UNLIMITED)
    await scene.until_condition(await scene.policy(spec), "Ready", "True")

    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    both: Obj = {"metadata": {"labels": {"pool": "batch"}}, "spec": {"taints": [taint]}}
    await scene.change_node(old, both)

    await eventually(lambda: scene.running(app="web"), lambda nodes: new in nodes)


async def test_system_critical_pods_move_once_their_protection_is_disabled(scene: Scene) -> None:
    """The status names the protection; without it they go like others."""
    old, new = await crowded(scene, priorityClassName="system-cluster-critical")
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})
    name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", limits=UNLIMITED))
    (refused,) = (await scene.runs(name, 2))["counts"]["refused"]
    assert (refused["reason"], refused["count"]) == ("SystemCriticalPods", 2)

    protections = {"podProtections": {"defaultDisabled": ["SystemCriticalPods"]}}
    await scene.change_policy(name, {"rebalancing": {"evictor": protections}})

    await eventually(lambda: scene.running(app="web"), lambda nodes: nodes == [new, new])


async def test_replacements_go_where_an_optimal_plan_sends_them(scene: Scene) -> None:
    """The scheduler would spread three pods over three nodes; the plan empties two of them."""
    for name in ("a", "b", "c"):
        await scene.node(name)
    await scene.scheduling()
    for name in ("one", "two", "three"):
        await scene.deployment(name, 1, labels={"app": name, "set": "web"})
    assert len(set(await scene.running(set="web"))) == 3

    name = await scene.policy(
        scene.rebalancing(
            planner="Optimal",
            optimizer={"objective": "FewestNodes", "timeLimitSeconds": 2},
            evictor={"minReplicas": 1},
        )
    )

    nodes = await eventually(
        lambda: scene.running(set="web"), lambda found: len(found) == 3 and len(set(found)) == 1
    )
    records = await scene.until_finished(2)
    assert [record["spec"]["directed"] for record in records] == [True, True]
    assert {record["spec"]["targetNode"] for record in records} == set(nodes)
    assert [story_of(record) for record in records] == [STORY, STORY]
    status = (await scene.runs(name, 2))["lastRun"]["optimisation"]
    assert (status["moves"], status["gapPercent"]) == (0, 0)


async def test_pods_of_another_scheduler_are_expected_where_its_profile_puts_them(
    scene: Scene, defined: Path
) -> None:
    """Each time: without a description it is the free node, with MostAllocated the packed one."""
    old, packed, free = [await scene.node(suffix) for suffix in ("old", "packed", "free")]
    await scene.placed_by_hand("full", 2, packed, cpu="1")
    await scene.placed_by_hand("web", 1, old)
    await scene.change_node(old, TAINTED)
    moving = scene.rebalancing(
        "RemovePodsViolatingNodeTaints", mode="DryRun", evictor={"minReplicas": 0}, limits=UNLIMITED
    )
    moving["scope"]["otherSchedulers"] = [scene.scheduler]
    await scene.policy(moving)

    async def expected() -> list[str]:
        return [each["spec"]["targetNode"] for each in await scene.records()]

    async def explained() -> tuple[str, str]:
        (pod,) = await scene.pods(app="web")
        words = ("explain", "pod", pod["metadata"]["name"], "-n", scene.name, "-o", "json")
        said = json.loads((await asyncio.to_thread(say, *words, "--kubeconfig", str(defined))).out)
        (policy,) = [each for each in said["placed"]["policies"] if each["targetNode"]]
        return policy["targetNode"], "; ".join(said["unknown"]).partition("asked instead was ")[2]

    await eventually(expected, lambda nodes: nodes == [free])
    assert await explained() == (free, "kube-scheduler's default profile, which is assumed")
    packs = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    spec = {"suspend": True, "scheduling": {"schedulerName": scene.scheduler, "pluginConfig": [packs]}}
    other = await scene.policy(spec, "other")
    await eventually(expected, lambda nodes: nodes == [packed])
    assert await explained() == (packed, f"the profile that suspended policy {other} describes")
    await scene.change_policy(other, {"scheduling": {"pluginConfig": []}})
    await eventually(expected, lambda nodes: nodes == [free])
