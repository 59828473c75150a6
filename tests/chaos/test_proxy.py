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

from chaos.certificates import Authority
from chaos.deeds import EXPIRED
from chaos.faults import ChaosFaults, ChaosKind
from chaos.passage import Passage, Passages
from chaos.proxy import Mood, Proxy, Upstream


class OneKind(ChaosFaults):
    """Every exchange meets the same fault."""

    def __init__(self, kind: ChaosKind | None) -> None:
        super().__init__(1)
        self._kind = kind

    def of_exchange(self, path: str, *, is_write: bool) -> ChaosKind | None:
        return self._kind


class Stage:
    """A server behind a proxy, and a client before it."""

    def __init__(
        self,
        proxy: Proxy,
        url: str,
        http: aiohttp.ClientSession,
        asked: list[str],
        authority: Authority,
    ) -> None:
        self.proxy, self.url, self.http, self.asked = proxy, url, http, asked
        self.authority = authority

    async def post(self, token: str = "") -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        path = f"{self.url}/apis/x/v1/things?a=b"
        async with self.http.post(path, json={"spec": {}}, headers=headers) as answer:
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
    authority = await asyncio.to_thread(Authority)
    loop = asyncio.get_running_loop()
    passages = Passages(io.StringIO(), loop.time)
    upstream = Upstream(f"http://{host}:{port}", None, "Bearer ours")
    proxy = Proxy("red.1", upstream, authority.context, OneKind(kind), passages)
    url = await proxy.start()
    tls = ssl.create_default_context(cadata=authority.certificate.decode())
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, force_close=True)) as http:
            yield Stage(proxy, url, http, asked, authority)
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


async def test_a_write_takes_effect_after_its_504(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the proxy's operator has died meanwhile; the record has the version and comes later."""
    monkeypatch.setattr("chaos.proxy.LATE_S", (0.05, 0.05))
    async with staged(ChaosKind.TIMEOUT_BEFORE_EFFECT) as stage:
        assert await stage.post() == 504
        assert stage.asked == []

        await stage.proxy.stop()
        (passage,) = stage.proxy.passages.writes
        assert (passage.version, passage.status, stage.proxy.passages.seen) == ("42", 200, 1)


async def test_an_expired_token_is_refused() -> None:
    """The server's own credentials are never the reason."""
    async with staged(None) as stage:
        stage.proxy.tokens = {"new"}

        assert [await stage.post("old"), await stage.post("new")] == [401, 200]
        assert len(stage.asked) == 1


async def test_certificates_are_renewed_and_expire() -> None:
    """On new connections, for a client that trusts the authority."""
    async with staged(None) as stage:
        stage.authority.issue()
        assert await stage.post() == 200

        stage.authority.issue(EXPIRED)
        with pytest.raises(aiohttp.ClientError, match="certificate has expired"):
            await stage.post()


async def test_without_space_no_write_is_passed_on() -> None:
    """In etcd's words."""
    async with (
        staged(ChaosKind.DISK_FULL) as stage,
        stage.http.post(f"{stage.url}/apis/x/v1/things", json={}) as answer,
    ):
        said = await answer.json()
        assert (answer.status, said["message"]) == (500, "etcdserver: mvcc: database space exceeded")
        assert stage.asked == []


def test_a_storm_meets_most_requests_and_is_one_fault() -> None:
    faults = ChaosFaults(1)
    faults.is_over, faults.storm = False, ChaosKind.STORM_OF_409
    writes = [faults.of_exchange("/api", is_write=True) for _ in range(100)]
    reads = [faults.of_exchange("/api", is_write=False) for _ in range(100)]

    assert set(writes) == {ChaosKind.CONFLICT, None}
    assert set(reads) == {None}
    assert 60 < faults.in_storms < 100
    assert not faults.counts


def test_a_fault_counts_for_the_features_that_its_request_is_about() -> None:
    faults = ChaosFaults(1)
    faults.is_over = False
    faults.about = lambda path: ["gangs"] if path == "/of-a-gang" else []
    for path in ("/of-a-gang", "/other"):
        for _ in range(200):
            faults.of_exchange(path, is_write=True)

    met = sum(faults.by_feature.values())
    assert 0 < met < sum(faults.counts.values())
    assert {feature for _, feature in faults.by_feature} == {"gangs"}
