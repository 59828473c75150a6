"""Requests to the Eviction API, and the meaning of its responses."""

from typing import Any

import msgspec
import pytest

from kube.scripted_server import ToldServer
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome
from plimsoll.testing.builders import a_pod
from plimsoll.toolkit.descheduling.disruption_signals import EVICTION_IN_PROGRESS, REQUEST_EVICT_ONLY
from plimsoll.writers.pods import PodEvictor


def refusal(code: int, message: str = "no", **details: Any) -> dict[str, Any]:
    """A Status as the API server sends it."""
    return {"kind": "Status", "code": code, "message": message, "details": details}


BUDGET = refusal(
    429,
    "Cannot evict pod as it would violate the pod's disruption budget.",
    causes=[
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget web needs 3 healthy pods and has 3 currently",
        }
    ],
)


#: The pod of these tests, as the watch has shown it.
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
MADE = {"labels": {"app": "web"}, "annotations": {"a": "b"}, "ownerReferences": [OWNER]}
POD = a_pod("web-1", uid="u1", metadata={"resourceVersion": "7", **MADE})


def listed(**meta: Any) -> dict[str, Any]:
    """A list of one pod."""
    return {"items": [{"metadata": {"name": "web-1", "namespace": "default", **MADE, **meta}}]}


async def test_this_very_pod_is_read_and_evicted(told: tuple[ToldServer, Session]) -> None:
    """The uid is a precondition: a later pod of the same name is spared; another status is no other pod."""
    server, session = told
    server.then(listed(uid="u1", resourceVersion="8", finalizers=["a/b"], managedFields=[{}]))
    server.then({}, 201)

    answer = await PodEvictor(session).evict(POD)

    assert answer.is_done
    assert [each[:2] for each in server.requests] == [
        ("GET", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dweb-1"),
        ("POST", "/api/v1/namespaces/default/pods/web-1/eviction"),
    ]
    assert server.requests[1][2]["deleteOptions"] == {"preconditions": {"uid": "u1"}}


@pytest.mark.parametrize(
    ("code", "found", "verdict", "message"),
    [
        pytest.param(200, listed(uid="u1", ownerReferences=None), "conflict", "other owners", id="bare"),
        pytest.param(200, listed(uid="u1", labels={}), "conflict", "other labels than", id="labels"),
        pytest.param(
            200,
            listed(uid="u1", labels={"app": "b"}, annotations={"plimsoll.dev/evict": "false"}),
            "conflict",
            "other labels and annotations than the watch has shown",
            id="annotated",
        ),
        pytest.param(200, listed(uid="u2"), "gone", "not found", id="another-uid"),
        pytest.param(200, {"items": []}, "gone", "not found", id="gone"),
        pytest.param(
            200, listed(uid="u1", deletionTimestamp="2026-01-01T00:00:00Z"), "gone", "to leave", id="it-goes"
        ),
        pytest.param(503, refusal(503, "away"), "busy", "could not be read before", id="not-known"),
        pytest.param(200, listed(uid="u1", labels=7), "busy", "could not be read before", id="odd"),
        pytest.param(200, b"<html>", "busy", "could not be read before", id="a-login-page"),
        pytest.param(429, refusal(429, "later"), "busy", "later", id="busy"),
        pytest.param(403, refusal(403, "no right"), "refused", "no right", id="not-allowed"),
    ],
)
async def test_a_pod_that_has_changed_or_is_not_known_to_stand_is_not_evicted(
    told: tuple[ToldServer, Session], code: int, found: Any, verdict: str, message: str
) -> None:
    """A watch may be behind; who judged another pod sends nothing."""
    server, session = told
    server.then(found, code)

    answer = await PodEvictor(session).evict(POD)

    assert answer.verdict == verdict
    assert message in answer.message
    assert [each[0] for each in server.requests] == ["GET"]


async def test_a_budget_is_named(told: tuple[ToldServer, Session]) -> None:
    """429 with the cause of a budget: Blocked, by that one."""
    server, session = told
    server.then(listed(uid="u1"))
    server.then(BUDGET, 429)

    answer = await PodEvictor(session).evict(POD)

    assert answer.verdict is WriteOutcome.BLOCKED
    assert answer.budget == "default/web"
    assert "needs 3 healthy pods" in answer.message


DENIAL = (
    'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request:'
    ' Eviction triggered evacuation of VMI "default/vm"'
)


@pytest.mark.parametrize(
    ("annotations", "message", "verdict"),
    [
        pytest.param({}, DENIAL, WriteOutcome.DEFERRED, id="migration"),
        pytest.param(
            {}, 'admission webhook "x" denied the request: later', WriteOutcome.DEFERRED, id="webhook"
        ),
        pytest.param({REQUEST_EVICT_ONLY: ""}, "later", WriteOutcome.DEFERRED, id="announced"),
        pytest.param({}, "Too many requests, please try again later.", WriteOutcome.BUSY, id="flow-control"),
    ],
)
async def test_a_429_of_a_webhook_is_the_beginning_of_an_eviction(
    told: tuple[ToldServer, Session], annotations: dict[str, str], message: str, verdict: WriteOutcome
) -> None:
    """Not that of the server itself, which is busy and asks for another try."""
    server, session = told
    pod = msgspec.structs.replace(
        POD, metadata=msgspec.structs.replace(POD.metadata, annotations=annotations)
    )
    server.then(listed(uid="u1", annotations=annotations))
    server.then(refusal(429, message), 429)

    answer = await PodEvictor(session).evict(pod)

    assert answer.verdict is verdict
    assert answer.message == message
    assert (answer.retry_after_s == 5.0) is (verdict is WriteOutcome.BUSY), "the next try leaves it some time"


@pytest.mark.parametrize("others", [{}, {"example.com/other": "new"}])
async def test_a_pod_whose_eviction_is_in_progress_gets_no_second_request(
    told: tuple[ToldServer, Session], others: dict[str, str]
) -> None:
    """Whatever else has changed: the owner is at work."""
    server, session = told
    server.then(listed(uid="u1", annotations={EVICTION_IN_PROGRESS: "kubevirt", **others}))

    answer = await PodEvictor(session).evict(POD)

    assert answer.verdict is WriteOutcome.DEFERRED
    assert "kubevirt carries out" in answer.message
    assert [each[0] for each in server.requests] == ["GET"]


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        pytest.param(429, WriteOutcome.BUSY, id="flow-control"),
        pytest.param(404, WriteOutcome.GONE, id="gone"),
        pytest.param(403, WriteOutcome.REFUSED, id="not-allowed"),
        pytest.param(503, WriteOutcome.UNKNOWN, id="unavailable"),
    ],
)
async def test_other_answers_are_distinguished(
    told: tuple[ToldServer, Session], code: int, verdict: WriteOutcome
) -> None:
    """Whether to wait, to give up, or to ask again."""
    server, session = told
    server.then(listed(uid="u1"))
    server.then(refusal(code, "the sentence", retryAfterSeconds=3), code)

    answer = await PodEvictor(session).evict(POD)

    assert answer.verdict is verdict
    assert answer.message == "the sentence"
    assert answer.retry_after_s == 3


@pytest.mark.parametrize(
    ("code", "found", "verdict"),
    [
        pytest.param(200, listed(uid="u1"), WriteOutcome.BUSY, id="it-stands"),
        pytest.param(
            200, listed(uid="u1", deletionTimestamp="2026-01-01T00:00:00Z"), WriteOutcome.GONE, id="it-goes"
        ),
        pytest.param(200, listed(uid="u2"), WriteOutcome.GONE, id="another-uid"),
        pytest.param(200, {"items": []}, WriteOutcome.GONE, id="gone"),
        pytest.param(503, refusal(503), WriteOutcome.BUSY, id="not-known"),
    ],
)
async def test_after_a_conflict_the_pod_is_read(
    told: tuple[ToldServer, Session], code: int, found: dict[str, Any], verdict: WriteOutcome
) -> None:
    """The API server answers 409 for another uid, and also when the pod or its budget was just written."""
    server, session = told
    server.then(listed(uid="u1"))
    server.then(refusal(409, "the sentence"), 409)
    server.then(found, code)

    answer = await PodEvictor(session).evict(POD)

    assert answer.verdict is verdict
    assert answer.message == "the sentence"
