"""Requests map to rights, and requests without rights are not sent."""

from typing import Any

import pytest

from kube.scripted_server import ToldServer
from plimsoll.access.rights import BIND, EVICT, LOOK_AT_DEPLOYMENTS, RECORD, STATUS, Access, Right
from plimsoll.kube.access_reviews import AccessReviews, permissions, right_of
from plimsoll.kube.session.errors import Unauthorized
from plimsoll.kube.session.session import Session
from plimsoll.testing.fakes import FakeAccessReviewer, FakeClock, RememberingObserver


@pytest.mark.parametrize(
    ("method", "path", "right", "namespace"),
    [
        ("POST", "/api/v1/namespaces/a/pods/b/binding", BIND, "a"),
        ("POST", "/api/v1/namespaces/a/pods/b/eviction", EVICT, "a"),
        ("POST", "/apis/plimsoll.dev/v1alpha1/namespaces/a/evictions", RECORD[0], "a"),
        ("PATCH", "/apis/plimsoll.dev/v1alpha1/namespaces/a/evictions/b/status", RECORD[1], "a"),
        ("PATCH", "/apis/plimsoll.dev/v1alpha1/schedulingpolicies/b/status", STATUS, ""),
        ("GET", "/apis/apps/v1/namespaces/a/deployments/b", LOOK_AT_DEPLOYMENTS[0], "a"),
        ("GET", "/apis/apps/v1/deployments", LOOK_AT_DEPLOYMENTS[1], ""),
        ("DELETE", "/api/v1/namespaces/a/pods/b", Right("delete", "", "pods"), "a"),
        ("GET", "/api/v1/namespaces/a", Right("get", "", "namespaces"), ""),
        ("PUT", "/apis/x.io/v1/namespaces/a/leases/b", Right("update", "x.io", "leases"), "a"),
        ("GET", "/apis/x.io/v1/things?limit=1", Right("list", "x.io", "things"), ""),
        ("GET", "/api", Right("list", "", ""), ""),
    ],
)
def test_the_right_of_a_request(method: str, path: str, right: Right, namespace: str) -> None:
    """Verb, group, resource with its subresource, and the namespace."""
    assert right_of(method, path) == (right, namespace)


async def test_a_review_asks_about_the_token_in_use(told: tuple[ToldServer, Session]) -> None:
    """In all namespaces, or in one."""
    server, session = told
    server.then({"spec": {}, "status": {"allowed": True}}, 201)
    server.then({"spec": {}, "status": {"allowed": False, "reason": "RBAC"}}, 201)
    reviews = AccessReviews(session)

    assert await reviews.review(BIND, "") is True
    assert await reviews.review(RECORD[1], "a") is False
    bodies = [body for _, _, body, _ in server.requests]
    assert [each["spec"]["resourceAttributes"] for each in bodies] == [
        {"verb": "create", "group": "", "resource": "pods", "subresource": "binding"},
        {
            "verb": "patch",
            "group": "plimsoll.dev",
            "resource": "evictions",
            "subresource": "status",
            "namespace": "a",
        },
    ]


@pytest.mark.parametrize(
    ("answer", "status"), [({}, 201), ({"spec": {}}, 201), ({"message": "later"}, 500), ({}, 403)]
)
async def test_an_answer_that_says_nothing(
    told: tuple[ToldServer, Session], answer: dict[str, Any], status: int
) -> None:
    """Neither allowed nor denied."""
    server, session = told
    server.then(answer, status)

    assert await AccessReviews(session).review(BIND, "") is None


async def test_what_is_denied_is_not_sent(told: tuple[ToldServer, Session]) -> None:
    """The error says who grants it; other requests pass."""
    server, session = told
    access = Access(FakeAccessReviewer(EVICT), FakeClock(), RememberingObserver())
    careful = session.permitted(permissions(access))
    await access.review()
    server.then()

    with pytest.raises(
        Unauthorized, match="not sent: the operator may not create pods/eviction; apply deploy/"
    ):
        await careful.request("POST", "/api/v1/namespaces/a/pods/b/eviction", {})
    await careful.request("POST", "/api/v1/namespaces/a/pods/b/binding", {})
    assert [path for _, path, _, _ in server.requests] == ["/api/v1/namespaces/a/pods/b/binding"]
