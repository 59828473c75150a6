"""Requests to the Eviction API, and the meaning of its responses."""

from typing import Any

import pytest

from kube.scripted_server import ToldServer
from plimsoll.kube.pods import PodEvictor
from plimsoll.kube.session.session import Session
from plimsoll.ports.writes import WriteOutcome
from plimsoll.testing.builders import a_pod


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


async def test_this_very_pod_is_evicted(told: tuple[ToldServer, Session]) -> None:
    """The uid is a precondition: a later pod of the same name is spared."""
    server, session = told
    server.then({}, 201)

    answer = await PodEvictor(session).evict(a_pod("web-1", uid="u1"))

    assert answer.is_done
    method, path, body, _ = server.requests[0]
    assert (method, path) == ("POST", "/api/v1/namespaces/default/pods/web-1/eviction")
    assert body["deleteOptions"] == {"preconditions": {"uid": "u1"}}


async def test_a_budget_is_named(told: tuple[ToldServer, Session]) -> None:
    """429 with the cause of a budget: Blocked, by that one."""
    server, session = told
    server.then(BUDGET, 429)

    answer = await PodEvictor(session).evict(a_pod())

    assert answer.verdict is WriteOutcome.BLOCKED
    assert answer.budget == "default/web"
    assert "needs 3 healthy pods" in answer.message


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
    server.then(refusal(code, "the sentence", retryAfterSeconds=3), code)

    answer = await PodEvictor(session).evict(a_pod())

    assert answer.verdict is verdict
    assert answer.message == "the sentence"
    assert answer.retry_after_s == 3


def listed(**meta: Any) -> dict[str, Any]:
    """A list of one pod."""
    return {"items": [{"metadata": {"name": "web-1", "namespace": "default", **meta}}]}


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
    server.then(refusal(409, "the sentence"), 409)
    server.then(found, code)

    answer = await PodEvictor(session).evict(a_pod("web-1", uid="u1"))

    assert answer.verdict is verdict
    assert answer.message == "the sentence"
