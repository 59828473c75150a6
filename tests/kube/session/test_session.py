"""One request: identity, responses, and missing responses."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from kube.scripted_server import ToldServer, told_server
from plimsoll.kube.session.errors import APIError, Conflict, Gone, NotFound, TooManyRequests, Unconfigured
from plimsoll.kube.session.session import Session, connected
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome


async def test_every_request_shows_the_token(told: tuple[ToldServer, Session]) -> None:
    """Credentials of the kubeconfig go with each request."""
    server, session = told
    server.then({"kind": "PodList"})

    answer = await session.object("GET", "/api/v1/pods", params={"limit": "1"})

    assert answer == {"kind": "PodList"}
    method, path, _, request = server.requests[0]
    assert (method, path) == ("GET", "/api/v1/pods?limit=1")
    assert request.headers["Authorization"] == "Bearer a-token"


async def test_requests_start_no_threads(told: tuple[ToldServer, Session]) -> None:
    """Looking for proxies and .netrc in a thread, twice a request, was half of the operator's CPU."""
    server, session = told
    before = threading.active_count()
    for _ in range(5):
        server.then()

    for _ in range(5):
        await session.request("GET", "/api")

    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        pytest.param(404, NotFound, id="not-found"),
        pytest.param(409, Conflict, id="conflict"),
        pytest.param(410, Gone, id="gone"),
        pytest.param(429, TooManyRequests, id="too-many"),
        pytest.param(500, APIError, id="broken"),
    ],
)
async def test_a_refusal_is_an_error_of_its_kind(
    told: tuple[ToldServer, Session], status: int, kind: Any
) -> None:
    """The server's own sentence is kept."""
    server, session = told
    server.then({"kind": "Status", "code": status, "reason": "Because", "message": "the sentence"}, status)

    with pytest.raises(kind, match="the sentence"):
        await session.request("GET", "/api/v1/pods")


async def test_an_answer_that_is_no_status_is_quoted(told: tuple[ToldServer, Session]) -> None:
    """Proxies in between answer in HTML."""
    server, session = told
    server.then(b"<html>bad gateway</html>", 502)

    with pytest.raises(APIError, match="bad gateway"):
        await session.request("GET", "/api/v1/pods")


async def test_no_answer_is_an_error_too(told: tuple[ToldServer, Session]) -> None:
    """A server that hangs is given up in time."""
    _, session = told

    with pytest.raises(APIError, match="TimeoutError"):
        await session.request("GET", "/api/v1/pods", timeout_s=0.05)


async def test_a_watch_without_a_head_is_no_answer(
    told: tuple[ToldServer, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not waited for as long as a watch may be silent."""
    _, session = told
    monkeypatch.setattr("plimsoll.kube.session.http_transport.HEAD_S", 0.05)

    with pytest.raises(APIError, match="TimeoutError"):
        async with session.stream("/api/v1/pods", {"watch": "true"}, 3600.0):
            pass


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("clusters: 3", id="nonsense"),
        pytest.param("{}", id="no-context"),
        pytest.param("a: [", id="no-yaml"),
        pytest.param("not a kubeconfig", id="a-sentence"),
        pytest.param("- 1", id="a-list"),
    ],
)
async def test_an_unusable_kubeconfig_is_one_sentence(tmp_path: Path, content: str) -> None:
    """Named, with what is wrong; no traceback of the library."""
    path = tmp_path / "kubeconfig"
    await asyncio.to_thread(path.write_text, content)

    with pytest.raises(Unconfigured, match=r"^reading .*kubeconfig: [^\n]+$") as refused:
        async with connected(path):
            pass
    assert "object" not in refused.value.message


@pytest.mark.parametrize(("own_client", "agent"), [(True, "plimsoll/"), (False, "Python/")])
async def test_the_client_of_writes_can_be_chosen(tmp_path: Path, own_client: bool, agent: str) -> None:
    """Ours, or aiohttp's; both take writes that are to be sent together."""
    async with (
        told_server(tmp_path) as (server, _),
        connected(tmp_path / "kubeconfig", own_client=own_client) as session,
    ):
        server.then({}, 201)
        server.then({}, 201)

        results = await session.write_all(
            "POST", [("/api/v1/things", b'{"n":1}'), ("/api/v1/others", b'{"n":2}')]
        )

        assert [each.is_done for each in results] == [True, True]
        assert [body["n"] for _, _, body, _ in server.requests] == [1, 2]
        assert all(request.headers["User-Agent"].startswith(agent) for *_, request in server.requests)


@pytest.mark.parametrize("own_client", [True, False])
@pytest.mark.parametrize(
    ("status", "page"),
    [
        pytest.param(200, b"<html>Log in</html>", id="a-login-page"),
        pytest.param(302, b"", id="a-redirect-to-one"),
        pytest.param(307, b"", id="another-redirect"),
    ],
)
async def test_a_write_that_a_proxy_answers_is_not_done(
    tmp_path: Path, own_client: bool, status: int, page: bytes
) -> None:
    """The API server has not seen it; alone, and among several that are sent together."""
    headers = {"Location": "/login"} if status != 200 else {}
    async with (
        told_server(tmp_path) as (server, _),
        connected(tmp_path / "kubeconfig", own_client=own_client) as session,
    ):
        for answer in [(page, status, headers), ({}, 201, None), (page, status, headers), ({}, 201, None)]:
            server.then(*answer)

        result = await session.write("POST", "/api/v1/things", {})
        await session.write("POST", "/api/v1/things", {})
        together = await session.write_all("POST", [("/api/v1/things", b"{}")] * 2)

        assert [each.verdict for each in (result, *together)] == [
            WriteOutcome.UNKNOWN,
            WriteOutcome.UNKNOWN,
            WriteOutcome.DONE,
        ]
        assert {(method, path) for method, path, *_ in server.requests} == {("POST", "/api/v1/things")}


async def test_a_list_that_a_proxy_answers_is_an_error(told: tuple[ToldServer, Session]) -> None:
    """And not an empty one."""
    server, session = told
    server.then(b" <html>Log in</html>")

    with pytest.raises(APIError, match="no JSON object: <html>"):
        await session.request("GET", "/api/v1/pods")


class Watched:
    """A transport whose watch fails before its head, in its body, or not at all."""

    address, configuration, pipelines = "https://a", None, False

    def __init__(self, fails: str) -> None:
        self.fails = fails

    @asynccontextmanager
    async def watch(self, *_: Any) -> AsyncIterator[Any]:
        if self.fails == "head":
            raise OSError("reset")
        yield 200, self.body()

    async def body(self) -> AsyncIterator[bytes]:
        yield b"{}\n"
        if self.fails == "body":
            raise OSError("reset")


@pytest.mark.parametrize(("fails", "status"), [("head", 0), ("body", 200), ("", 200)])
async def test_each_watch_is_reported_once(fails: str, status: int) -> None:
    """When its head arrived or could not; not again when it breaks later."""
    reported: list[tuple[str, int]] = []

    class Told(Observer):
        def request_answered(self, method: str, status: int, seconds: float) -> None:
            reported.append((method, status))

    session = Session(cast("Any", Watched(fails)), cast("Any", Anonymous())).observed(Told())

    async def watched() -> None:
        async with session.stream("/api/v1/pods", {}, 1.0) as lines:
            async for _ in lines:
                pass

    if fails:
        with pytest.raises(APIError, match="reset"):
            await watched()
    else:
        await watched()

    assert reported == [("WATCH", status)]


class Anonymous:
    """No credentials."""

    async def authorization(self) -> str:
        return ""
