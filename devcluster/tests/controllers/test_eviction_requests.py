"""EvictionRequests and Evictions: order of responders and results."""

import datetime as dt
from typing import Any

import pytest

from roadstead.eviction_requests import offer_eviction_requests
from roadstead.schemas.timestamps import to_timestamp
from roadstead.store.api import StatusError
from simulated_cluster import Simulation

REQUESTS, EVICTIONS = "evictionrequests.lifecycle.k8s.io", "evictions.lifecycle.k8s.io"
MIGRATOR = "acme.io/migrator"
IMPERATIVE = "imperative-eviction.k8s.io/evictor"


@pytest.fixture
def offering(simulation: Simulation) -> Any:
    """A cluster that serves the API, with one node."""
    simulation.with_controllers().with_kubelets()
    offer_eviction_requests(simulation.context)
    simulation.nodes("n1")
    return simulation


def ask(
    cluster: Any, pod: Any, name: str = "ours", requester: str = "example.com/rebalancing", **target: Any
) -> Any:
    """Ask for a pod's eviction."""
    named = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"], **target}
    return cluster.api.create(
        REQUESTS,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"target": {"pod": named}, "requester": requester, "intent": "Eviction"},
        },
    )


def eviction(cluster: Any) -> Any:
    """The only Eviction."""
    (found,) = cluster.api.list(EVICTIONS)
    return found


def conditions(cluster: Any, name: str = "ours") -> Any:
    """Status and reason of a request's conditions by type."""
    listed = cluster.get(REQUESTS, name)["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"]) for one in listed}


def turns(cluster: Any) -> Any:
    """The states of the responders, keyed by name."""
    return {one["name"]: one["state"] for one in eviction(cluster)["status"]["targetResponders"]}


def report(cluster: Any, **told: Any) -> None:
    """The migrator tells how it fares, as a client applies it."""
    found = eviction(cluster)
    responders = [
        {**one, **told} if one["name"] == MIGRATOR else one for one in found["status"]["responders"]
    ]
    status = {**found["status"], "responders": responders}
    cluster.api.update_status(EVICTIONS, {**found, "status": status})
    cluster.queue.run_due()


def now(cluster: Any) -> Any:
    """The time as objects have it."""
    return to_timestamp(cluster.now.timestamp())


class TestWithoutResponders:
    """A pod without responders is evicted by the last responder."""

    def test_the_pod_leaves_and_the_request_says_so(self, offering: Any) -> None:
        """It is evicted through the Eviction API; the conditions follow once it is gone."""
        pod = offering.pod("web", "n1")
        offering.settle(5)
        ask(offering, pod)
        offering.queue.run_due()
        assert turns(offering) == {IMPERATIVE: "Active"}
        assert "marked for deletion" in eviction(offering)["status"]["responders"][0]["message"]
        disrupted = next(
            one for one in offering.status("web")["conditions"] if one["type"] == "DisruptionTarget"
        )
        assert disrupted["reason"] == "EvictionByEvictionAPI"
        offering.settle(60)
        assert offering.get("pods", "web") is None
        assert turns(offering) == {IMPERATIVE: "Completed"}
        assert conditions(offering) == {
            "TargetEvicted": ("True", "PodDeleted"),
            "Failed": ("False", "Succeeded"),
        }

    def test_a_budget_is_honoured_and_asked_again(self, offering: Any) -> None:
        """While the budget allows nothing the pod stays; afterwards it goes."""
        pod = offering.pod("web", "n1")
        offering.create("PodDisruptionBudget", "all", minAvailable=1, selector={"matchLabels": {}})
        offering.settle(5)
        ask(offering, pod)
        offering.settle(60)
        message = eviction(offering)["status"]["responders"][0]["message"]
        assert "attempts=4" in message
        assert "disruption budget" in message
        assert offering.get("pods", "web") is not None
        offering.change("PodDisruptionBudget", "all", {"spec": {"minAvailable": 0}})
        offering.settle(120)
        assert offering.get("pods", "web") is None


class TestWithResponder:
    """A pod that names a responder waits for it."""

    @pytest.fixture
    def asked(self, offering: Any) -> Any:
        """A request for a pod whose migrator is active."""
        pod = offering.pod("vm", "n1", evictionResponders=[{"name": MIGRATOR, "priority": 10000}])
        offering.settle(5)
        ask(offering, pod)
        offering.queue.run_due()
        assert turns(offering) == {MIGRATOR: "Active", IMPERATIVE: "Inactive"}
        assert eviction(offering)["metadata"]["labels"] == {
            "example.com/rebalancing": "requester",
            MIGRATOR: "responder",
            IMPERATIVE: "responder",
        }
        return offering

    def test_no_other_responder_acts_while_it_reports(self, asked: Any) -> None:
        """Heartbeats keep the turn for an hour."""
        for _ in range(6):
            report(asked, heartbeatTime=now(asked), message="copying")
            asked.settle(600)
        assert turns(asked)[MIGRATOR] == "Active"
        assert asked.get("pods", "vm") is not None

    def test_when_it_is_silent_the_next_one_acts(self, asked: Any) -> None:
        """After twenty minutes without a word the pod is evicted."""
        asked.settle(1190)
        assert asked.get("pods", "vm") is not None
        asked.settle(60)
        assert turns(asked) == {MIGRATOR: "Interrupted", IMPERATIVE: "Completed"}
        assert asked.get("pods", "vm") is None

    def test_when_it_completes_with_the_pod_there_the_next_one_acts(self, asked: Any) -> None:
        """A responder may do a part only."""
        report(asked, completionTime=now(asked))
        asked.settle(60)
        assert turns(asked) == {MIGRATOR: "Completed", IMPERATIVE: "Completed"}
        assert asked.get("pods", "vm") is None

    def test_withdrawn_by_all_it_is_cancelled(self, asked: Any) -> None:
        """The responder is asked to stop, and the request has the reason."""
        asked.api.patch(REQUESTS, "default", "ours", {"spec": {"intent": "Withdrawn"}})
        asked.settle(5)
        assert turns(asked)[MIGRATOR] == "Canceled"
        assert conditions(asked)["Failed"] == ("True", "CanceledDueToNoRequesters")
        assert asked.get("pods", "vm") is not None

    def test_wanted_by_another_it_goes_on(self, asked: Any) -> None:
        """One Eviction for both; it ends when both have withdrawn, by word or by deletion."""
        ask(asked, asked.get("pods", "vm"), "theirs", "drain.example.com/node")
        asked.settle(1)
        asked.api.patch(REQUESTS, "default", "ours", {"spec": {"intent": "Withdrawn"}})
        asked.settle(1)
        assert turns(asked)[MIGRATOR] == "Active"
        assert eviction(asked)["status"]["requesters"] == [
            {"name": "drain.example.com/node", "intent": "Eviction"},
            {"name": "example.com/rebalancing", "intent": "Withdrawn"},
        ]
        asked.api.delete(REQUESTS, "default", "theirs")
        asked.settle(1)
        assert conditions(asked)["Failed"] == ("True", "CanceledDueToNoRequesters")

    def test_when_all_requests_are_gone_the_eviction_is_collected(self, asked: Any) -> None:
        """Owned by its requests."""
        asked.api.delete(REQUESTS, "default", "ours")
        asked.settle(5)
        assert asked.api.list(EVICTIONS) == []

    def test_it_cannot_backdate_a_heartbeat(self, asked: Any) -> None:
        """Times must be those of now."""
        long_ago = to_timestamp((asked.now - dt.timedelta(minutes=5)).timestamp())
        with pytest.raises(StatusError, match="must occur after startTime"):
            report(asked, heartbeatTime=long_ago)

    def test_it_cannot_take_its_turn_back(self, asked: Any) -> None:
        """What was passed on is passed on."""
        report(asked, completionTime=now(asked))
        with pytest.raises(StatusError, match="field is immutable"):
            report(asked, message="again")


class TestRefused:
    """Requests that are not taken up."""

    def test_a_pod_of_another_uid(self, offering: Any) -> None:
        """A later pod of the name is another one."""
        pod = offering.pod("web", "n1")
        ask(offering, pod, uid="11111111-2222-3333-4444-555555555555")
        offering.settle(1)
        assert conditions(offering)["Failed"] == ("True", "EvictionInvalid")
        assert offering.api.list(EVICTIONS) == []

    def test_no_pod(self, offering: Any) -> None:
        """Nothing to evict."""
        pod = offering.pod("web")
        offering.api.delete("pods", "default", "web", grace_seconds=0)
        ask(offering, pod)
        offering.settle(1)
        assert conditions(offering)["Failed"] == ("True", "EvictionInvalid")

    @pytest.mark.parametrize(
        ("spec", "told"),
        [
            ({"requester": "rebalancing"}, "domain-prefixed"),
            ({"requester": "descheduler.k8s.io/it"}, "reserved"),
            ({"intent": "Maybe"}, 'supported values: "Eviction", "Withdrawn"'),
            ({"target": {}}, "must specify one of"),
            ({"target": {"pod": {"name": "web", "uid": "short"}}}, "lowercase UUID"),
        ],
    )
    def test_causes_of_rejections(self, offering: Any, spec: Any, told: Any) -> None:
        """At creation."""
        good = {
            "target": {"pod": {"name": "web", "uid": "11111111-2222-3333-4444-555555555555"}},
            "requester": "example.com/rebalancing",
            "intent": "Eviction",
        }
        with pytest.raises(StatusError, match=told):
            offering.api.create(
                REQUESTS, {"metadata": {"name": "r", "namespace": "default"}, "spec": {**good, **spec}}
            )

    def test_the_target_stays(self, offering: Any) -> None:
        """Only the intent may change."""
        ask(offering, offering.pod("web", "n1"))
        with pytest.raises(StatusError, match="field is immutable"):
            offering.api.patch(REQUESTS, "default", "ours", {"spec": {"requester": "acme.io/other"}})


def test_off_by_default_pods_have_no_responders(simulation: Simulation) -> None:
    """Without the gate there is neither the API nor the field."""
    with pytest.raises(StatusError, match="could not find the requested resource"):
        simulation.api.list(REQUESTS)
    pod = simulation.pod("vm", evictionResponders=[{"name": MIGRATOR, "priority": 10000}])
    assert "evictionResponders" in pod["spec"]  # taken as it comes in this process; a client's is dropped
    kind, resource = simulation.api.kinds["pods"], simulation.api.resource("pods")
    taken, strays = kind.decode({"spec": {"containers": [], "evictionResponders": []}}, resource)
    assert strays == ["spec.evictionResponders"]
    assert "evictionResponders" not in taken["spec"]
