"""Plan, record, evict, verify: the life of a move, with every kind of failure."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.cluster.watch_events import NodeUpdated, PodAdded, PodUpdated
from plimsoll.framework import ConfigurationError
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
from plimsoll.rebalancing.runs import plan_runner
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock, settled
from rebalancing.scene import POLICY, Scene, a_policy, web

OLD = web(1, "bad")


def replaced(scene: Scene, node: str, number: int = 3, phase: str = "Running", *, ready: bool = True) -> None:
    """The owner makes a replacement, and somebody places it."""
    created = "2026-06-01T00:00:00Z"
    waiting = web(number, created=created)
    scene.tell(PodAdded(waiting))
    scene.tell(PodUpdated(waiting, web(number, node, phase, created, ready=ready)))


async def test_a_move_is_recorded_before_it_is_made_and_seen_to_its_end() -> None:
    """Planned, Evicting, Evicted, and Settled once the replacement runs elsewhere."""
    scene = Scene()
    asked_in = []
    scene.evictor.when_done = lambda _: asked_in.append(scene.record["status"]["phase"])

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(OLD)
        replaced(scene, "good")
        await settled()

    assert asked_in == ["Evicting"]
    assert scene.evictor.evicted == ["web-1"]
    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]
    assert scene.record["spec"]["fromNode"] == "bad"
    assert scene.record["spec"]["targetNode"] == "good"
    assert scene.record["status"]["replacement"] == {
        "name": "web-3", "uid": "uid-default-web-3", "node": "good",
    }  # fmt: skip
    assert scene.statuses.statuses[POLICY]["counts"]["verified"] == 1


async def test_a_dry_run_evicts_nothing_and_predicts_once() -> None:
    """The same prediction in every run is one record."""
    scene = Scene()

    async with scene.running(a_policy("DryRun")):
        await scene.run()
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Predicted"]]


async def test_a_prediction_that_a_run_no_longer_makes_is_dropped() -> None:
    """The list of predictions is that of the latest run; one in which a strategy fails takes none back."""
    scene = Scene()
    failing = {"name": "RemovePodsViolatingNodeAffinity", "args": {"nodeAffinityType": ["sometimes"]}}

    async with scene.running(a_policy("DryRun")):
        await scene.run()
        scene.tell(NodeUpdated(a_node("bad", taints=["broken=yes:NoSchedule"]), a_node("bad")))
        scene.rebalancers.adopt(a_policy("DryRun", strategies=[failing]))
        await scene.run()
        kept = len(scene.records.documents)
        scene.rebalancers.adopt(a_policy("DryRun"))
        await scene.run()

    assert kept == 1
    assert scene.records.documents == {}


async def test_the_target_is_held_until_the_replacement_is_there() -> None:
    """Between eviction and replacement no pod takes the place, whatever its priority."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        held = [(pod.name, pod.priority) for pod in scene.nominator.by_node["good"].values()]
        scene.gone(OLD)
        replaced(scene, "good")
        await settled()
        left = dict(scene.nominator.by_node)

    assert held == [("web-1", 2**31 - 1)]
    assert left == {}


async def test_a_replacement_that_comes_back_is_reported() -> None:
    """Whichever scheduler placed it, the move was unsuccessful, and the record says so."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(OLD)
        replaced(scene, "bad")
        await settled()

    assert scene.phases == [["Planned", "Evicting", "Evicted", "Returned"]]


async def test_a_replacement_that_never_runs_fails_the_move() -> None:
    """After five minutes the wait is over."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(OLD)
        await scene.clock.advance(320)

    assert scene.phases[0][-1] == "Failed"
    assert scene.record["status"]["reason"] == "NoReplacement"


async def test_a_budget_that_says_no_is_named() -> None:
    """Blocked, with the budget; nothing was evicted, and the place is held no longer."""
    scene = Scene()
    scene.evictor.answers = [WriteResult(WriteOutcome.BLOCKED, "it would violate the budget", "default/web")]

    async with scene.running(a_policy()):
        await scene.run()

    assert scene.phases == [["Planned", "Evicting", "Blocked"]]
    assert scene.record["status"]["blockedBy"] == "web"
    assert scene.nominator.by_node == {}


async def test_an_eviction_without_an_answer_is_asked_for_again() -> None:
    """A time-out tells nothing; the uid makes asking again safe."""
    scene = Scene()
    scene.evictor.answers = [
        WriteResult(WriteOutcome.UNKNOWN, "no answer"),
        WriteResult(WriteOutcome.BUSY, "later"),
    ]

    async with scene.running(a_policy()):
        run = asyncio.create_task(scene.run())
        await scene.clock.advance(10)
        await run

    assert scene.evictor.evicted == ["web-1"]
    assert scene.phases == [["Planned", "Evicting", "Evicted"]]


async def test_an_answer_that_was_lost_is_seen_in_the_cluster() -> None:
    """The pod is on its way out although no response said so: the move goes on, nothing is sent twice."""
    scene = Scene()
    scene.evictor.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")]

    async with scene.running(a_policy()):
        run = asyncio.create_task(scene.run())
        await settled()
        scene.leaving(OLD)
        await scene.clock.advance(1)
        await run

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Evicting", "Evicted"]]


async def test_a_pod_that_is_gone_after_a_lost_answer_was_evicted_by_us() -> None:
    """The watch lags behind: the move goes on, counts in the limits, and is verified."""
    scene = Scene()
    scene.evictor.answers = [
        WriteResult(WriteOutcome.UNKNOWN, "no answer"),
        WriteResult(WriteOutcome.BUSY, "later"),
        WriteResult(WriteOutcome.GONE, 'pods "web-1" not found'),
    ]

    async with scene.running(a_policy()):
        run = asyncio.create_task(scene.run())
        await scene.clock.advance(10)
        await run
        assert scene.phases == [["Planned", "Evicting", "Evicted"]]
        scene.gone(OLD)
        replaced(scene, "good")
        await settled()

    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]
    counts = scene.statuses.statuses[POLICY]["counts"]
    assert (counts["evicted"], counts["verified"]) == (1, 1)


async def test_the_last_of_all_lost_answers_is_seen_in_the_cluster_too() -> None:
    """After as many requests as are sent, the pod is on its way out."""
    scene = Scene()
    scene.evictor.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")] * 4
    evict = scene.evictor.evict

    async def last(pod: Pod) -> WriteResult:
        if len(scene.evictor.answers) == 1:
            scene.leaving(OLD)
        return await evict(pod)

    scene.evictor.evict = last  # type: ignore[method-assign] # replaced for this test

    async with scene.running(a_policy()):
        run = asyncio.create_task(scene.run())
        await scene.clock.advance(20)
        await run

    assert scene.phases == [["Planned", "Evicting", "Evicted"]]


async def test_a_pod_that_is_seen_to_leave_after_all_tries_was_evicted() -> None:
    """The watch is behind: a record that says Failed would not be true, and the move would not count."""
    scene = Scene()
    scene.evictor.answers = [WriteResult(WriteOutcome.UNKNOWN, "no answer")] * 4

    async with scene.running(a_policy()):
        run = asyncio.create_task(scene.run())
        await scene.clock.advance(20)
        assert scene.phases == [["Planned", "Evicting"]]
        scene.leaving(OLD)
        await settled()
        await run
        scene.gone(OLD)
        replaced(scene, "good")
        await settled()

    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]
    assert scene.statuses.statuses[POLICY]["counts"]["evicted"] == 1


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([WriteResult(WriteOutcome.GONE, "not found")], id="at-once"),
        pytest.param(
            [WriteResult(WriteOutcome.BUSY, "later"), WriteResult(WriteOutcome.GONE, "not found")],
            id="busy-first",
        ),
        pytest.param([WriteResult(WriteOutcome.BUSY, "later")], id="seen-by-the-watch"),
    ],
)
async def test_a_pod_that_left_by_itself_was_not_evicted(answers: list[WriteResult]) -> None:
    """No answer was lost: nothing of ours was taken."""
    scene = Scene()
    scene.evictor.answers = list(answers)

    async with scene.running(a_policy()):
        run = asyncio.create_task(scene.run())
        await settled()
        if len(answers) == 1 and answers[0].verdict is WriteOutcome.BUSY:
            scene.gone(OLD)
        await scene.clock.advance(1)
        await run

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Evicting", "Cancelled"]]
    assert scene.record["status"]["reason"] == "Gone"


async def test_what_cannot_be_recorded_is_not_done() -> None:
    """No record, no eviction."""
    scene = Scene()
    scene.records.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")

    async with scene.running():
        pass
    scene = Scene()
    async with scene.running(a_policy()):
        scene.records.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")
        await scene.run()

    assert scene.evictor.evicted == []


async def test_an_eviction_waits_for_its_record() -> None:
    """The record is there, but the server stops taking writes: nothing is sent, and it is reported later."""
    scene = Scene()

    async with scene.running(a_policy()):
        create = scene.records.create

        async def create_and_fall_silent(document: dict[str, Any]) -> WriteResult:
            answer = await create(document)
            scene.records.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")
            return answer

        scene.records.create = create_and_fall_silent  # type: ignore[assignment, method-assign] # replaced for this test
        run = asyncio.create_task(scene.run())
        await scene.clock.advance(60)
        await run
        scene.records.answer = WriteResult(WriteOutcome.DONE)
        await scene.clock.advance(10)

    assert scene.evictor.evicted == []
    assert scene.record["status"]["phase"] == "Cancelled"
    assert scene.record["status"]["reason"] == "NotRecorded"


async def test_a_plan_gone_stale_is_dropped() -> None:
    """Somebody removed the taint between the plan and the eviction."""
    scene = Scene()

    async with scene.running(a_policy()):
        create = scene.records.create

        async def create_and_change(document: dict[str, Any]) -> WriteResult:
            scene.gone(OLD)
            return await create(document)

        scene.records.create = create_and_change  # type: ignore[assignment, method-assign] # replaced for this test
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Cancelled"]]
    assert scene.record["status"]["reason"] == "Gone"


# -- what is learnt --------------------------------------------------------------------------------------


async def test_an_owner_whose_replacement_came_back_is_held_back() -> None:
    """The next run moves nothing of it and says why; ten minutes later it is tried again."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(OLD)
        replaced(scene, "bad")
        await settled()
        await scene.run()
        told = scene.statuses.statuses[POLICY]["counts"]["refused"]
        await scene.clock.advance(600)
        await scene.run()

    assert scene.evictor.evicted == ["web-1", "web-3"]
    assert [each["reason"] for each in told] == ["HeldBack"]
    assert "1 unsuccessful move of ReplicaSet default/web in a row" in told[0]["message"]


async def test_what_was_learnt_outlives_the_process() -> None:
    """The records are the memory: another process holds the same owner back."""
    moment = datetime.fromtimestamp(FakeClock().now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    scene = Scene(
        a_record("Returned", transitions=[{"phase": "Returned", "time": moment}]),
    )

    async with scene.running(a_policy()):
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.statuses.statuses[POLICY]["counts"]["refused"][0]["reason"] == "HeldBack"


@pytest.mark.parametrize(
    ("planner", "node", "refused"),
    [
        pytest.param("Optimal", "other", ["HeldBack"], id="astray"),
        pytest.param("Optimal", "good", [], id="where-it-was-sent"),
        pytest.param("Proven", "other", [], id="where-its-scheduler-prefers-it"),
    ],
)
async def test_what_optimal_moved_and_another_replica_placed_elsewhere_is_held_back(
    planner: str, node: str, refused: list[str]
) -> None:
    """Its plan would be made again in each run, and the pod evicted without end."""
    moment = datetime.fromtimestamp(FakeClock().now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = a_record(
        "Settled",
        transitions=[{"phase": "Settled", "time": moment}],
        replacement={"name": "web-7", "uid": "uid-web-7", "node": node},
    )
    record["spec"]["planner"] = planner
    scene = Scene(record)

    async with scene.running(a_policy()):
        await scene.run()

    told = scene.statuses.statuses[POLICY]["counts"]["refused"]
    assert [each["reason"] for each in told] == refused


async def test_a_budget_that_said_no_is_not_hammered() -> None:
    """Asked again after half a minute, not in the next run."""
    scene = Scene()
    scene.evictor.answers = [WriteResult(WriteOutcome.BLOCKED, "it would violate the budget", "default/web")]
    scene.cache.cluster.objects.budgets["default/web"] = convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {}},
            "status": {"disruptionsAllowed": 1},
        },
    )

    async with scene.running(a_policy()):
        await scene.run()
        await scene.run()
        told = scene.statuses.statuses[POLICY]["counts"]["refused"]
        assert scene.evictor.evicted == []
        await scene.clock.advance(31)
        await scene.run()

    assert [each["reason"] for each in told] == ["BudgetBackoff"]
    assert scene.evictor.evicted == ["web-1"]


def five_fruitless_moves(scene: Scene) -> None:
    """Records of moves whose pods came back, each of another owner."""
    for n in range(5):
        record = a_record("Returned")
        record["metadata"]["name"] = f"web-1-{n}"
        record["spec"]["owner"] = {**record["spec"]["owner"], "uid": f"uid-{n}"}
        moment = datetime.fromtimestamp(scene.clock.now() - n, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        record["status"]["transitions"] = [{"phase": "Returned", "time": moment}]
        scene.on_record(record)


async def test_proposals_keep_while_their_policy_rests() -> None:
    """A run that may plan nothing calls nothing off."""
    scene = Scene()

    async with scene.running(a_policy("Approve")):
        await scene.run()
        five_fruitless_moves(scene)
        await scene.run()

    assert scene.phases == [["Planned"]]


async def test_a_policy_whose_moves_keep_coming_back_rests_and_says_so() -> None:
    """The condition names what happened; no eviction is sent."""
    scene = Scene()
    five_fruitless_moves(scene)
    async with scene.running(a_policy()):
        await scene.run()
        await scene.run()

    assert scene.evictor.evicted == []
    assert [list(each) for each in scene.troubled] == [["Resting"]]
    assert "the last 5 moves were unsuccessful" in scene.troubled[0]["Resting"]
    refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
    assert [each["reason"] for each in refused] == ["Resting"]


# -- the planner ---------------------------------------------------------------------------------------------


async def test_descheduler_s_decisions_are_carried_out_where_the_policy_asks_for_them() -> None:
    """The move is not proven and the target not held; the outcome is reported all the same."""
    scene = Scene()

    async with scene.running(a_policy(planner="Upstream")):
        await scene.run()
        held = dict(scene.nominator.by_node)
        scene.gone(OLD)
        replaced(scene, "bad")
        await settled()

    assert scene.evictor.evicted == ["web-1"]
    assert held == {}
    assert scene.record["spec"]["planner"] == "Upstream"
    assert scene.phases == [["Planned", "Evicting", "Evicted", "Returned"]]


# -- budgets by time of day ------------------------------------------------------------------------------


async def test_nothing_is_evicted_in_a_window_that_allows_nothing() -> None:
    """The refusal names the budget."""
    scene = Scene()
    freeze = {"name": "freeze", "evictions": 0}

    async with scene.running(a_policy(limits={"budgets": [freeze]})):
        await scene.run()

    assert scene.evictor.evicted == []
    (refused,) = scene.statuses.statuses[POLICY]["counts"]["refused"]
    assert (refused["reason"], refused["message"]) == (
        "EvictionBudget", 'at most 0 evictions by budget "freeze"',
    )  # fmt: skip


async def test_a_window_that_opens_during_a_run_blocks_the_move() -> None:
    """The record that was written for it says Blocked and names the budget."""
    scene = Scene()
    now = datetime.fromtimestamp(scene.clock.now(), UTC)
    opening = now + timedelta(minutes=1)
    freeze = {
        "name": "freeze",
        "evictions": 0,
        "schedule": f"{opening.minute} {opening.hour} * * *",
        "duration": "1h",
    }

    async with scene.running(a_policy(limits={"budgets": [freeze]})):
        create = scene.records.create

        async def create_and_linger(document: dict[str, Any]) -> WriteResult:
            scene.clock.time += 60
            return await create(document)

        scene.records.create = create_and_linger  # type: ignore[assignment, method-assign] # replaced for this test
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Blocked"]]
    assert scene.record["status"]["blockedBy"] == "freeze"


def test_a_window_that_can_never_open_is_refused_with_its_field() -> None:
    """A day that no month has."""
    window = {"name": "never", "evictions": 0, "schedule": "0 0 31 2 *", "duration": "1h"}

    with pytest.raises(ConfigurationError, match=r"spec\.rebalancing\.limits\.budgets\[0\]\.schedule"):
        Scene().rebalancers.check(a_policy(limits={"budgets": [window]}))


async def test_evictions_within_a_minute_are_counted_across_runs() -> None:
    """One a minute: the second run waits for the next minute."""
    scene = Scene()

    async with scene.running(a_policy(limits={"perMinute": 1, "perWorkload": 5})):
        scene.tell(PodAdded(web(7, "bad")))
        await scene.run()
        await scene.run()
        assert len(scene.evictor.evicted) == 1
        counts = scene.statuses.statuses[POLICY]["counts"]
        assert counts["planned"] == 0
        assert [each["reason"] for each in counts["refused"]] == ["RateLimit"]
        await scene.clock.advance(61)
        await scene.run()

    assert len(scene.evictor.evicted) == 2


# -- after a restart -------------------------------------------------------------------------------------


def a_record(phase: str, mode: str = "Enforce", **status: Any) -> dict[str, Any]:
    """A record that an earlier process left."""
    moments = ["Planned", "Evicting", "Evicted"]
    reached = moments[: moments.index(phase) + 1] if phase in moments else []
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Eviction",
        "metadata": {
            "namespace": "default", "name": "web-1-abc", "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "pod": {"namespace": "default", "name": "web-1", "uid": "uid-default-web-1"},
            "owner": {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-ReplicaSet/web",
            },
            "policy": POLICY,
            "strategy": "RemovePodsViolatingNodeTaints",
            "mode": mode,
            "reason": "for a test",
            "fromNode": "bad",
            "targetNode": "good",
        },
        **(
            {
                "status": {
                    "phase": phase,
                    "transitions": [{"phase": each, "time": "2026-01-01T00:00:00Z"} for each in reached],
                    **status,
                }
            }
            if phase
            else {}
        ),
    }  # fmt: skip


def returned(count: int) -> list[dict[str, Any]]:
    """As many moves of web whose replacement came back, the one after the other."""
    found = []
    for number in range(count):
        record = a_record("Returned")
        record["metadata"]["name"] = f"web-1-{number}"
        moment = f"2026-01-01T00:00:{number:02}Z"
        record["status"]["transitions"] = [{"phase": "Returned", "time": moment}]
        found.append(record)
    return found


async def test_a_suspended_strategy_is_reported_until_its_records_are_gone() -> None:
    """After five fruitless moves; with the owner's name and how many."""
    scene = Scene(*returned(5))

    async with scene.running(a_policy()):
        await scene.run()
        told = scene.rebalancers.troubles(POLICY)
        for document in returned(5):
            scene.keeper.forget("default", document["metadata"]["name"])
        await scene.run()
        forgotten = scene.rebalancers.troubles(POLICY)

    assert told["StrategySuspended"] == (
        "RemovePodsViolatingNodeTaints leaves ReplicaSet default/web alone: "
        "its last 5 moves were unsuccessful"
    )
    assert scene.evictor.evicted == ["web-1"]
    assert forgotten == {}


async def test_no_more_records_are_kept_than_asked_for() -> None:
    """The oldest go first."""
    scene = Scene(*returned(4))

    async with scene.running(a_policy("DryRun", records={"maxCount": 2})):
        await scene.run()

    assert len(scene.records.documents) == 2
    assert all("web-1-0" not in key for key in map(str, scene.records.documents))


async def test_a_target_that_another_scheduler_decides_is_called_a_forecast() -> None:
    """It is neither held nor promised."""
    scene = Scene()
    scene.wing.serve({}, scene.forecasts)

    async with scene.running(a_policy("DryRun", scope={"otherSchedulers": ["default-scheduler"]})):
        await scene.run()

    assert scene.record["spec"]["targetNode"] == "good"
    assert scene.record["status"]["message"] == "expected on good; a forecast, another scheduler places it"


@pytest.mark.parametrize(
    ("record", "phases"),
    [
        pytest.param(a_record("Planned"), ["Cancelled"], id="planned"),
        pytest.param(a_record("Evicting"), ["Cancelled"], id="evicting-not-accepted"),
        pytest.param(a_record(""), ["Planned", "Cancelled"], id="without-a-status"),
        pytest.param(a_record("", mode="DryRun"), ["Predicted"], id="prediction-without-a-status"),
    ],
)
async def test_records_of_evictions_that_did_not_happen_are_cancelled_once(
    record: dict[str, Any], phases: list[str]
) -> None:
    """The pod is still there, so nothing was evicted; nothing is sent again either."""
    scene = Scene(record)

    async with scene.running():
        await scene.clock.advance(30)

    assert scene.phases == [phases]
    assert scene.evictor.evicted == []


@pytest.mark.parametrize("phase", ["Evicting", "Evicted"])
async def test_records_of_evictions_that_happened_are_completed_once(phase: str) -> None:
    """The pod is gone and its replacement runs: found by its owner, whenever it came."""
    scene = Scene(a_record(phase))
    scene.gone(OLD)
    replaced(scene, "good")

    async with scene.running():
        await scene.clock.advance(30)

    assert scene.phases[0][-1] == "Settled"
    assert scene.phases[0].count("Settled") == 1
    assert scene.record["status"]["replacement"]["name"] == "web-3"


async def test_finished_records_are_left_alone() -> None:
    """Whatever they say."""
    scene = Scene(
        a_record("Settled"),
    )

    async with scene.running():
        await scene.clock.advance(30)

    assert scene.records.history == {}


async def test_records_that_cannot_be_read_do_no_harm() -> None:
    """Somebody wrote nonsense by hand: it is named and skipped."""
    nonsense = a_record("Planned")
    nonsense["metadata"] = {**nonsense["metadata"], "name": "nonsense"}
    nonsense["spec"] = {"pod": 7}
    scene = Scene(nonsense, a_record("Planned"))

    async with scene.running():
        pass

    assert [name for name, _ in scene.observer.skipped] == ["default/nonsense"]
    assert scene.phases == [["Cancelled"]]


async def test_a_replacement_that_is_deleted_holds_no_place() -> None:
    """It was nominated in its own name; once it is gone the place is anybody's."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(OLD)
        waiting = web(3, created="2026-06-01T00:00:00Z")
        scene.tell(PodAdded(waiting))
        scene.gone(waiting)
        await settled()

        assert scene.nominator.by_node == {}


@pytest.mark.parametrize("verdict", [WriteOutcome.REFUSED, WriteOutcome.GONE])
async def test_a_record_that_does_not_take_the_announcement_stops_the_eviction(verdict: WriteOutcome) -> None:
    """Somebody deleted it, or the server does not allow it: nothing is evicted without a record."""
    scene = Scene()
    create = scene.records.create

    async def then_refuse(document: dict[str, Any]) -> WriteResult:
        answer = await create(document)
        scene.records.answer = WriteResult(verdict, "no")
        return answer

    scene.records.create = then_refuse  # type: ignore[assignment, method-assign] # replaced for this test
    async with scene.running(a_policy()):
        await scene.run()
        await scene.clock.advance(30)

        assert scene.evictor.evicted == []
        scene.records.answer = DONE
        await scene.clock.advance(60)

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Cancelled"]]
    assert not scene.keeper._unwritten


async def test_an_eviction_that_breaks_is_carried_to_its_end() -> None:
    """Whatever the adapter raised, the record says so, and the target is anybody's again."""
    scene = Scene()

    async def broken(_: Pod) -> None:
        raise ValueError("as asked")

    scene.evictor.evict = broken  # type: ignore[method-assign] # replaced for this test
    async with scene.running(a_policy()):
        await scene.run()

    assert scene.phases == [["Planned", "Evicting", "Failed"]]
    assert scene.nominator.by_node == {}


async def test_a_move_that_cannot_be_judged_again_is_cancelled() -> None:
    """The plugin that breaks ends the run; the record that was written for the move does not stay open."""
    scene = Scene()
    create = scene.records.create

    async def then_break(document: dict[str, Any]) -> WriteResult:
        scene.wing.configs.configured = None  # type: ignore[assignment, method-assign] # replaced for this test
        return await create(document)

    scene.records.create = then_break  # type: ignore[assignment, method-assign] # replaced for this test
    async with scene.running(a_policy()):
        with pytest.raises(TypeError):
            await scene.run()

    assert scene.phases == [["Planned", "Cancelled"]]
    assert scene.evictor.evicted == []


async def test_a_record_deleted_on_its_way_ends_nothing_else() -> None:
    """Somebody deletes the record between eviction and replacement: it stays deleted, the rest goes on."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        record = scene.record["metadata"]
        await scene.records.delete(record["namespace"], record["name"])
        scene.keeper.forget(record["namespace"], record["name"])
        scene.gone(OLD)
        replaced(scene, "good")
        await scene.clock.advance(30)

    assert scene.records.documents == {}
    assert scene.keeper.known == {}


async def test_an_outcome_that_cannot_be_written_down_stops_no_other() -> None:
    """Whatever breaks while one move is completed, the rebalancers go on."""
    scene = Scene()

    async with scene.running(a_policy()):
        await scene.run()
        scene.records.write_status = None  # type: ignore[assignment, method-assign] # replaced for this test
        scene.gone(OLD)
        replaced(scene, "good")
        await scene.clock.advance(30)

    assert scene.observer.failures


async def test_records_of_a_deleted_policy_are_dropped_in_time() -> None:
    """Retention goes on when no policy is left to run: nothing fills the cluster for ever."""
    scene = Scene()
    async with scene.running(a_policy("DryRun", records={"ttlSeconds": 60})):
        await scene.run()
        await scene.wing.retention.tidy()
        assert len(scene.records.documents) == 1
        scene.rebalancers.configure([])

        scene.clock.time += 10 * 365 * 86_400
        await scene.wing.retention.tidy()

    assert scene.records.documents == {}


async def test_room_that_is_promised_to_somebody_else_is_no_target() -> None:
    """A pod that waits for its nominated node counts as there when the move is judged again."""
    scene = Scene()

    async with scene.running(a_policy()):
        create = scene.records.create

        async def create_and_promise(document: dict[str, Any]) -> WriteResult:
            big = scene.cache.info(a_pod("big", cpu="4"))
            scene.book.nominate(big, "good")
            return await create(document)

        scene.records.create = create_and_promise  # type: ignore[assignment, method-assign] # replaced for this test
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Cancelled"]]


def test_a_strategy_that_the_planner_cannot_drive_is_refused() -> None:
    """FollowScore asks the scheduler, and descheduler has none to ask."""
    policy = a_policy(planner="Upstream", strategies=[{"name": "FollowScore"}])

    with pytest.raises(
        ConfigurationError, match=r"cannot be driven by planner Upstream, only by Proven"
    ) as said:
        Scene().rebalancers.check(policy)
    assert said.value.path == "spec.rebalancing.strategies[0].name"


async def test_a_strategy_that_hangs_stops_its_own_policy_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is given up, the status says so, and the policy is not run again until it is changed."""
    monkeypatch.setattr(plan_runner, "PLANNING_S", 0.05)
    scene = Scene()
    computer, asked = scene.computer, []
    compute = computer.compute

    async def hang(_: Callable[..., Any]) -> None:
        asked.append(1)
        await asyncio.Event().wait()

    async with scene.running(a_policy()):
        computer.compute = hang  # type: ignore[method-assign] # replaced for this test
        with pytest.raises(TimeoutError):
            await scene.run()
        await scene.run()
        assert asked == [1]
        assert list(scene.rebalancers.troubles(POLICY)) == ["Hanging"]

        computer.compute = compute  # type: ignore[method-assign] # replaced for this test
        scene.rebalancers.adopt(a_policy(limits={"total": 3}))
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]
    assert scene.rebalancers.troubles(POLICY) == {}
