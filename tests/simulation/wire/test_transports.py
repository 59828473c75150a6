"""In-memory connections: bytes arrive in order and whole; ends, resets and silence are those of a kernel."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from plimsoll.kube.session.connections import Wire
from simulation.wire.faults import WireFaultKind
from simulation.wire.loop import WiredLoop, wired_loop

HOST, PORT = "127.0.0.1", 6443

Scene = Callable[[WiredLoop], Coroutine[Any, Any, Any]]


def ran(scene: Scene, seed: int = 1, *kinds: WireFaultKind) -> Any:
    """What a scene returns, on a loop of its own."""
    loop = wired_loop(Random(seed), Random(seed), 1e6, kinds)
    try:
        found = loop.run_until_complete(scene(loop))
        assert loop.problems == []
        return found
    finally:
        loop.close()


class Notes(asyncio.Protocol):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.data = bytearray()
        self.transport: Any = None
        self.parts = 0

    def connection_made(self, transport: Any) -> None:
        """It begins."""
        self.transport = transport
        self.heard.append("made")

    def data_received(self, data: bytes) -> None:
        """Bytes."""
        self.data += data
        self.parts += 1

    def eof_received(self) -> None:
        """The other end writes no more."""
        self.heard.append("eof")

    def connection_lost(self, exc: Exception | None) -> None:
        """It ends."""
        self.heard.append("lost" if exc is None else type(exc).__name__)

    def pause_writing(self) -> None:
        """The buffers are full."""
        self.heard.append("pause")

    def resume_writing(self) -> None:
        """They are not any more."""
        self.heard.append("resume")


async def pair(loop: WiredLoop) -> tuple[Notes, Notes]:
    """A server's protocol and a client's."""
    made: list[Notes] = []

    def serve() -> Notes:
        made.append(Notes())
        return made[-1]

    await loop.create_server(serve, HOST, PORT)
    _, client = await loop.create_connection(Notes, HOST, PORT)
    await asyncio.sleep(0.1)
    return made[-1], client


@pytest.mark.parametrize("seed", range(8))
def test_bytes_arrive_whole_and_in_order_and_a_slow_reader_holds_the_writer_back(seed: int) -> None:
    """A megabyte, in parts; then the end."""
    sent = Random(seed).randbytes(1_500_000)

    async def scene(loop: WiredLoop) -> None:
        server, client = await pair(loop)
        client.transport.pause_reading()
        for begin in range(0, len(sent), 70_000):
            server.transport.write(sent[begin : begin + 70_000])
        server.transport.close()
        await asyncio.sleep(60.0)
        assert not client.data
        client.transport.resume_reading()
        await asyncio.sleep(3600.0)

        assert client.data == sent
        assert client.parts > 1
        assert client.heard == ["made", "eof", "lost"]
        assert server.heard == ["made", "pause", "resume", "lost"]
        assert not loop.connections

    ran(scene, seed)


@pytest.mark.parametrize("seed", range(8))
def test_a_line_that_lags_delays_bytes_and_does_not_take_the_lag_again_for_each_buffer(seed: int) -> None:
    """A list of 300 kB on a watch that is eight seconds late, whatever fits into the socket buffers."""

    async def scene(loop: WiredLoop) -> None:
        server, client = await pair(loop)
        client.transport.get_extra_info("plug").connection.to_client.lag_s = 8.0
        for _ in range(3):
            server.transport.write(b"x" * 100_000)
        await asyncio.sleep(7.9)
        assert not client.data
        await asyncio.sleep(4.0)  # at 100 kB a second, three of them are for the bytes

        assert len(client.data) == 300_000

    ran(scene, seed)


def test_a_connection_that_is_reset_loses_what_is_under_way() -> None:
    """Both ends hear of it."""

    async def scene(loop: WiredLoop) -> None:
        server, client = await pair(loop)
        client.transport.write(b"lost")
        next(iter(loop.connections.values())).reset()
        await asyncio.sleep(1.0)

        assert (server.heard, client.heard) == (["made", "ConnectionResetError"],) * 2
        assert not server.data

    ran(scene)


def test_what_was_written_before_the_end_arrives_and_what_comes_after_it_is_refused() -> None:
    """The last words of a process; and those to a process that is gone."""

    async def scene(loop: WiredLoop) -> None:
        server, client = await pair(loop)
        client.transport.write(b"last words")
        client.transport.abort()
        await asyncio.sleep(0.0)
        server.transport.write(b"to nobody")
        await asyncio.sleep(1.0)

        assert bytes(server.data) == b"last words"
        assert server.heard[:2] == ["made", "eof"]
        assert server.transport.is_closing()

    ran(scene)


def test_a_half_open_connection_is_silent_until_keep_alive_finds_out() -> None:
    """45 seconds with the options of the operator's sockets; for ever without."""

    async def scene(loop: WiredLoop) -> None:
        server, client = await pair(loop)
        plug = client.transport.get_extra_info("plug")
        for option, value in ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3)):
            plug.setsockopt(socket.IPPROTO_TCP, option, value)
        plug.connection.fall_silent()
        client.transport.write(b"?")
        await asyncio.sleep(44.0)
        assert client.heard == ["made"]
        await asyncio.sleep(2.0)
        assert client.heard == ["made", "TimeoutError"]
        await asyncio.sleep(3600.0)

        assert server.heard == ["made"]
        assert not server.data

    ran(scene)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (WireFaultKind.CONNECT_REFUSED, ConnectionRefusedError),
        (WireFaultKind.CONNECT_UNANSWERED, TimeoutError),
    ],
)
def test_connections_that_are_not_accepted(kind: WireFaultKind, problem: type[OSError]) -> None:
    """Immediately, or after two minutes."""

    async def scene(loop: WiredLoop) -> None:
        for _ in range(200):
            await pair(loop)

    with pytest.raises(problem):
        ran(scene, 1, kind)


def test_http_clients_and_a_server_talk() -> None:
    """Ours, with several requests sent together, and aiohttp's, over kept connections."""

    async def echo(request: web.BaseRequest) -> web.Response:
        return web.Response(body=request.path.encode() + await request.read())

    async def scene(loop: WiredLoop) -> None:
        runner = web.ServerRunner(web.Server(echo, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, HOST, PORT).start()
        wire = Wire(f"http://{HOST}:{PORT}", None, None, 10, "test")
        writes = [(f"/{number}", b"x" * 50_000) for number in range(4)]
        answers = await wire.exchanges("POST", {}, writes, timeout_s=60.0, before=lambda: None)
        assert [each.content for each in answers] == [path.encode() + body for path, body in writes]
        await wire.close()
        make_socket: Any = lambda address: loop.plug(*address[:3])  # noqa: E731 - of aiohttp's type
        connector = aiohttp.TCPConnector(socket_factory=make_socket)
        async with aiohttp.ClientSession(connector=connector) as session:
            for _ in range(3):
                async with session.get(f"http://{HOST}:{PORT}/a") as response:
                    assert await response.read() == b"/a"
        assert loop.made == 2
        await runner.cleanup()
        await asyncio.sleep(1.0)
        assert not loop.connections

    ran(scene)
