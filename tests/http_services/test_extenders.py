"""Requests to extenders carry no credentials, and responses are not trusted."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.web_request import Request
from aiohttp.web_response import Response, StreamResponse

from kube.tls_servers import Authority, coded, load, served
from plimsoll.http_services.extenders import ANSWER_BYTES, HTTPExtenders
from plimsoll.ports.extenders import Endpoint, TLSSettings


@pytest.fixture
async def extenders() -> AsyncIterator[Any]:
    one = HTTPExtenders()
    yield one
    await one.close()
    await asyncio.sleep(0)


def an_endpoint(
    port: int, path: str = "/x", scheme: str = "http", timeout_s: Any = 10.0, **tls: Any
) -> Endpoint:
    return Endpoint(f"{scheme}://127.0.0.1:{port}{path}", timeout_s, TLSSettings(**tls))


async def fine(_: Request) -> Response:
    return web.Response(body=b'{"ok": true}')


async def test_a_question_and_its_answer(extenders: HTTPExtenders, monkeypatch: pytest.MonkeyPatch) -> None:
    """A POST of JSON to the verb's URL; proxies of the environment and credentials stay out of it."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with served(fine) as (port, asked):
        reply = await extenders.post(an_endpoint(port, "/x/"), "filter", b"{}")

    assert reply.content == b'{"ok": true}'
    ((method, path, body, headers),) = asked
    assert (method, path, body) == ("POST", "/x/filter", b"{}")
    assert headers["Content-Type"] == "application/json"
    assert headers["Accept-Encoding"] == "identity"
    assert not {"Authorization", "Cookie"} & set(headers)


async def test_cookies_are_not_kept(extenders: HTTPExtenders) -> None:
    """A server cannot recognise the client."""

    async def sticky(_: Request) -> Response:
        response = web.Response(body=b"{}")
        response.set_cookie("who", "you")
        return response

    async with served(sticky) as (port, asked):
        for _ in range(2):
            await extenders.post(an_endpoint(port), "filter", b"{}")

    assert "Cookie" not in asked[1][3]


@pytest.mark.parametrize("status", [201, 204, 302, 307, 404, 500])
async def test_only_200_is_an_answer(extenders: HTTPExtenders, status: int) -> None:
    """A redirect is followed nowhere."""

    async def elsewhere(_: Request) -> Response:
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    async with served(elsewhere) as (port, asked):
        reply = await extenders.post(an_endpoint(port), "filter", b"{}")

    assert reply.content is None
    assert reply.problem == (
        f"failed filter with extender at URL http://127.0.0.1:{port}/x/filter, code {status}"
    )
    assert len(asked) == 1


async def test_an_extender_that_does_not_listen(extenders: HTTPExtenders) -> None:
    """The problem is reported in a sentence."""
    async with served(fine) as (port, _):
        pass

    reply = await extenders.post(an_endpoint(port), "filter", b"{}")

    assert reply.content is None
    assert reply.problem.startswith(f'Post "http://127.0.0.1:{port}/x/filter": ')


async def test_an_answer_has_a_bound_that_grows_with_the_question(extenders: HTTPExtenders) -> None:
    """An honest one repeats the nodes at most."""
    sizes = iter([ANSWER_BYTES + 3 * 1000, ANSWER_BYTES + 3 * 1000 + 1])

    async def large(_: Request) -> Response:
        return web.Response(body=b" " * next(sizes))

    async with served(large) as (port, _):
        taken = await extenders.post(an_endpoint(port), "filter", b"x" * 1000)
        refused = await extenders.post(an_endpoint(port), "filter", b"x" * 1000)

    assert len(taken.content) == ANSWER_BYTES + 3000  # type: ignore[arg-type] # a fake has only what is used
    assert "has more than" in refused.problem


async def test_an_answer_that_is_packed_is_not_unpacked(extenders: HTTPExtenders) -> None:
    """A few bytes could become gigabytes."""

    async def packed(_: Request) -> Response:
        return web.Response(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})

    async with served(packed) as (port, _):
        reply = await extenders.post(an_endpoint(port), "filter", b"{}")

    assert reply.content == b"\x1f\x8b"


async def test_an_answer_that_breaks_off_is_a_failure(extenders: HTTPExtenders) -> None:
    """However well it began."""

    async def broken(request: Request) -> StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"{}")
        request.transport.abort()
        return response

    async with served(broken) as (port, _):
        reply = await extenders.post(an_endpoint(port), "filter", b"{}")

    assert reply.content is None


async def test_the_time_counts_to_the_last_byte(extenders: HTTPExtenders) -> None:
    """Not from one byte to the next."""

    async def trickle(request: Request) -> None:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    async with served(trickle) as (port, _):
        reply = await extenders.post(an_endpoint(port, timeout_s=0.3), "filter", b"{}")

    assert reply.problem.endswith("no complete answer within 0.3 s")


async def test_both_sides_show_certificates(extenders: HTTPExtenders) -> None:
    """Under the name that the policy says; without ours the extender hangs up."""
    ours, theirs = Authority(), Authority()
    certificate, key = theirs.issue("gpu.example.com")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=ours.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    load(context, certificate, key)
    client_certificate, client_key = ours.issue("plimsoll")
    known = {"ca_data": coded(theirs.pem), "server_name": "gpu.example.com"}
    shown = {"cert_data": coded(client_certificate), "key_data": coded(client_key)}
    async with served(fine, context) as (port, _):
        for tls, is_taken in (
            ({**known, **shown}, True),
            (known, False),
            ({**shown, "ca_data": coded(theirs.pem)}, False),  # 127.0.0.1 is not its name
            ({**shown, "server_name": "gpu.example.com"}, False),  # the system knows no such authority
            ({**shown, "insecure": True}, True),
        ):
            reply = await extenders.post(an_endpoint(port, scheme="https", **tls), "filter", b"{}")

            assert (reply.content is not None) is is_taken, (tls, reply)


async def test_certificates_are_judged_before_they_are_used(extenders: HTTPExtenders) -> None:
    """In a sentence, and without asking anybody for a password."""
    authority = Authority()
    certificate, key = authority.issue("plimsoll")
    _, other_key = authority.issue("plimsoll")
    _, locked = authority.issue("plimsoll", password=b"secret")
    good = {"cert_data": coded(certificate), "key_data": coded(key)}

    assert extenders.problem_of(an_endpoint(1, scheme="https", ca_data=coded(authority.pem), **good)) == ""
    for bad in (
        {"ca_data": coded(b"nothing")},
        {"ca_data": "!"},
        {"ca_data": coded("Zertifikat für dich".encode())},
        {**good, "key_data": coded(other_key)},
        {**good, "key_data": coded(locked)},
        {**good, "key_data": coded(b"nothing")},
        {"ca_data": "===="},
    ):
        problem = extenders.problem_of(an_endpoint(1, scheme="https", **bad))
        assert "certificates cannot be used" in problem, bad


async def test_connections_of_extenders_that_are_gone_are_closed(extenders: HTTPExtenders) -> None:
    """The others are kept."""
    async with served(fine) as (port, _):
        one, two = an_endpoint(port, "/1"), an_endpoint(port, "/2")
        for endpoint in (one, two):
            await extenders.post(endpoint, "filter", b"{}")

        await extenders.retain([two])

        assert set(extenders._sessions) == {two}
        assert (await extenders.post(one, "filter", b"{}")).content is not None


async def test_of_two_simultaneous_changes_the_first_closes_nothing_that_was_opened_since(
    extenders: HTTPExtenders,
) -> None:
    """It waits for a server that is slow to end a connection."""
    gate, closed = asyncio.Event(), list[str]()

    def a_session(name: str) -> Any:
        async def close() -> None:
            closed.append(name)
            await gate.wait()

        return SimpleNamespace(close=close)

    one, two = an_endpoint(1, "/1"), an_endpoint(1, "/2")
    extenders._sessions |= {one: a_session("one"), two: a_session("two")}
    first = asyncio.create_task(extenders.retain([]))
    await asyncio.sleep(0)
    extenders._sessions[two] = opened = a_session("two again")
    second = asyncio.create_task(extenders.retain([two]))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, second)

    assert extenders._sessions == {two: opened}
    assert closed == ["one", "two"]
