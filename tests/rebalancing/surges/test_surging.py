"""Moving an only pod by a rollout: the replacement first, taken back when it is not ready in time."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from planning.surge_builders import READY, a_deployment, a_replica_set, an_only_pod
from plimsoll.access.rights import SURGE
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import ObjectAdded, PodAdded
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.deployment import SURGED, Deployment
from plimsoll.model.kinds.workload import Namespace
from plimsoll.planning.surges import Deployments
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.outcomes import PATIENCE_S
from plimsoll.rebalancing.surges.transitions import LEAVING_S
from plimsoll.records.record import recorded_workload
from plimsoll.testing.fakes import FakeRollouts, settled
from rebalancing.scene import POLICY, a_policy
from rebalancing.surges.surge_scene import OLD, SurgeScene, a_surging_policy

UNKNOWN = WriteResult(WriteOutcome.UNKNOWN, "no answer in time")
FORBIDDEN = WriteResult(WriteOutcome.REFUSED, "deployments.apps is forbidden")


def said(scene: SurgeScene) -> tuple[str, ...]:
    status = scene.record["status"]
    return status["phase"], status.get("reason"), status.get("message")


async def test_a_surge_is_on_record_before_the_rollout_and_settled_when_the_old_pod_has_gone() -> None:
    """Planned, Surging, the mark, a ready replacement elsewhere, and only then Settled."""
    scene = SurgeScene()
    asked_in = []
    scene.rollouts.when_marked = lambda *_: asked_in.append(scene.record["status"]["phase"])

    async with scene.running(a_surging_policy()):
        await scene.run()
        held = [pod.name for pod in scene.nominator.by_node["good"].values()]
        scene.comes()
        sent_to = scene.nominator.node_of("uid-default-web-2-y")
        scene.becomes_ready()
        await settled()
        before = said(scene)[0]
        scene.leaves()
        await settled()

    assert scene.evictor.evicted == []
    assert asked_in == ["Surging"]
    assert scene.rollouts.marks == [scene.mark]
    assert held == ["web-1-x"]
    assert sent_to == "good"
    assert before == "Surging"
    assert scene.phases == [["Planned", "Surging", "Settled"]]
    assert scene.record["status"]["replacement"] == {
        "name": "web-2-y", "uid": "uid-default-web-2-y", "node": "good",
    }  # fmt: skip
    assert scene.record["spec"]["surge"]["deployment"] == "web"
    assert scene.nominator.by_node == {}
    counts = scene.statuses.statuses[POLICY]["counts"]
    assert (counts["evicted"], counts["verified"]) == (1, 1)
    notes = {(note.regarding["kind"], note.reason) for note in scene.recorder.notes}
    assert notes >= {("Pod", "Surging"), ("Deployment", "PodSurging")}
    assert not [note for note in scene.recorder.notes if note.reason == "Evicted"]


async def test_a_pod_that_the_watch_shows_otherwise_than_it_is_is_not_surged() -> None:
    """Somebody has annotated it, for example: no rollout begins, and the next run decides."""
    scene = SurgeScene()
    scene.evictor.stands = WriteResult(WriteOutcome.CONFLICT, "the pod has other annotations")

    async with scene.running(a_surging_policy()):
        await scene.run()

    assert scene.rollouts.marks == []
    assert scene.phases == [["Planned", "Cancelled"]]
    assert said(scene) == ("Cancelled", "Changed", "the pod has other annotations")


async def test_the_old_pod_may_go_before_the_replacement_is_seen_to_be_ready() -> None:
    """Watches show pods in any order of time."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.comes("good")
        scene.leaves()
        await settled()
        before = said(scene)[0]
        scene.becomes_ready()
        await settled()

    assert before == "Surging"
    assert said(scene)[:2] == ("Settled", "Verified")


@pytest.mark.parametrize("mode", ["DryRun", "Approve"])
async def test_a_prediction_and_a_proposal_say_that_it_is_a_surge(mode: str) -> None:
    """Nothing is written into the Deployment."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy(mode)):
        await scene.run()

    assert scene.rollouts.marks == []
    assert scene.record["spec"]["surge"]["deployment"] == "web"
    assert "a surge, by a rollout of Deployment web" in scene.record["status"]["message"]


async def test_an_approved_surge_is_carried_out() -> None:
    """Asked again first, of the Deployment as it is then."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy("Approve")):
        await scene.run()
        name = scene.record["metadata"]["name"]
        scene.wing.approvals.annotated("default", name, {"plimsoll.dev/approved": "true"})
        await scene.clock.advance(5)

    assert scene.rollouts.marks == [scene.mark]
    assert said(scene)[0] == "Surging"


@pytest.mark.parametrize("policy", [a_policy(), a_surging_policy(planner="Upstream")])
async def test_without_surge_the_pod_stays(policy: SchedulingPolicy) -> None:
    """The default, and descheduler's decisions: no Deployment is even read."""
    scene = SurgeScene()
    scene.rollouts.reading = FORBIDDEN

    async with scene.running(policy):
        await scene.run()
        troubles = dict(scene.rebalancers.troubles(POLICY))

    assert scene.records.documents == {}
    assert scene.evictor.evicted == []
    assert troubles == {}


@pytest.mark.parametrize(("ready", "state"), [(None, "Pending"), (False, "not ready")])
async def test_a_replacement_that_is_not_ready_in_time_is_taken_back(ready: None, state: str) -> None:
    """Waiting for a node, or running and never ready: the mark becomes what it was, the pod stays."""
    deployment = a_deployment(
        metadata={"resourceVersion": "3"}, annotations={"team": "a", SURGED: "earlier from nowhere"}
    )
    scene = SurgeScene(rollouts=FakeRollouts(deployment))

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.comes("" if ready is None else "good")  # type: ignore[redundant-expr] # mypy does not see the change
        await scene.clock.advance(2 * PATIENCE_S + 10)

    assert scene.rollouts.marks == [scene.mark, "earlier from nowhere"]
    assert scene.rollouts.deployments["web"].spec.template == deployment.spec.template
    phase, reason, message = said(scene)
    assert (phase, reason) == ("Failed", "ReplacementNotReady")
    assert message == (
        f"the replacement was not ready within 300 s; pod web-2-y is {state};"
        " the rollout was taken back, pod web-1-x stays"
    )
    assert scene.nominator.by_node == {}


async def test_a_surge_that_fails_while_a_run_gathers_its_input_is_not_forgotten() -> None:
    """It is under way or it has failed whenever it is looked at; one of several was evicted then."""
    scene = SurgeScene()
    policy = a_surging_policy()

    async with scene.running(policy):
        await scene.run()
        scene.comes("good")
        inputs = scene.wing.runs.inputs
        read = inputs.surges.deployments

        async def slowly() -> Deployments:
            found = await read()
            await scene.clock.advance(2 * PATIENCE_S + 10)
            return found

        inputs.surges.deployments = slowly  # type: ignore[method-assign]
        gathered = await inputs.gather(policy)

    (record,) = inputs.keeper.known.values()
    assert said(scene)[:2] == ("Failed", "ReplacementNotReady")
    held = gathered.memory.held_back(recorded_workload(record.spec), record.spec.strategy)
    assert held is not None
    assert held.reason == "HeldBack"


async def test_the_deployment_may_give_less_time() -> None:
    """``progressDeadlineSeconds`` is its author's word: no longer than that."""
    deployment = a_deployment(metadata={"resourceVersion": "3"}, progressDeadlineSeconds=20)
    scene = SurgeScene(rollouts=FakeRollouts(deployment))

    async with scene.running(a_surging_policy()):
        await scene.run()
        await scene.clock.advance(14)
        before = said(scene)[0]
        await scene.clock.advance(10)

    assert before == "Surging"
    assert scene.rollouts.marks == [scene.mark, None]
    assert said(scene)[2].startswith("no replacement came within 20 s")


async def test_a_rollout_that_brings_nothing_is_taken_back_and_teaches() -> None:
    """The next run leaves the Deployment alone, whatever its ReplicaSets are called."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        await scene.clock.advance(PATIENCE_S + 10)
        first = said(scene)
        scene.rollouts.roll_out("web")
        await scene.run()

    assert first[:2] == ("Failed", "NoReplacement")
    assert scene.rollouts.marks == [scene.mark, None]
    refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
    assert [each["reason"] for each in refused] == ["HeldBack"]
    assert "Deployment default/web" in refused[0]["message"]


async def test_what_a_surge_teaches_holds_for_policies_that_do_not_surge() -> None:
    """Another policy with that strategy would evict the pod seconds later."""
    scene = SurgeScene()
    plain = a_policy(evictor={"minReplicas": 0})

    async with scene.running(a_surging_policy()):
        await scene.run()
        await scene.clock.advance(PATIENCE_S + 10)
        assert said(scene)[:2] == ("Failed", "NoReplacement")
        scene.rebalancers.adopt(plain)
        await scene.run()

    assert scene.evictor.evicted == []
    refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
    assert [each["reason"] for each in refused] == ["HeldBack"]


async def test_what_an_eviction_teaches_holds_for_a_surge() -> None:
    """The Deployment is not asked for what its ReplicaSet has just failed at."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        owner = scene.record["spec"]["owner"]
        for document in scene.records.documents.values():
            moment = datetime.fromtimestamp(scene.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            transitions = [{"phase": "Returned", "time": moment}]
            document["status"] = {"phase": "Returned", "transitions": transitions}
            del document["spec"]["surge"]
    later = SurgeScene(*scene.records.documents.values())
    async with later.running(a_surging_policy()):
        await later.run()

    assert owner["kind"] == "ReplicaSet"
    assert later.rollouts.marks == []
    refused = later.statuses.statuses[POLICY]["counts"]["refused"]
    assert [each["reason"] for each in refused] == ["HeldBack"]


async def test_a_template_that_somebody_changed_is_not_taken_back() -> None:
    """It is theirs: the record fails and says so, nothing is written."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.rollouts.change("web", "image", "two")
        await scene.clock.advance(PATIENCE_S + 10)

    assert scene.rollouts.marks == [scene.mark]
    phase, _, message = said(scene)
    assert phase == "Failed"
    assert message.endswith("somebody changed the Deployment since, so the rollout was left alone")


async def test_a_mark_that_somebody_took_away_is_taken_back_already() -> None:
    """An undone rollout is what was wanted."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.rollouts.change("web", SURGED, None)
        await scene.clock.advance(PATIENCE_S + 10)

    assert scene.rollouts.marks == [scene.mark]
    assert said(scene)[0] == "Failed"


async def test_taking_back_goes_on_until_it_is_done() -> None:
    """A server that does not answer is asked again; meanwhile the record says what is under way."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.rollouts.answers = [UNKNOWN, WriteResult(WriteOutcome.CONFLICT, "modified")]
        await scene.clock.advance(PATIENCE_S)
        during = said(scene)[:2]
        await scene.clock.advance(30)

    assert during == ("Surging", "TakingBack")
    assert scene.rollouts.marks == [scene.mark, None]
    assert said(scene)[0] == "Failed"


async def test_a_replacement_that_is_ready_after_all_is_not_taken_back() -> None:
    """While the server cannot be reached it recovers: then it settles."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.rollouts.reading = UNKNOWN
        await scene.clock.advance(PATIENCE_S + 2)
        scene.comes("good", ready=True)
        scene.leaves()
        await scene.clock.advance(30)

    assert scene.rollouts.marks == [scene.mark]
    assert said(scene)[0] == "Settled"


async def test_an_old_pod_that_does_not_go_ends_the_record_and_not_the_rollout() -> None:
    """Somebody paused the Deployment in the middle of it."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.comes("good", ready=True)
        await scene.clock.advance(LEAVING_S + 10)

    assert scene.rollouts.marks == [scene.mark]
    assert said(scene)[:2] == ("Failed", "OldPodStays")


async def test_a_replacement_that_is_ready_on_the_old_node_has_returned() -> None:
    """Somebody else bound it there."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.comes("bad", ready=True)
        await settled()

    assert said(scene)[:2] == ("Returned", "SameNode")


async def test_only_a_pod_of_the_deployment_counts() -> None:
    """A pod that names the record, of another owner or of a ReplicaSet without owner, is not credited."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.tell(ObjectAdded(a_replica_set(digest="9", kind="Rollout")))
        forged = an_only_pod("forged", node="good", digest="9", annotations={SURGED: scene.mark})
        other = an_only_pod("other", node="good", owner="Job/web-2", annotations={SURGED: scene.mark})
        scene.tell(PodAdded(forged), PodAdded(other))
        scene.leaves()
        await settled()
        before = said(scene)[0]
        scene.comes("good", ready=True)
        await settled()

    assert before == "Surging"
    assert said(scene)[0] == "Settled"
    assert scene.record["status"]["replacement"]["name"] == "web-2-y"


async def test_a_pod_that_is_seen_before_its_replica_set_is_sent_and_not_yet_believed() -> None:
    """Two watches: the pod gets its target immediately, the outcome waits for its ReplicaSet."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.tell(PodAdded(scene.replacement()))
        sent_to = scene.nominator.node_of("uid-default-web-2-y")
        scene.becomes_ready()
        scene.leaves()
        await settled()
        before = said(scene)[0]
        scene.tell(ObjectAdded(a_replica_set(digest="2")))
        await settled()

    assert sent_to == "good"
    assert (before, said(scene)[0]) == ("Surging", "Settled")


async def test_a_replacement_that_dies_is_followed_by_the_next() -> None:
    """The ReplicaSet makes another one, which is sent and credited in its place."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy()):
        await scene.run()
        scene.comes("good")
        scene.leaves(scene.replacement("good"))
        scene.comes("good", ready=True, name="web-2-z")
        scene.leaves()
        await settled()

    assert scene.record["status"]["replacement"]["name"] == "web-2-z"


# -- who is faster -----------------------------------------------------------------------------------


async def test_a_change_before_the_rollout_wins() -> None:
    """Somebody rolls out on their own between plan and surge: nothing is written, the record says why."""
    scene = SurgeScene()
    create = scene.records.create

    async def changed_meanwhile(document: dict[str, Any]) -> WriteResult:
        scene.rollouts.change("web", "image", "two")
        return await create(document)

    scene.records.create = changed_meanwhile  # type: ignore[assignment, method-assign] # replaced for this test
    async with scene.running(a_surging_policy()):
        await scene.run()

    assert scene.rollouts.marks == []
    assert said(scene)[:2] == ("Cancelled", "NoSurge")  # the controller has not seen the change yet


async def test_a_change_that_races_the_rollout_wins() -> None:
    """The write names the version that was read: the server refuses, the next look says why."""
    scene = SurgeScene()
    mark = scene.rollouts.mark

    async def raced(deployment: Deployment, value: str) -> WriteResult:
        if not scene.rollouts.marks:
            scene.rollouts.change("web", "image", "two")
        return await mark(deployment, value)

    scene.rollouts.mark = raced  # type: ignore[method-assign] # replaced for this test
    async with scene.running(a_surging_policy()):
        await scene.run_while_time_passes(10)

    assert scene.rollouts.marks == []
    assert said(scene) == ("Cancelled", "Changed", "somebody changed the Deployment")
    assert scene.nominator.by_node == {}


async def test_a_lost_answer_starts_no_second_rollout() -> None:
    """The mark was written and the answer lost: the next look finds it."""
    scene = SurgeScene()
    mark = scene.rollouts.mark
    sent = []

    async def lost(deployment: Deployment, value: str) -> WriteResult:
        sent.append(value)
        await mark(deployment, value)
        return UNKNOWN

    scene.rollouts.mark = lost  # type: ignore[method-assign] # replaced for this test
    async with scene.running(a_surging_policy()):
        await scene.run_while_time_passes(10)

    assert sent == [scene.mark]
    assert said(scene)[0] == "Surging"


async def test_a_missing_right_is_reported_in_the_policy() -> None:
    """Reading is refused: nothing is surged, and the condition has the sentence."""
    scene = SurgeScene()
    scene.rollouts.reading = FORBIDDEN

    async with scene.running(a_surging_policy()):
        await scene.run()
        trouble = dict(scene.rebalancers.troubles(POLICY))
        scene.rollouts.reading = WriteResult(WriteOutcome.DONE)
        await scene.run()
        later = dict(scene.rebalancers.troubles(POLICY))

    assert trouble == {
        "SurgeForbidden": "spec.rebalancing.surge is on, and the operator may not list Deployments:"
        " deployments.apps is forbidden"
    }
    assert later == {}


async def test_a_right_that_is_known_to_be_missing_is_reported_once() -> None:
    """With the other rights of the policy, and not as trouble of surges as well."""
    scene = SurgeScene()
    scene.rollouts.answers = [FORBIDDEN]
    scene.reviewer.denied = {SURGE}

    async with scene.running(a_surging_policy()):
        await scene.access.review()
        await scene.run()
        trouble = dict(scene.rebalancers.troubles(POLICY))

    assert "SurgeForbidden" not in trouble


async def test_a_rollout_that_may_not_be_started_fails_and_is_reported() -> None:
    """The right to patch is missing."""
    scene = SurgeScene()
    scene.rollouts.answers = [FORBIDDEN]

    async with scene.running(a_surging_policy()):
        await scene.run()
        trouble = dict(scene.rebalancers.troubles(POLICY))

    assert said(scene) == ("Failed", "SurgeRefused", "deployments.apps is forbidden")
    assert "may not patch Deployments" in trouble["SurgeForbidden"]
    assert scene.nominator.by_node == {}


async def test_nothing_is_rolled_out_that_is_not_on_record() -> None:
    """The status cannot be written: the Deployment stays untouched."""
    scene = SurgeScene()
    create = scene.records.create

    async def then_broken(document: dict[str, Any]) -> WriteResult:
        answer = await create(document)
        scene.records.answer = UNKNOWN
        return answer

    scene.records.create = then_broken  # type: ignore[assignment, method-assign] # replaced for this test
    async with scene.running(a_surging_policy()):
        await scene.run_while_time_passes(60)

    assert scene.rollouts.marks == []


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"perMinute": 10}, "WorkloadLimit"), ({"perMinute": 1, "perWorkload": 5}, "RateLimit")],
)
async def test_limits_count_surges(limits: dict[str, int], reason: str) -> None:
    """One in flight of its Deployment, and one within the minute, whatever their ReplicaSets are."""
    scene = SurgeScene()

    async with scene.running(a_surging_policy(limits=limits)):
        await scene.run()
        scene.rollouts.roll_out("web")
        await scene.run()

    assert len(scene.rollouts.marks) == 1
    refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
    assert [each["reason"] for each in refused] == [reason]


async def test_the_stop_button_stops_surges() -> None:
    """Pressed between plan and rollout: the record says so, nothing is written."""
    scene = SurgeScene()
    stop = {"metadata": {"name": "plimsoll", "annotations": {"plimsoll.dev/stop": "true"}}}
    create = scene.records.create

    async def pressed_meanwhile(document: dict[str, Any]) -> WriteResult:
        scene.tell(ObjectAdded(convert(Namespace, stop)))
        return await create(document)

    scene.records.create = pressed_meanwhile  # type: ignore[assignment, method-assign] # replaced for this test
    async with scene.running(a_surging_policy()):
        await scene.run()

    assert scene.rollouts.marks == []
    assert said(scene)[:2] == ("Blocked", "Stopped")


# -- the next process --------------------------------------------------------------------------------


async def crashed(until: Callable[..., Any]) -> SurgeScene:
    """A process that ends at a moment of a surge; the records and the Deployment that it leaves."""
    scene = SurgeScene()
    async with scene.running(a_surging_policy()):
        await until(scene)
    return scene


async def in_the_middle(scene: SurgeScene) -> None:
    await scene.run()


async def test_the_next_process_goes_on_with_a_rollout_that_was_started() -> None:
    """The mark is there: it is followed, and no second one is written."""
    before = await crashed(in_the_middle)
    scene = SurgeScene(*before.records.documents.values(), rollouts=before.rollouts)
    scene.comes()

    async with scene.running(a_surging_policy()):
        sent_to = scene.nominator.node_of("uid-default-web-2-y")
        in_flight = scene.wing.executor.machine.in_flight()
        scene.becomes_ready()
        scene.leaves()
        await settled()

    assert sent_to == "good"
    assert in_flight == {"default/uid-Deployment/web": 1}
    assert scene.rollouts.marks == [scene.mark]
    assert said(scene)[0] == "Settled"


async def test_the_next_process_finds_a_surge_that_has_ended_meanwhile() -> None:
    """The replacement is ready and the old pod gone when it looks."""
    before = await crashed(in_the_middle)
    scene = SurgeScene(*before.records.documents.values(), rollouts=before.rollouts, old=None)
    scene.comes("good", ready=True)

    async with scene.running(a_surging_policy()):
        await settled()

    assert said(scene)[0] == "Settled"


async def test_a_pod_that_leaves_while_the_next_process_reads_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old pod goes between the look at it and the answer about its Deployment."""
    before = await crashed(in_the_middle)
    scene = SurgeScene(*before.records.documents.values(), rollouts=before.rollouts)
    scene.comes("good", ready=True)
    read, moments = scene.rollouts.read, [scene.leaves]

    async def read_meanwhile(*args: Any) -> Any:
        answer = await read(*args)
        while moments:
            moments.pop()()
        return answer

    monkeypatch.setattr(scene.rollouts, "read", read_meanwhile)
    async with scene.running(a_surging_policy()):
        await settled()

    assert said(scene)[0] == "Settled"


async def test_the_next_process_cancels_a_rollout_that_was_not_started() -> None:
    """The record was written, the mark was not."""
    scene = SurgeScene()
    scene.rollouts.answers = [UNKNOWN] * 9
    async with scene.running(a_surging_policy()):
        await scene.run_while_time_passes(0)
    assert said(scene)[0] == "Surging"

    after = SurgeScene(*scene.records.documents.values(), rollouts=scene.rollouts)
    async with after.running(a_surging_policy()):
        await settled()

    assert scene.rollouts.marks == []
    assert said(after)[:2] == ("Cancelled", "Restarted")


@pytest.mark.parametrize("was_written", [False, True])
async def test_the_next_process_goes_on_taking_back(was_written: bool) -> None:
    """Whether the mark was restored before the end or not, it is in the end, and once."""

    async def while_taking_back(scene: SurgeScene) -> None:
        await scene.run()
        scene.rollouts.answers = [UNKNOWN] * 9
        await scene.clock.advance(PATIENCE_S + 2)

    before = await crashed(while_taking_back)
    before.rollouts.answers = []
    if was_written:
        before.rollouts.do_mark("web", None)
    scene = SurgeScene(*before.records.documents.values(), rollouts=before.rollouts)

    async with scene.running(a_surging_policy()):
        await scene.clock.advance(10)

    assert scene.rollouts.marks == [before.mark, None]
    assert said(scene)[0] == "Failed"


async def test_the_next_process_waits_where_it_cannot_see() -> None:
    """The Deployment cannot be read after the start: the surge is followed, and taken back in the end."""
    before = await crashed(in_the_middle)
    before.rollouts.reading = UNKNOWN
    scene = SurgeScene(*before.records.documents.values(), rollouts=before.rollouts)

    async with scene.running(a_surging_policy()):
        await settled()
        during = said(scene)[0]
        scene.rollouts.reading = WriteResult(WriteOutcome.DONE)
        await scene.clock.advance(PATIENCE_S + 10)

    assert during == "Surging"
    assert scene.rollouts.marks == [before.mark, None]


async def test_the_only_pod_of_a_stateful_set_stays() -> None:
    """Its protection holds, and the sentence says which condition is missing."""
    old = an_only_pod(node="bad", cpu="100m", owner="StatefulSet/web", status=READY)
    scene = SurgeScene(old=old)

    async with scene.running(a_surging_policy()):
        await scene.run()

    refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
    assert [each["reason"] for each in refused] == ["NoSurge"]
    assert "its owner is a StatefulSet, and one replica more has another ordinal" in refused[0]["message"]
    assert OLD.name == old.name
