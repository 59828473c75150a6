"""The proxy of chaos passes requests on as they are, records them, and does what faults say."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from chaos.faults import ChaosFaults, ChaosKind
from chaos.passage import Passage, Passages
from chaos.proxy import Mood, Proxy, Upstream
from roadstead.certificates import loopback_identity


class OneKind(ChaosFaults):
    """Every exchange meets the same fault."""

    def __init__(self, kind: ChaosKind | None) -> None:
        super().__init__(1)
        self._kind = kind

    def of_exchange(self, *, is_write: bool) -> ChaosKind | None:
        return self._kind


class Stage:
    """A server behind a proxy, and a client before it."""

    def __init__(self, proxy: Proxy, url: str, http: aiohttp.ClientSession, asked: list[str]) -> None:
        self.proxy, self.url, self.http, self.asked = proxy, url, http, asked

    async def post(self) -> int:
        async with self.http.post(f"{self.url}/apis/x/v1/things?a=b", json={"spec": {}}) as answer:
            await answer.read()
            return answer.status


@asynccontextmanager
async def staged(kind: ChaosKind | None) -> AsyncIterator[Stage]:
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(f"{request.method} {request.path_qs} {request.headers['Authorization']}")
        await request.read()
        return web.json_response({"metadata": {"resourceVersion": "42"}})

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    identity = await asyncio.to_thread(loopback_identity)
    loop = asyncio.get_running_loop()
    passages = Passages(io.StringIO(), loop.time)
    upstream = Upstream(f"http://{host}:{port}", None, "Bearer ours")
    proxy = Proxy("red.1", upstream, identity.context, OneKind(kind), passages)
    url = await proxy.start()
    tls = ssl.create_default_context(cadata=identity.certificate.decode())
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as http:
            yield Stage(proxy, url, http, asked)
    finally:
        await proxy.stop()
        await runner.cleanup()


async def test_a_request_is_passed_on_and_recorded() -> None:
    """The API server sees it with its own credentials, and the record has the version in the answer."""
    async with staged(None) as stage:
        assert await stage.post() == 200

        assert stage.asked == ["POST /apis/x/v1/things?a=b Bearer ours"]
        (passage,) = stage.proxy.passages.writes
        assert (passage.version, passage.status, passage.body) == ("42", 200, b'{"spec": {}}')
        assert Passage.read(passage.line()) == passage


@pytest.mark.parametrize(
    "kind", [ChaosKind.LOST_ANSWER, ChaosKind.TORN_ANSWER, ChaosKind.CUT, ChaosKind.RESET]
)
async def test_an_answer_is_lost(kind: ChaosKind) -> None:
    """The client gets an error; whether the request took effect is in the record."""
    takes_effect = kind in (ChaosKind.LOST_ANSWER, ChaosKind.TORN_ANSWER)
    async with staged(kind) as stage:
        with pytest.raises(aiohttp.ClientError):
            await stage.post()

        assert bool(stage.asked) is takes_effect
        assert [each.status for each in stage.proxy.passages.writes] == [200] * takes_effect


async def test_a_request_that_is_repeated_has_two_records() -> None:
    """The client gets the second answer."""
    async with staged(ChaosKind.REPEATED) as stage:
        assert await stage.post() == 200

        assert len(stage.asked) == 2
        first, second = stage.proxy.passages.writes
        assert (first.version, second.version) == ("42", "42")
        assert first is not second


async def test_half_a_request_has_no_effect() -> None:
    """The server waits for the rest, and the client gets an error."""
    async with staged(ChaosKind.TORN_REQUEST) as stage:
        with pytest.raises(aiohttp.ClientError):
            await stage.post()

        assert stage.proxy.passages.writes == []


async def test_a_refusal_in_the_servers_stead_is_not_passed_on() -> None:
    """A 503 of the proxy's is an answer like any other, and nothing has happened."""
    async with staged(ChaosKind.UNAVAILABLE) as stage:
        assert await stage.post() == 503

        assert stage.asked == []


async def test_a_proxy_that_refuses_ends_connections() -> None:
    """As an API server that is away."""
    async with staged(None) as stage:
        stage.proxy.mood = Mood.REFUSES

        with pytest.raises(aiohttp.ClientError):
            await stage.post()
        assert stage.asked == []
