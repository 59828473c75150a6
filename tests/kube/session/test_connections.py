"""Writes over kept connections, against a server whose every byte the test chooses."""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from plimsoll.kube.session.connections import HEADS, Wire, _Connection
from plimsoll.kube.session.response_parser import FRAMING_BYTES, Response

OK = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Endless:
    """An answer that never ends: how it begins, and what follows again and again."""

    begin: bytes
    repeated: bytes
    pause_s: float = 0.0

    def __iter__(self) -> Iterator[bytes]:
        yield self.begin
        yield from itertools.repeat(self.repeated)


class ByteServer:
    """Answers each request with the next thing told: bytes, pieces, or None to say nothing.

    Attributes:
        requests: Connection number and bytes of each request.
        connections: How many were opened.
        sent: Bytes of endless answers.
    """

    def __init__(self) -> None:
        self.connections, self.sent = 0, 0
        self.requests: list[Any] = []
        self.answers: list[Any] = []
        self.closing: set[Any] = set()

    async def serve(self, reader: Any, writer: Any) -> None:
        self.connections += 1
        number = self.connections
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                self.requests.append((number, head + await reader.readexactly(length)))
                told = self.answers.pop(0) if self.answers else OK
                if isinstance(told, Endless):
                    await self.flood(writer, told)
                    return
                for piece in told if isinstance(told, list) else [told]:
                    if piece is None:
                        await asyncio.Event().wait()
                    if piece == b"":
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.005)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def flood(self, writer: Any, told: Any) -> None:
        """Write until the client closes."""
        for piece in told:
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)
            await asyncio.sleep(told.pause_s)


@asynccontextmanager
async def wired(limit: int = 4, prefix: str = "") -> AsyncIterator[Any]:
    """A server and a wire to it."""
    server = ByteServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    wire = Wire(f"http://127.0.0.1:{port}{prefix}", None, None, limit, "tests/1")
    try:
        yield server, wire
    finally:
        await wire.close()
        listening.close()


async def post(
    wire: Wire,
    path: str = "/things",
    body: bytes = b"{}",
    *,
    timeout_s: float = 10.0,
    before: Callable[..., Any] = lambda: None,
    **options: Any,
) -> Response:
    return await wire.exchange(
        "POST", path, {"Accept": "application/json"}, body, timeout_s=timeout_s, before=before, **options
    )


async def until(done: Callable[..., Any]) -> None:
    async with asyncio.timeout(300):
        while not done():  # noqa: ASYNC110 - a server has no event for it
            await asyncio.sleep(0.005)


async def test_a_request_is_written_as_http_and_its_answer_read() -> None:
    async with wired(prefix="/clusters/c") as (server, wire):
        response = await post(wire, "/a b/ü", b'{"x":1}', params={"dryRun": "All"})

        head, _, body = server.requests[0][1].partition(b"\r\n\r\n")
        assert (response.status, response.content) == (201, b"{}")
        assert head.startswith(b"POST /clusters/c/a%20b/%C3%BC?dryRun=All HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"\r\nUser-Agent: tests/1\r\nAccept: application/json\r\nContent-Length: 7" in head
        assert body == b'{"x":1}'


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OK, id="whole"),
        pytest.param([OK[:9], OK[9:40], OK[40:-1], OK[-1:]], id="in pieces"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", OK], id="announced"),
        pytest.param(
            [
                b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{",
                b"\r\n1;x=y\r\n}\r\n0\r",
                b"\n\r\n",
            ],
            id="in chunks",
        ),
        pytest.param(
            b"HTTP/1.1 201 Created\r\nTRANSFER-ENCODING: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: b\r\nC: d\r\n\r\n",
            id="with trailers",
        ),
    ],
)
async def test_an_answer_may_come_in_any_shape_and_keeps_the_connection(answer: bytes | list[bytes]) -> None:
    async with wired() as (server, wire):
        server.answers += [answer, answer]

        first, second = await post(wire), await post(wire)

        assert [first.content, second.content] == [b"{}", b"{}"]
        assert [first.status, second.status] == [201, 201]
        assert server.connections == 1


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        pytest.param(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), b"{}", id="says close"),
        pytest.param(OK.replace(b"1.1", b"1.0"), b"{}", id="speaks 1.0"),
        pytest.param([b"HTTP/1.1 201 Created\r\n\r\n{", b"}", b""], b"{}", id="until the end"),
        pytest.param(OK + b"HTTP/1.1 200 OK\r\n", b"{}", id="says too much"),
    ],
)
async def test_a_connection_that_ends_with_its_answer_is_not_used_again(
    answer: bytes | list[bytes], content: bytes
) -> None:
    async with wired() as (server, wire):
        server.answers += [answer]

        assert (await post(wire)).content == content
        assert (await post(wire)).content == b"{}"
        assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", "Expected HTTP/", id="another protocol"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", "Invalid status code", id="no status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length", id="no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "more than", id="too long"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "encoding is b'gzip'", id="gzip"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
            "chunk size",
            id="a signed size",
        ),
        pytest.param(
            OK.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n"), "Content-Length", id="two lengths"
        ),
        pytest.param([OK[:-1], b""], "ended before the answer", id="cut short"),
        pytest.param(b"", "ended before the answer", id="nothing"),
        pytest.param(b"\r\n" * FRAMING_BYTES, "besides its body", id="no head"),
    ],
)
async def test_nonsense_is_no_answer_and_harms_no_later_request(
    answer: bytes | list[bytes], says: str
) -> None:
    async with wired() as (server, wire):
        server.answers += [answer]

        with pytest.raises(ConnectionError, match=says):
            await post(wire)
        assert (await post(wire)).status == 201


async def test_a_late_answer_is_not_taken_for_another_requests() -> None:
    """A timeout closes the connection, and so does a cancelled caller."""
    async with wired(limit=1) as (server, wire):
        server.answers += [[None]] * 100

        while not server.requests:  # a busy server may read too late
            with pytest.raises(TimeoutError):
                await post(wire, timeout_s=0.05)
        late = len(server.requests)
        cancelled = asyncio.create_task(post(wire))
        await until(lambda: len(server.requests) > late)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        server.answers.clear()

        assert (await post(wire)).status == 201
        numbers = [number for number, _ in server.requests]
        assert len(set(numbers)) == len(numbers) >= 3


async def test_no_more_connections_than_allowed_and_the_last_used_first() -> None:
    async with wired(limit=2) as (server, wire):
        await asyncio.gather(*(post(wire) for _ in range(10)))
        assert server.connections == 2
        server.requests.clear()

        for _ in range(5):
            await post(wire)

        assert len({number for number, _ in server.requests}) == 1


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    async with wired() as (server, wire):
        server.answers += [[OK, b""]]
        await post(wire)
        await until(lambda: not wire._open)

        assert (await post(wire)).status == 201
        assert server.connections == 2


async def test_an_old_connection_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wired() as (server, wire):
        await post(wire)
        monkeypatch.setattr("plimsoll.kube.session.connections.IDLE_S", -1.0)

        assert (await post(wire)).status == 201
        assert server.connections == 2


async def test_what_must_not_be_sent_is_not_even_after_a_wait_for_a_connection() -> None:
    async with wired(limit=1) as (server, wire):
        server.answers += [[b"HTTP/1.1 100 Continue\r\n\r\n", OK]]
        is_closed = False

        def check() -> None:
            if is_closed:
                raise ConnectionAbortedError

        first = asyncio.create_task(post(wire, before=check))
        await until(lambda: server.requests)
        second = asyncio.create_task(post(wire, before=check))
        is_closed = True

        assert (await first).status == 201
        with pytest.raises(ConnectionAbortedError):
            await second
        assert len(server.requests) == 1


async def test_heads_are_kept_for_requests_alike_and_not_for_ever() -> None:
    """Tokens are replaced: each request has its own, and old ones do not add up."""
    async with wired() as (_, wire):
        heads, most = [], 0
        for number in range(3 * HEADS):
            headers = {"Authorization": f"Bearer {number}"}
            head = wire._head(headers)
            heads.append(wire._head(dict(headers)) is head)
            assert f"Authorization: Bearer {number}\r\n".encode() in head
            most = max(most, len(wire._heads))

    assert all(heads)
    assert most == HEADS


async def test_a_header_of_two_lines_is_not_sent() -> None:
    async with wired() as (server, wire):
        with pytest.raises(ValueError, match="more than one line"):
            await wire.exchange(
                "POST", "/", {"Authorization": "Bearer a\r\nX: y"}, b"", timeout_s=1, before=lambda: None
            )
        assert server.requests == []


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "repeated"),
    [
        pytest.param(b"", INTERIM, id="interim answers"),
        pytest.param(CHUNKED, b"1;abcdefgh\r\nx\r\n", id="extensions"),
        pytest.param(CHUNKED + b"0\r\n", b"A: b\r\n", id="trailers"),
    ],
)
async def test_an_answer_without_end_is_given_up_soon(begin: bytes, repeated: bytes) -> None:
    """The server's bytes are counted, not the seconds; what sockets hold is bounded as well."""
    async with wired() as (server, wire):
        server.answers += [Endless(begin, repeated * (2**14 // len(repeated)))]

        with pytest.raises(ConnectionError, match="more than 65536 bytes besides its body"):
            await post(wire, timeout_s=50)

        assert server.sent < 2**24
        assert (await post(wire)).status == 201


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        pytest.param(b"", INTERIM, id="interim answers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: ", b"b", id="a header"),
        pytest.param(CHUNKED, b"1\r\nx\r\n", id="chunks"),
        pytest.param(CHUNKED + b"5;", b"a", id="an extension"),
    ],
)
async def test_the_time_of_a_request_holds_for_a_server_that_drips(begin: bytes, drop: bytes) -> None:
    """However many bytes have come; and the loop is free in between."""
    async with wired() as (server, wire):
        server.answers += [Endless(begin, drop, pause_s=0.002)] * 100
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.005)
                turns += 1

        turning = asyncio.create_task(turn())
        while turns < 2 or server.sent < 2:  # a busy machine may not come to it in the first
            with pytest.raises(TimeoutError):
                await post(wire, timeout_s=0.2)
        turning.cancel()
        server.answers.clear()

        assert (await post(wire)).status == 201


async def posts(wire: Wire, count: int, before: Callable[..., Any] = lambda: None) -> list[bytes]:
    """The bodies of the answers to several requests that are sent together."""
    writes = [("/things", b"%d" % number) for number in range(count)]
    answers = await wire.exchanges("POST", {}, writes, timeout_s=10.0, before=before)
    return [answer.content for answer in answers]


def saying(word: bytes, more: bytes = b"") -> bytes:
    """An answer."""
    return b"HTTP/1.1 201 Created\r\n%sContent-Length: %d\r\n\r\n%s" % (more, len(word), word)


async def test_requests_are_sent_together_and_answered_in_order() -> None:
    """Over one connection, which serves again afterwards."""
    async with wired() as (server, wire):
        server.answers += [saying(b"a"), [saying(b"b")[:9], saying(b"b")[9:]], saying(b"c"), saying(b"d")]

        assert await posts(wire, 3) == [b"a", b"b", b"c"]
        assert (await post(wire)).content == b"d"
        assert [(number, request[-1:]) for number, request in server.requests[:3]] == [
            *((1, b"0"), (1, b"1"), (1, b"2"))
        ]
        assert server.connections == 1


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([b""], id="ends"),
        pytest.param([saying(b"b", b"Connection: close\r\n")], id="says close"),
        pytest.param([b"HTTP/1.1 201 Created\r\nContent-Length: -1\r\n\r\n"], id="nonsense"),
    ],
)
async def test_of_requests_sent_together_those_answered_are_known(end: list[Any]) -> None:
    """What came before the end counts, nothing else does, and the connection is not used again."""
    async with wired() as (server, wire):
        server.answers += [saying(b"a"), *end]

        assert await posts(wire, 3) == [b"a", b"b"][: 2 if b"close" in end[0] else 1]
        assert (await post(wire)).content == b"{}"
        assert server.connections == 2


async def test_a_gate_that_closes_stops_all_and_no_older_answer_is_taken_for_theirs() -> None:
    async with wired() as (server, wire):
        await posts(wire, 3)

        def closed() -> None:
            raise ConnectionAbortedError("closed")

        with pytest.raises(ConnectionAbortedError):
            await posts(wire, 3, before=closed)
        assert len(server.requests) == 3


async def test_bytes_that_answer_no_request_close_the_connection() -> None:
    """Before the first request and after an answer: else they would begin the next request's answer."""
    for asks in (False, True):
        server_end, own_end = socket.socketpair()
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: _Connection(lambda _: None), sock=own_end)
        with server_end:
            if asks:
                asking = asyncio.create_task(connection.exchange(b"x", loop.time() + 10))
                await asyncio.sleep(0)
                connection.data_received(OK)
                assert (await asking).status == 201
            try:
                connection.data_received(b"HTTP/1.1 200 OK\r\n")
                assert not connection.is_open
            finally:
                connection.abort()


async def test_a_connection_that_is_being_made_when_the_wire_closes_is_closed_too() -> None:
    async with wired() as (server, wire):
        connecting = asyncio.create_task(post(wire))
        await asyncio.sleep(0)

        await wire.close()

        with pytest.raises(ConnectionAbortedError):
            await connecting
        assert server.requests == []


async def test_a_connection_that_ends_as_soon_as_it_is_made_is_no_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a server that is over TLS hangs up with its last word; the wire can be closed."""
    made = _Connection.connection_made

    def made_and_lost(connection: Any, transport: Any) -> None:
        made(connection, transport)
        transport.abort()
        connection.connection_lost(None)

    async with wired() as (_, wire):
        monkeypatch.setattr(_Connection, "connection_made", made_and_lost)
        with pytest.raises(ConnectionResetError, match="before the request"):
            await post(wire)
