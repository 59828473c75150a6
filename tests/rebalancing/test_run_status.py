"""Results of a run in the policy's status and its events."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from plimsoll.cluster.watch_events import PodAdded
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.runs.status import PAUSE_S
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, web
from rebalancing.test_unready_replacements import a_record
from rebalancing.test_usage import BY_METRICS, METRICS

TAINTS = {"name": "RemovePodsViolatingNodeTaints"}


def told(scene: Scene) -> list[tuple[str, bool, str]]:
    """Events of the policy: reason, whether it is a warning, text."""
    return [
        (note.reason, note.is_warning, note.text)
        for note in scene.recorder.notes
        if note.regarding["kind"] == "SchedulingPolicy"
    ]


@pytest.mark.parametrize(
    ("mode", "reason", "done"),
    [
        ("DryRun", "Predicted", "1 would be moved"),
        ("Approve", "Proposed", "1 waits for approval"),
        ("Enforce", "Rebalanced", "1 moved"),
    ],
)
async def test_a_run_that_plans_moves_is_an_event_of_its_policy(mode: str, reason: str, done: str) -> None:
    """With what became of them; the reference is the policy's."""
    scene = Scene()
    policy = a_policy(mode)

    async with scene.running(policy):
        await scene.run()

    assert told(scene) == [(reason, False, f"1 candidate: {done}")]
    (note,) = [note for note in scene.recorder.notes if note.reason == reason]
    assert note.regarding["apiVersion"] == "plimsoll.dev/v1alpha1"
    assert note.regarding["name"] == POLICY


async def test_an_enforced_move_emits_events_on_pod_owner_and_policy() -> None:
    """The three places where people look."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()

    assert [note.regarding["kind"] for note in scene.recorder.notes] == [
        "Pod",
        "ReplicaSet",
        "SchedulingPolicy",
    ]


async def test_a_run_that_finds_nothing_is_no_event() -> None:
    """Every five minutes the same would bury the rest."""
    scene = Scene()

    async with scene.running(a_policy(strategies=[{"name": "RemoveDuplicates"}])):
        await scene.run()

    assert scene.recorder.notes == []


async def test_a_strategy_that_cannot_judge_degrades_its_policy_until_it_can() -> None:
    """Event, condition and message say the same, without the names of our classes."""
    scene = Scene()
    scene.meter.answer = WriteResult(WriteOutcome.UNKNOWN, "no server")
    sentence = (
        "LowNodeUtilization could not judge the cluster:"
        " there are no measurements of the metrics API: no server"
    )

    async with scene.running(a_policy(strategies=[BY_METRICS], metricsProviders=METRICS)):
        await scene.run()
        troubles = scene.rebalancers.troubles(POLICY)
        scene.rebalancers.adopt(a_policy(strategies=[TAINTS]))
        await scene.run()
        mended = scene.rebalancers.troubles(POLICY)

    assert troubles["StrategyFailed"] == sentence
    assert "NodeLoad" in troubles["TwoYardsticks"]
    assert len(troubles) == 2
    assert told(scene)[0] == ("StrategyFailed", True, sentence)
    assert mended == {}


async def test_a_plan_by_load_without_measurements_degrades_its_policy_until_there_are() -> None:
    """The planner Optimal moves nothing for what nodes use, and says so; requests are no substitute."""
    scene = Scene()
    scene.meter.answer = WriteResult(WriteOutcome.UNKNOWN, "no server")
    spec: Any = {"planner": "Optimal", "optimizer": {"objective": "SmallestSpread"}}

    async with scene.running(a_policy(strategies=[BY_METRICS], metricsProviders=METRICS, **spec)):
        await scene.run()
        troubles = scene.rebalancers.troubles(POLICY)
        scene.rebalancers.adopt(a_policy(strategies=[BY_METRICS], metricsProviders=METRICS))
        await scene.run()
        proven = scene.rebalancers.troubles(POLICY)

    assert "and no node is measured" in troubles["NotMeasured"]
    assert "NotMeasured" not in proven


async def test_the_message_has_what_strategies_say() -> None:
    """Why nothing happened is in the status, not in a log."""
    scene = Scene()
    idle = {
        "name": "LowNodeUtilization",
        "args": {"thresholds": {"cpu": 50}, "targetThresholds": {"cpu": 60}},
    }
    failing = {"name": "RemovePodsViolatingNodeAffinity", "args": {"nodeAffinityType": ["sometimes"]}}

    async with scene.running(a_policy(strategies=[idle, failing])):
        await scene.run()

    assert scene.statuses.statuses[POLICY]["lastRun"]["message"] == (
        "no candidates; RemovePodsViolatingNodeAffinity could not judge the"
        ' cluster: there is no nodeAffinityType "sometimes"; use'
        " requiredDuringSchedulingIgnoredDuringExecution or preferredDuringSchedulingIgnoredDuringExecution;"
        " LowNodeUtilization: all nodes are underutilized, nothing to do here"
    )


async def test_examples_are_of_as_many_owners_as_there_are() -> None:
    """Five pods of one Deployment would say no more than one; a pod without owner is named as such."""
    scene = Scene()
    many = [web(number, "bad") for number in range(3, 9)]
    few = [
        a_pod(f"db-{n}", owner="StatefulSet/db", cpu="100m", node=on) for n, on in enumerate(("bad", "good"))
    ]
    scene.tell(*map(PodAdded, [*many, *few, a_pod("bare", cpu="100m", node="bad")]))

    async with scene.running(a_policy(limits={"perNamespace": 0})):
        await scene.run()

    refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
    examples = {each["reason"]: each["examples"] for each in refused}
    assert examples["FailedBarePods"] == ["default/bare"]
    assert set(examples["NamespaceLimit"]) == {
        "default/db-0 (StatefulSet db)",
        *(f"default/web-{number} (ReplicaSet web)" for number in (1, 3, 4, 5)),
    }


async def test_a_pod_that_two_strategies_want_counts_once() -> None:
    """Sixteen pods that stay are not thirty-two."""
    scene = Scene()
    scene.tell(PodAdded(web(3, "bad")))
    wanted = [TAINTS, {"name": "RemovePodsHavingTooManyRestarts", "args": {"podRestartThreshold": 1}}]
    restarted = a_pod(
        "web-9",
        owner="ReplicaSet/web",
        cpu="100m",
        node="bad",
        status={"phase": "Running", "containerStatuses": [{"name": "c", "restartCount": 5}]},
    )
    scene.tell(PodAdded(restarted))

    async with scene.running(a_policy(strategies=wanted, limits={"perNamespace": 0})):
        await scene.run()

    status = scene.statuses.statuses[POLICY]
    (refused,) = status["counts"]["refused"]
    assert (refused["reason"], refused["count"]) == ("NamespaceLimit", 3)
    assert status["lastRun"]["message"] == "3 candidates: none moved, 3 held back (NamespaceLimit)"


@pytest.mark.parametrize(
    ("verdict", "failures"),
    [(WriteOutcome.FENCED, []), (WriteOutcome.REFUSED, [(f"status of policy {POLICY}", "no")])],
)
async def test_a_status_that_a_former_leader_does_not_send_is_no_failure(
    verdict: WriteOutcome, failures: list[tuple[str, str]]
) -> None:
    """The lease is lost now and then; one that the API server rejects is a failure."""
    scene = Scene()

    async def answered(name: str, status: object) -> WriteResult:
        return WriteResult(verdict, "no")

    scene.statuses.write_status = answered  # type: ignore[method-assign] # replaced for this test
    async with scene.running(a_policy("DryRun")):
        await scene.run()

    assert list(dict.fromkeys(scene.observer.failures)) == failures


async def test_moves_that_end_within_a_second_share_a_write_of_the_status() -> None:
    """The first write is immediate: a run of a thousand moves would write the status a thousand times."""
    scene, written = Scene(), list[int]()
    write = scene.statuses.write_status

    async def noted(name: str, status: Mapping[str, Any]) -> WriteResult:
        written.append(status["totals"]["moved"])
        return await write(name, status)

    scene.statuses.write_status = noted  # type: ignore[method-assign] # looked at by this test
    async with scene.running(a_policy("DryRun")):
        await scene.clock.advance(PAUSE_S)
        written.clear()
        for number in range(5):
            record = structs.replace(a_record(policy=POLICY), name=f"web-{number}")
            scene.keeper._remember(record)
            scene.keeper._touch(record)
            await settled()
        assert written == [1]
        await scene.clock.advance(PAUSE_S)
        assert written == [1, 5]
