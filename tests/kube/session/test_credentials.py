"""Credentials that expire: a server that refuses the old token, and a client that sends the new one."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.web_response import StreamResponse
from kubernetes_asyncio import client
from kubernetes_asyncio.config import incluster_config

from plimsoll.kube.session.credentials import PAUSE_S, REREAD_S, Credentials, Loaded, check
from plimsoll.kube.session.errors import Unauthorized
from plimsoll.kube.session.session import Session, connected

PODS = "/api/v1/pods"


class Guard:
    """A server that takes one token at a time, and notes what it was shown."""

    def __init__(self) -> None:
        self.token = "first"
        self.shown: list[Any] = []
        self.url = ""

    async def answer(self, request: Any) -> StreamResponse:
        """Whether the token is the present one."""
        await request.read()
        self.shown.append(request.headers.get("Authorization", ""))
        if self.shown[-1] != f"Bearer {self.token}":
            return web.json_response({"code": 401, "message": "Unauthorized"}, status=401)
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"type": "BOOKMARK"}\n')
            return response
        return web.json_response({"items": []})


@pytest.fixture
async def guard() -> AsyncIterator[Any]:
    """A guard that listens."""
    one = Guard()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", one.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    one.url = "http://{}:{}".format(*runner.addresses[0][:2])
    yield one
    await runner.cleanup()


def kubeconfig(path: Path, url: str, **user: Any) -> Path:
    """Write a kubeconfig of one user."""
    content = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return path


@asynccontextmanager
async def later(session: Session) -> AsyncIterator[Any]:
    """A session whose first credentials were read some time ago."""
    session.credentials._read_at -= PAUSE_S
    yield session


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_kubeconfig_that_was_rewritten_is_read_when_its_old_token_is_refused(
    guard: Guard, tmp_path: Path, method: str
) -> None:
    """The request goes through at its second attempt; the caller never sees a 401."""
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, token="first")
    async with connected(path) as session, later(session):
        await session.request(method, PODS, {} if method == "POST" else None)
        guard.token = "second"
        kubeconfig(path, guard.url, token="second")

        await session.request(method, PODS, {} if method == "POST" else None)

    assert guard.shown == ["Bearer first", "Bearer first", "Bearer second"]


async def test_a_watch_that_is_refused_begins_with_the_new_token(guard: Guard, tmp_path: Path) -> None:
    """Without a list in between."""
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, token="first")
    async with connected(path) as session, later(session):
        guard.token = "second"
        kubeconfig(path, guard.url, token="second")
        async with session.stream(PODS, {"watch": "true"}, 5) as batches:
            lines = [line async for some in batches for line in some]

    assert lines == [b'{"type": "BOOKMARK"}']
    assert guard.shown == ["Bearer first", "Bearer second"]


async def test_a_hundred_refused_requests_read_the_credentials_once(guard: Guard, tmp_path: Path) -> None:
    """Those that wait take what the first one read."""
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, token="first")
    async with connected(path) as session, later(session):
        reads = []
        load = session.credentials._load

        async def counted() -> Loaded:
            reads.append(1)
            return await load()

        session.credentials._load = counted
        guard.token = "second"
        kubeconfig(path, guard.url, token="second")

        await asyncio.gather(*(session.request("GET", PODS) for _ in range(100)))

    assert len(reads) == 1


async def test_a_token_that_stays_refused_is_not_shown_twice_for_one_request(
    guard: Guard, tmp_path: Path
) -> None:
    """Neither is the file read at each request."""
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, token="wrong")
    async with connected(path) as session, later(session):
        for _ in range(3):
            with pytest.raises(Unauthorized):
                await session.request("GET", PODS)

    assert guard.shown == ["Bearer wrong"] * 3


@pytest.mark.parametrize(
    ("ends_before", "why"),
    [("clusters:", "it is empty"), ("users:", "no token any more"), ("second", "key token")],
)
async def test_credentials_that_cannot_be_read_again_are_named_in_the_refusal(
    guard: Guard, tmp_path: Path, ends_before: str, why: str
) -> None:
    """The old ones are kept, for the file may be half written; no request is made without a token."""
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, token="first")
    async with connected(path) as session, later(session):
        guard.token = "second"
        whole = kubeconfig(path, guard.url, token="second").read_text()
        path.write_text(whole.partition(ends_before)[0])
        with pytest.raises(Unauthorized, match=f"reading the credentials again failed: .*{why}"):
            await session.request("GET", PODS)
        path.write_text(whole)
        session.credentials._read_at -= PAUSE_S

        await session.request("GET", PODS)

    assert guard.shown == ["Bearer first", "Bearer first", "Bearer second"]


# -- login programs ----------------------------------------------------------------------------------


def program(folder: Path, token: str, expires: datetime | None = None) -> dict[str, Any]:
    """A login program, as exec in a kubeconfig names it, that notes that it ran."""
    status = {"token": token}
    if expires is not None:
        status["expirationTimestamp"] = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    path = folder / "login"
    path.write_text(
        f"#!{sys.executable}\n"
        f"open({str(folder / 'runs')!r}, 'a').write('x')\n"
        f"print({json.dumps(json.dumps(answer))})\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path)}}


async def test_a_login_program_runs_again_when_its_token_expires(guard: Guard, tmp_path: Path) -> None:
    """Before the server refuses it; and not sooner."""
    expires = datetime.now(UTC) + timedelta(hours=1)
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, **program(tmp_path, "first", expires))
    async with connected(path) as session:
        await session.request("GET", PODS)
        credentials = session.credentials
        credentials._now = lambda: expires.timestamp() - 60
        await session.request("GET", PODS)
        assert (tmp_path / "runs").read_text() == "x"

        program(tmp_path, "second", expires + timedelta(hours=1))
        guard.token = "second"
        credentials._now = lambda: expires.timestamp() - 10
        await session.request("GET", PODS)

    assert guard.shown == ["Bearer first", "Bearer first", "Bearer second"]
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_login_program_runs_again_when_its_token_is_refused(guard: Guard, tmp_path: Path) -> None:
    """It said nothing of an expiry."""
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, **program(tmp_path, "first"))
    async with connected(path) as session, later(session):
        program(tmp_path, "second")
        guard.token = "second"

        await session.request("GET", PODS)

    assert guard.shown == ["Bearer first", "Bearer second"]


async def test_a_login_program_that_fails_for_a_while_ends_nothing(guard: Guard, tmp_path: Path) -> None:
    """What it says is part of the refusal."""
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, **program(tmp_path, "first"))
    async with connected(path) as session, later(session):
        guard.token = "second"
        (tmp_path / "login").write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
        with pytest.raises(Unauthorized, match=r"process returned 1\. no network"):
            await session.request("GET", PODS)
        program(tmp_path, "")  # which reads a file that is being written
        session.credentials._read_at -= PAUSE_S
        with pytest.raises(Unauthorized, match="no token any more"):
            await session.request("GET", PODS)
        program(tmp_path, "second")
        session.credentials._read_at -= PAUSE_S

        await session.request("GET", PODS)


# -- service accounts --------------------------------------------------------------------------------


async def test_a_service_accounts_token_is_read_again_each_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubelets replace it long before it ends."""
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first\n")
    authority.write_text("a certificate")
    monkeypatch.setenv(incluster_config.SERVICE_HOST_ENV_NAME, "127.0.0.1")
    monkeypatch.setenv(incluster_config.SERVICE_PORT_ENV_NAME, "1")
    now = [1000.0]

    async def load() -> Loaded:
        settings = client.Configuration()
        incluster_config.load_incluster_config(  # type: ignore[no-untyped-call] # the library is untyped
            client_configuration=settings,
            try_refresh_token=False,
            token_filename=str(token),
            cert_filename=str(authority),
        )
        return Loaded(settings)

    credentials = Credentials(await load(), load, steady=lambda: now[0])
    assert await credentials.authorization() == "Bearer first"
    token.write_text("second")
    now[0] += REREAD_S - 1
    assert await credentials.authorization() == "Bearer first"
    now[0] += 1
    assert await credentials.authorization() == "Bearer second"


async def test_a_wall_clock_that_is_set_back_delays_no_reading() -> None:
    """By an hour, which is how long an operator would send a token that the server has refused."""
    settings = [client.Configuration(), client.Configuration()]
    settings[0].api_key["BearerToken"], settings[1].api_key["BearerToken"] = "Bearer first", "Bearer second"
    wall, passed_s = [7200.0], [0.0]
    tokens = iter(settings)

    async def load() -> Loaded:
        return Loaded(next(tokens))

    credentials = Credentials(await load(), load, lambda: wall[0], lambda: passed_s[0])
    wall[0] -= 3600.0
    passed_s[0] += PAUSE_S

    assert await credentials.refused("Bearer first")
    assert await credentials.authorization() == "Bearer second"


async def test_basic_credentials_are_shown_as_they_are(guard: Guard, tmp_path: Path) -> None:
    """User and password of a kubeconfig."""
    path = kubeconfig(tmp_path / "kubeconfig", guard.url, username="ada", password="pw")
    async with connected(path) as session:
        assert (await session.credentials.authorization()).startswith("Basic ")


@pytest.mark.parametrize("is_there", [True, False])
def test_without_a_name_the_kubeconfig_of_the_home_folder_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """An empty KUBECONFIG names no file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    if is_there:
        (tmp_path / ".kube").mkdir()
        kubeconfig(tmp_path / ".kube/config", "http://127.0.0.1:1", username="ada", password="pw")
        check(None)
        return

    with pytest.raises(ValueError, match="there is no kubeconfig; name one with --kubeconfig or KUBECONFIG"):
        check(None)
