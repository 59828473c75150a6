"""kopf's session: answers that would end kopf are broken connections, which it repeats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import kopf
import pytest

from plimsoll.app.kopf_session import NotServed, session_of

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LINE = b'{"type":"ADDED","object":{"metadata":{"name":"one"}}}\n'

Asking = Callable[[str], Awaitable[aiohttp.ClientResponse]]


@asynccontextmanager
async def answering(raw: bytes) -> AsyncIterator[Asking]:
    """A server that answers these bytes and ends the connection; asks it as kopf does."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    made = session_of(kopf.ConnectionInfo(server=url, scheme="Bearer", token="t", priority=3))
    assert (made.server, made.priority) == (url, 3)
    assert made.aiohttp_session.headers["Authorization"] == "Bearer t"
    try:
        yield lambda path: made.aiohttp_session.request("get", url + path)
    finally:
        await made.aiohttp_session.close()
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def open_watch(raw: bytes) -> AsyncIterator[tuple[aiohttp.ClientSession, aiohttp.ClientResponse]]:
    """A watch that goes on after these bytes, with kopf's session."""
    is_over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await is_over.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    session = session_of(kopf.ConnectionInfo(server=url, scheme="Bearer", token="t")).aiohttp_session
    try:
        async with session.get(f"{url}/policies?watch=true") as watch:
            yield session, watch
    finally:
        is_over.set()
        await session.close()
        server.close()
        await server.wait_closed()


async def test_an_answer_that_ends_early_is_a_broken_connection() -> None:
    """Kopf tries again what raises ClientConnectionError, and ends at what is raised later."""
    async with answering(HEAD + b'Content-Length: 900\r\n\r\n{"kind":') as ask:
        with pytest.raises(aiohttp.ClientConnectionError, match="ended early"):
            await ask("/apis")


async def test_a_whole_answer_is_as_it_was() -> None:
    """It is there before kopf looks."""
    raw = HEAD + b"Content-Length: 7\r\n\r\n" + b'{"a":1}'
    async with answering(raw) as ask, await ask("/apis") as answer:
        assert await answer.json() == {"a": 1}


def chunked(*parts: bytes) -> bytes:
    """An answer in chunks, whole."""
    body = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in (*parts, b""))
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body


async def seen(answer: aiohttp.ClientResponse, into: list[bytes]) -> None:
    """All that kopf's reader of lines gets."""
    async with answer:
        async for piece in answer.content.iter_chunked(2**20):
            into.append(piece)  # noqa: PERF401 - what came before an error is kept


async def test_a_watch_that_ends_in_mid_line_is_a_broken_body() -> None:
    """Kopf goes on from the last whole line; half a line it would have parsed, and failed."""
    got: list[bytes] = []
    async with answering(chunked(LINE, LINE[:20])) as ask:
        with pytest.raises(aiohttp.ClientPayloadError, match="mid-line"):
            await seen(await ask("/policies?watch=true"), got)

    assert b"".join(got) == LINE


@pytest.mark.parametrize("lines", [0, 1])
async def test_a_watch_whose_session_is_closed_is_a_broken_body(lines: int) -> None:
    """Kopf closes it when it logs in again, also before it has read a line."""
    part = chunked(*[LINE] * lines)
    async with open_watch(part.removesuffix(b"0\r\n\r\n")) as (session, answer):
        pieces = answer.content.iter_chunked(2**20)
        for _ in range(lines):
            assert await anext(pieces) == LINE
        await session.close()
        await asyncio.sleep(0)

        with pytest.raises(aiohttp.ClientPayloadError, match="was closed"):
            await anext(pieces)


async def test_a_watch_that_is_refused_says_why() -> None:
    """Kopf reads the Status of a refusal."""
    refused = HEAD.replace(b"200 OK", b"503 Away") + b'Content-Length: 12\r\n\r\n{"code":503}'
    async with answering(refused) as ask, await ask("/policies?watch=true") as answer:
        assert await answer.text() == '{"code":503}'


@pytest.mark.parametrize(
    "path", ["/apis/g/v1/schedulingpolicies", "/apis/g/v1/schedulingpolicies?watch=true"]
)
async def test_policies_without_a_definition_are_asked_for_again(path: str) -> None:
    """Kopf repeats what raises ClientConnectionError; at 404 it would end its watch, and we with it."""
    absent = HEAD.replace(b"200 OK", b"404 Not Found") + b"Content-Length: 3\r\n\r\n404"
    async with answering(absent) as ask:
        with pytest.raises(NotServed):
            await ask(path)
    async with answering(absent) as ask, await ask("/apis/g") as answer:
        assert answer.status == 404


async def test_lines_of_a_watch_come_whole() -> None:
    """Wherever the network cuts them."""
    got: list[bytes] = []
    async with answering(chunked(LINE + LINE[:7], LINE[7:] + LINE)) as ask:
        await seen(await ask("/policies?watch=true"), got)

    assert b"".join(got) == LINE * 3
    assert all(each.endswith(b"\n") for each in got)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcdserver: leader changed"}}\n',
        b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n',
        b"<html>no healthy upstream</html>\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":7}\n',
        b'{"type":"ADDED","object":{}}\n',
        b"\xff\n",
        b"[" * 100_000 + b"\n",
    ],
    ids=["500", "410", "page", "no object", "number", "no metadata", "no text", "deep"],
)
async def test_a_watch_that_says_that_something_is_wrong_is_begun_again(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kopf ends at all of these but a 410, which makes it list again; what came before is kept."""
    monkeypatch.setattr("plimsoll.app.kopf_session.TROUBLE_S", 0.0)
    got: list[bytes] = []
    async with answering(chunked(LINE, LINE + line + LINE)) as ask:
        await seen(await ask("/policies?watch=true"), got)

    *events, last = b"".join(got).splitlines(keepends=True)
    assert events == [LINE, LINE]
    assert json.loads(last)["object"]["code"] == 410
