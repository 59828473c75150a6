"""Typed APIs behave as the session does: credentials, fence, permissions, deadlines, errors."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubernetes_asyncio import client

from kube.scripted_server import ToldServer, told_server
from plimsoll.kube.session.errors import Conflict, Fenced, Unauthorized, Unavailable
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.typed_client import TypedClient, content_of


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[tuple[ToldServer, Session]]:
    """The server and a session to it."""
    async with told_server(tmp_path) as both:
        yield both


class ClosedFence:
    """This process does not lead."""

    def seconds_left(self) -> float:
        """None."""
        return 0.0

    def begin(self) -> None:
        """Never called."""

    def end(self, *, answered: bool) -> None:
        """Never called."""


def leases(session: Session) -> client.CoordinationV1Api:
    """A typed API over a session."""
    return client.CoordinationV1Api(TypedClient(session))


async def test_a_request_has_the_sessions_credentials(told: tuple[ToldServer, Session]) -> None:
    """And its path and query are the API's."""
    server, session = told
    server.then({"metadata": {"name": "one"}})

    found = await leases(session).read_namespaced_lease("one", "a", pretty="true")

    assert found.metadata.name == "one"
    _, path, _, request = server.requests[0]
    assert path == "/apis/coordination.k8s.io/v1/namespaces/a/leases/one?pretty=true"
    assert request.headers["Authorization"] == await session.credentials.authorization()


async def test_a_refusal_is_an_error_of_ours(told: tuple[ToldServer, Session]) -> None:
    """With the server's sentence."""
    server, session = told
    server.then({"kind": "Status", "reason": "Conflict", "message": "modified"}, 409)

    with pytest.raises(Conflict, match="modified"):
        await leases(session).create_namespaced_lease("a", client.V1Lease())


@pytest.mark.parametrize("body", [b"<html>", b"", {"spec": {"renewTime": "soon"}}])
async def test_an_answer_that_is_no_such_object_is_no_answer(
    told: tuple[ToldServer, Session], body: object
) -> None:
    """A proxy may have written it; the caller tries again."""
    server, session = told
    server.then(body)

    with pytest.raises(Unavailable, match=r"GET /apis/coordination.*cannot be read"):
        await leases(session).read_namespaced_lease("one", "a")


async def test_a_request_ends_at_its_deadline(told: tuple[ToldServer, Session]) -> None:
    """Whatever the server does."""
    _, session = told
    began = time.monotonic()

    with pytest.raises(Unavailable):
        await leases(session).read_namespaced_lease("one", "a", _request_timeout=0.05)
    assert time.monotonic() - began < 60


async def test_writes_pass_the_fence_and_the_permissions(told: tuple[ToldServer, Session]) -> None:
    """Nothing is sent past them."""
    server, session = told

    with pytest.raises(Fenced):
        await leases(session.fenced(ClosedFence())).create_namespaced_lease("a", client.V1Lease())
    with pytest.raises(Unauthorized, match="not sent: no"):
        await leases(session.permitted(lambda *_: "not sent: no")).read_namespaced_lease("one", "a")
    assert server.requests == []


async def test_bytes_are_handed_over_unread(told: tuple[ToldServer, Session]) -> None:
    """For what the models would make dear, or lose."""
    server, session = told
    server.then(b'{"any":  1}')

    call = client.CoreV1Api(TypedClient(session)).read_node("n", _preload_content=False)

    assert await content_of(call) == b'{"any":  1}'
