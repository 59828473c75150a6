"""Moves whose pods leave by EvictionRequest: asked for, waited for, called off, taken over, cleared up."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.objects import Namespace  # type: ignore[attr-defined] # known to exist in this test
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.watch_event import ObjectAdded, ObjectDeleted, PodUpdated
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.breakers import STOP
from plimsoll.rebalancing.eviction_requests.probe import ASK_S, NOT_OFFERED, UNATTENDED, UNATTENDED_S
from plimsoll.rebalancing.eviction_requests.progress import TAKEN_UP_S, WITHDRAWN_S
from plimsoll.rebalancing.eviction_requests.transitions import STARTING_S
from plimsoll.rebalancing.eviction_requests.watch import SWEEP_S
from plimsoll.testing.fakes import settled
from plimsoll.toolkit.descheduling.disruption_signals import OUR_EVICT as EVICT
from rebalancing.scene import POLICY, Scene, a_policy
from rebalancing.test_controller import OLD, replaced
from rebalancing.test_missed_deletions import shown

MIGRATOR = "acme.io/migrator"
NOT_SERVED = WriteResult(WriteOutcome.GONE, "the server could not find the requested resource")


def by_request(mode: str = "Enforce", **more: Any) -> SchedulingPolicy:
    """A policy whose pods leave by request."""
    return a_policy(mode, evictBy="EvictionRequest", **more)


def the_request(scene: Scene) -> EvictionRequest:
    """The only request."""
    (request,) = scene.requester.requests.values()
    return request


#: Seconds in which what the watches bring is taken in.
SOON_S = 2.0


async def look(scene: Scene, seconds: float = SOON_S) -> None:
    """Let some time pass, and with it the next look."""
    await scene.clock.advance(seconds)


async def asked(scene: Scene) -> None:
    """One run; its request is taken up by a responder."""
    await scene.run()
    scene.requester.become(
        the_request(scene).key, is_observed=True, responder=MIGRATOR, said="copying memory"
    )
    await look(scene)


def press(scene: Scene) -> None:
    """Somebody annotates the operator's namespace."""
    scene.tell(ObjectAdded(Namespace(metadata=ObjectMeta(name="plimsoll", annotations={STOP: "true"}))))


class TestAMove:
    """What becomes of one move."""

    async def test_it_is_on_record_before_it_is_asked_for_and_settles_when_the_pod_has_left(self) -> None:
        """Planned, Evicting while the responder is at work, Evicted, Settled; no eviction is sent."""
        scene = Scene()
        asked_in = []
        plain = scene.requester.request

        async def noting(pod: Pod, name: str) -> WriteResult:
            asked_in.append((scene.record["status"]["phase"], pod.uid, name))
            return await plain(pod, name)

        scene.requester.request = noting  # type: ignore[method-assign] # replaced for this test
        async with scene.running(by_request()):
            await asked(scene)
            waiting = scene.record["status"]
            held = [pod.name for pod in scene.nominator.by_node["good"].values()]
            scene.leaving(OLD)
            await look(scene)
            left = scene.record["status"]
            scene.gone(OLD)
            replaced(scene, "good")
            await settled()

        assert asked_in == [("Evicting", OLD.uid, scene.record["metadata"]["name"])]
        assert scene.evictor.evicted == []
        assert waiting["phase"] == "Evicting"
        assert waiting["reason"] == "Requested"
        assert f"{MIGRATOR} is at work: copying memory" in waiting["message"]
        assert held == ["web-1"]
        assert left["phase"] == "Evicted"
        assert left["reason"] == "Left"
        assert scene.record["status"]["phase"] == "Settled"
        assert scene.record["status"]["replacement"]["name"] == "web-3"

    async def test_progress_is_recorded_as_it_comes_and_once(self) -> None:
        """The record's message follows the responder; an unchanged one is not written again."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            written = len(scene.phases[0])
            await look(scene, 10 * SOON_S)
            unchanged = len(scene.phases[0])
            scene.requester.become(the_request(scene).key, said="90 %", expected=1_767_225_600.0)
            await look(scene)

        assert unchanged == written
        message = scene.record["status"]["message"]
        assert f"{MIGRATOR} is at work, expects to be done at 2026-01-01T00:00:00Z: 90 %" in message

    async def test_a_replacement_that_runs_before_the_pod_leaves_is_the_one(self) -> None:
        """A live migration starts the new pod first: it ends the move once the old one has left."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            replaced(scene, "good")
            await look(scene)
            before = scene.record["status"]["phase"]
            scene.gone(OLD)
            await look(scene)

        assert before == "Evicting"
        assert scene.record["status"]["phase"] == "Settled"
        assert scene.record["status"]["replacement"]["name"] == "web-3"

    async def test_it_may_take_an_hour(self) -> None:
        """Nothing gives up after the five minutes that a replacement gets."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            for _ in range(100):
                await look(scene, 35)
            waiting = scene.record["status"]["phase"]
            scene.gone(OLD)
            await look(scene)
            await look(scene, 200)
            due = scene.record["status"]["phase"]
            await look(scene, 150)

        assert waiting == "Evicting"
        assert due == "Evicted"
        assert scene.record["status"]["reason"] == "NoReplacement"

    async def test_after_its_time_it_is_withdrawn(self) -> None:
        """Failed, with the last report; the room is anybody's again."""
        scene = Scene()
        async with scene.running(by_request(evictionRequestTimeoutSeconds=600)):
            await asked(scene)
            await look(scene, 602)

        status = scene.record["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "RequestTimeout")
        assert "did not leave within 600 s" in status["message"]
        assert "copying memory" in status["message"]
        assert the_request(scene).is_withdrawn
        assert not any(scene.nominator.by_node.values())

    async def test_the_same_pod_is_asked_once(self) -> None:
        """Later runs see that it is on its way, whatever the limits allow."""
        scene = Scene()
        policy = by_request(limits={"perWorkload": "100%", "perNode": "100%", "total": "100%"})
        async with scene.running(policy):
            await asked(scene)
            await scene.run()

        assert len(scene.records.documents) == 1
        assert len(scene.requester.requests) == 1

    @pytest.mark.parametrize(
        ("told", "phase", "reason"),
        [
            ({"failure": "NoFurtherResponder"}, "Failed", "NoFurtherResponder"),
            ({"failure": "EvictionInvalid", "message": "Target pod not found."}, "Failed", "EvictionInvalid"),
            ({"failure": "CanceledDueToNoRequesters"}, "Cancelled", "RequestWithdrawn"),
            ({"is_withdrawn": True}, "Cancelled", "RequestWithdrawn"),
        ],
    )
    async def test_what_the_protocol_ends_is_ended(
        self, told: dict[str, Any], phase: str, reason: str
    ) -> None:
        """With the protocol's reason; no other way is taken."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            scene.requester.become(the_request(scene).key, **told)
            await look(scene)

        assert (scene.record["status"]["phase"], scene.record["status"]["reason"]) == (phase, reason)
        assert scene.evictor.evicted == []

    async def test_a_deleted_request_is_a_withdrawn_one(self) -> None:
        """A deletion calls the move off."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            scene.requester.vanish(the_request(scene).key)
            await look(scene)

        assert (scene.record["status"]["phase"], scene.record["status"]["reason"]) == (
            "Cancelled",
            "RequestWithdrawn",
        )

    @pytest.mark.parametrize(
        ("verdict", "reason"),
        [
            (WriteOutcome.CONFLICT, "Changed"),
            (WriteOutcome.GONE, "Gone"),
            (WriteOutcome.BUSY, "NotRevalidated"),
        ],
    )
    async def test_a_pod_that_the_watch_shows_otherwise_than_it_is_is_not_asked_for(
        self, verdict: WriteOutcome, reason: str
    ) -> None:
        """It has another owner by now, or is gone, or that is not known: the next run decides."""
        scene = Scene()
        scene.evictor.stands = WriteResult(verdict, "as it is")
        async with scene.running(by_request()):
            await scene.run()

        assert scene.requester.requests == {}
        assert scene.phases == [["Planned", "Cancelled"]]
        assert scene.record["status"]["reason"] == reason
        assert "as it is" in scene.record["status"]["message"]

    async def test_a_refused_request_fails_the_move(self) -> None:
        """The server's sentence is on record."""
        scene = Scene()
        scene.requester.answers = [WriteResult(WriteOutcome.REFUSED, "evictionrequests is forbidden")]
        async with scene.running(by_request()):
            await scene.run()

        assert scene.record["status"]["phase"] == "Failed"
        assert scene.record["status"]["message"] == "evictionrequests is forbidden"
        assert not any(scene.nominator.by_node.values())


class TestCallingOff:
    """A pod that shall stay after all is not asked for any longer."""

    async def test_a_deleted_policy(self) -> None:
        """Withdrawn, the record says why."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            await look(scene, STARTING_S)
            scene.rebalancers.configure([])
            await look(scene)

        assert the_request(scene).is_withdrawn
        assert (scene.record["status"]["phase"], scene.record["status"]["reason"]) == (
            "Cancelled",
            "PolicyChanged",
        )

    async def test_a_policy_that_goes_another_way(self) -> None:
        """Evictions again: nothing stays asked for."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            scene.rebalancers.adopt(a_policy())
            await look(scene)

        assert the_request(scene).is_withdrawn
        assert scene.record["status"]["phase"] == "Cancelled"

    async def test_the_stop_button(self) -> None:
        """Pressed: Blocked, by the button."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            press(scene)
            await look(scene)

        assert the_request(scene).is_withdrawn
        assert scene.record["status"]["phase"] == "Blocked"
        assert scene.record["status"]["blockedBy"] == STOP

    async def test_an_approval_that_is_taken_back(self) -> None:
        """The annotation goes: so does the request."""
        scene = Scene()
        async with scene.running(by_request("Approve")):
            await scene.run()
            name = scene.record["metadata"]["name"]
            scene.wing.approvals.annotated("default", name, {"plimsoll.dev/approved": "true"})
            await look(scene)
            was = the_request(scene).is_withdrawn
            scene.wing.approvals.annotated("default", name, {})
            await look(scene)

        assert not was
        assert the_request(scene).is_withdrawn
        assert (scene.record["status"]["phase"], scene.record["status"]["reason"]) == (
            "Cancelled",
            "Rejected",
        )

    async def test_an_annotation_that_forbids_the_eviction(self) -> None:
        """It comes while a responder is at work: the request is withdrawn, and the record says why."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            metadata = msgspec.structs.replace(OLD.metadata, annotations={EVICT: "false"})
            scene.tell(PodUpdated(OLD, msgspec.structs.replace(OLD, metadata=metadata)))
            await look(scene)

        assert the_request(scene).is_withdrawn
        assert (scene.record["status"]["phase"], scene.record["status"]["reason"]) == (
            "Cancelled",
            "NeverEvict",
        )

    async def test_a_deleted_record(self) -> None:
        """Nothing would say why: the request goes with it."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            scene.wing.take_records([ObjectDeleted(shown(scene.record))])
            await look(scene)

        assert the_request(scene).is_withdrawn

    async def test_a_withdrawn_request_is_deleted_later(self) -> None:
        """Responders get to know first."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            press(scene)
            await look(scene)
            await look(scene, SWEEP_S)
            kept = list(scene.requester.dropped)
            await look(scene, WITHDRAWN_S + SWEEP_S)

        assert kept == []
        assert len(scene.requester.dropped) == 1

    async def test_a_request_that_has_evicted_is_deleted_at_the_next_sweep(self) -> None:
        """It has come to its end."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            scene.gone(OLD)
            scene.requester.become(the_request(scene).key, is_evicted=True)
            await look(scene)
            await look(scene, SWEEP_S)

        assert len(scene.requester.dropped) == 1

    async def test_a_request_whose_pod_left_before_the_answer_is_deleted_too(self) -> None:
        """Nothing about the request or the pod changes any more when the move ends."""
        scene, answered = Scene(), asyncio.Event()
        plain = scene.requester.request

        async def late(pod: Pod, name: str) -> WriteResult:
            made = await plain(pod, name)
            await answered.wait()
            return made

        scene.requester.request = late  # type: ignore[method-assign] # replaced for this test
        async with scene.running(by_request()):
            running = asyncio.create_task(scene.run())
            await settled()
            scene.requester.become(the_request(scene).key, is_observed=True, is_evicted=True)
            scene.leaving(OLD)
            scene.gone(OLD)
            replaced(scene, "good")
            await look(scene)
            answered.set()
            await running
            ended = scene.record["status"]["phase"]
            await look(scene, 3 * SWEEP_S)

        assert ended == "Settled"
        assert scene.requester.requests == {}


class TestEvictionRequestProbe:
    """A server that cannot be asked."""

    async def test_without_the_api_nothing_is_evicted_and_the_policy_says_so(self) -> None:
        """Neither by request nor otherwise."""
        scene = Scene()
        scene.requester.offer = NOT_SERVED
        async with scene.running(by_request()):
            await scene.run()
            troubles = scene.rebalancers.troubles(POLICY)

        assert scene.evictor.evicted == []
        assert scene.records.documents == {}
        assert scene.requester.requests == {}
        assert "does not offer lifecycle.k8s.io/v1alpha1" in troubles[NOT_OFFERED]
        assert "no pod is evicted" in troubles[NOT_OFFERED]
        refused = scene.statuses.statuses[POLICY]["counts"]["refused"]
        assert [(each["reason"], each["count"]) for each in refused] == [("EvictionBudget", 1)]

    async def test_other_policies_know_nothing_of_it(self) -> None:
        """They evict as before, and the server is not probed."""
        scene = Scene()
        scene.requester.offer = NOT_SERVED
        async with scene.running(a_policy()):
            await scene.run()

        assert scene.evictor.evicted == ["web-1"]
        assert scene.rebalancers.troubles(POLICY) == {}

    async def test_predictions_go_on(self) -> None:
        """A dry run evicts nothing anyway."""
        scene = Scene()
        scene.requester.offer = NOT_SERVED
        async with scene.running(by_request("DryRun")):
            await scene.run()

        assert scene.phases == [["Predicted"]]

    async def test_an_upgraded_server_is_used_without_a_restart(self) -> None:
        """It is probed again; the condition changes."""
        scene = Scene()
        scene.requester.offer = NOT_SERVED
        async with scene.running(by_request()):
            await look(scene)
            scene.requester.offer = WriteResult(WriteOutcome.DONE)
            await look(scene, ASK_S + SOON_S)
            await scene.run()

        assert [list(each) for each in scene.troubled] == [[NOT_OFFERED], []]
        assert len(scene.requester.requests) == 1

    async def test_no_permission_is_reported_as_such(self) -> None:
        """What to apply is named."""
        scene = Scene()
        scene.requester.offer = WriteResult(WriteOutcome.REFUSED, "forbidden")
        async with scene.running(by_request()):
            await scene.run()
            troubles = scene.rebalancers.troubles(POLICY)

        assert "deploy/components/eviction-requests" in troubles[NOT_OFFERED]

    async def test_requests_that_are_not_taken_up_are_not_made_for_a_while(self) -> None:
        """As with Kubernetes 1.37.0: the API is there, its controller is not."""
        scene = Scene()
        async with scene.running(by_request()):
            await scene.run()
            await look(scene, TAKEN_UP_S + SOON_S)
            first = scene.record["status"]
            await scene.run()
            troubles = scene.rebalancers.troubles(POLICY)
            made = len(scene.requester.requests)
            await look(scene, UNATTENDED_S)
            rested = scene.rebalancers.troubles(POLICY)

        assert (first["phase"], first["reason"]) == ("Failed", "RequestNotTakenUp")
        assert "evictionrequest-controller" in troubles[UNATTENDED]
        assert made == 1
        assert rested == {}

    async def test_an_api_that_is_gone_ends_what_was_asked(self) -> None:
        """Switched off again: Cancelled, and nothing else is tried."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            scene.requester.offer = NOT_SERVED
            await look(scene)

        assert (scene.record["status"]["phase"], scene.record["status"]["reason"]) == (
            "Cancelled",
            NOT_OFFERED,
        )
        assert scene.evictor.evicted == []

    async def test_a_server_that_does_not_answer_ends_nothing(self) -> None:
        """What is not known is not judged; a pod that leaves is seen by the watch."""
        scene = Scene()
        async with scene.running(by_request()):
            await asked(scene)
            scene.requester.offer = WriteResult(WriteOutcome.UNKNOWN, "no answer")
            await look(scene, 7200)
            waiting = scene.record["status"]["phase"]
            scene.gone(OLD)
            await look(scene)

        assert waiting == "Evicting"
        assert scene.record["status"]["phase"] == "Evicted"


class TestRestart:
    """A process that ends at any point leaves nothing that the next one does not see to."""

    async def begun(self) -> Scene:
        """What a process leaves that has asked for a pod."""
        scene = Scene()
        scene.clock.time = datetime(2026, 5, 1, tzinfo=UTC).timestamp()  # after web-2 was made
        scene.records.created_at = "2026-05-01T00:00:00Z"
        async with scene.running(by_request()):
            await asked(scene)
        return scene

    def next_process(self, before: Scene, *, has_pod: bool = True, has_request: bool = True) -> Scene:
        """Another process, in the same cluster."""
        scene = Scene(*before.records.documents.values())
        scene.clock.time = before.clock.time + 5
        scene.requester.requests = dict(before.requester.requests) if has_request else {}
        if not has_pod:
            scene.gone(OLD)
        return scene

    async def test_a_request_under_way_is_waited_for(self) -> None:
        """The room is held again; the policy may come to be known later."""
        scene = self.next_process(await self.begun())
        async with scene.running():
            await look(scene)
            early = scene.record["status"]["phase"]
            scene.rebalancers.adopt(by_request())
            held = [pod.name for pod in scene.nominator.by_node["good"].values()]
            scene.gone(OLD)
            replaced(scene, "good")
            await look(scene, STARTING_S)

        assert early == "Evicting"
        assert held == ["web-1"]
        assert scene.record["status"]["phase"] == "Settled"

    async def test_a_policy_that_does_not_come_is_deleted(self) -> None:
        """After a while that is certain."""
        scene = self.next_process(await self.begun())
        async with scene.running():
            await look(scene, STARTING_S + SOON_S)

        assert the_request(scene).is_withdrawn
        assert scene.record["status"]["phase"] == "Cancelled"

    async def test_a_request_that_was_never_made_is_not_waited_for(self) -> None:
        """It ended between the record and the request."""
        scene = self.next_process(await self.begun(), has_request=False)
        async with scene.running(by_request()):
            await look(scene)

        assert scene.record["status"]["phase"] == "Cancelled"
        assert scene.requester.requests == {}

    async def test_a_pod_that_has_left_meanwhile_is_followed(self) -> None:
        """As after an eviction."""
        scene = self.next_process(await self.begun(), has_pod=False)
        async with scene.running(by_request()):
            replaced(scene, "good")
            await settled()
            await look(scene, SWEEP_S + SOON_S)

        assert scene.record["status"]["phase"] == "Settled"
        assert len(scene.requester.dropped) == 1

    async def test_a_request_without_a_record_is_withdrawn(self) -> None:
        """Its answer was lost, or the record was deleted meanwhile."""
        scene = self.next_process(await self.begun())
        scene.records.documents.clear()
        async with scene.running(by_request()):
            await look(scene)
            withdrawn = the_request(scene).is_withdrawn
            await look(scene, WITHDRAWN_S + 2 * SWEEP_S)

        assert withdrawn
        assert len(scene.requester.dropped) == 1
        assert scene.evictor.evicted == []
