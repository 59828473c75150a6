"""TokenReviews and SubjectAccessReviews of those who call the operator."""

from kube.scripted_server import ToldServer
from plimsoll.kube.access_reviews import Caller, CallerReviews
from plimsoll.kube.session.session import Session

SPEC = {"token": "secret"}
JANE = {"username": "jane", "uid": "1", "groups": ["devs"]}


async def test_a_token_is_reviewed(told: tuple[ToldServer, Session]) -> None:
    """Its user, or None where it is not accepted."""
    server, session = told
    server.then({"spec": SPEC, "status": {"authenticated": True, "user": JANE}}, 201)
    server.then({"spec": SPEC, "status": {"error": "expired"}}, 201)
    server.then({"spec": SPEC, "status": {"authenticated": True, "user": {}}}, 201)
    reviews = CallerReviews(session)

    assert await reviews.caller("secret") == Caller("jane", "1", ("devs",))
    assert await reviews.caller("old") is None
    assert await reviews.caller("bare") == Caller("")
    assert server.requests[0][2]["spec"] == {"token": "secret"}
    assert server.requests[0][:2] == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")


async def test_a_token_must_be_meant_for_the_audience(told: tuple[ToldServer, Session]) -> None:
    """A server that does not name it has reviewed the token for itself."""
    server, session = told
    status = {"authenticated": True, "user": JANE}
    server.then({"spec": SPEC, "status": {**status, "audiences": ["plimsoll.dev"]}}, 201)
    server.then({"spec": SPEC, "status": status}, 201)
    server.then({"spec": SPEC, "status": {**status, "audiences": ["api"]}}, 201)
    reviews = CallerReviews(session)

    assert await reviews.caller("secret", "plimsoll.dev") == Caller("jane", "1", ("devs",))
    assert await reviews.caller("secret", "plimsoll.dev") is None
    assert await reviews.caller("secret", "plimsoll.dev") is None
    assert server.requests[0][2]["spec"] == {"token": "secret", "audiences": ["plimsoll.dev"]}


async def test_the_right_to_a_path_is_reviewed(told: tuple[ToldServer, Session]) -> None:
    """For the user with all groups."""
    server, session = told
    server.then({"spec": {}, "status": {"allowed": True}}, 201)
    server.then({"spec": {}, "status": {"allowed": False}}, 201)
    reviews = CallerReviews(session)

    assert await reviews.may_get(Caller("jane", "1", ("devs",)), "/explain/pods")
    assert not await reviews.may_get(Caller("joe"), "/explain/pods")
    assert server.requests[0][2]["spec"] == {
        "user": "jane",
        "uid": "1",
        "groups": ["devs"],
        "nonResourceAttributes": {"path": "/explain/pods", "verb": "get"},
    }
