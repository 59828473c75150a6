"""The endpoints /readyz, /healthz and /metrics."""

import asyncio
import io
import logging
import multiprocessing
import os
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest

from plimsoll.app import endpoints as module
from plimsoll.app.endpoints import PROBES, Endpoints, serving
from plimsoll.app.machine import connections
from plimsoll.app.machine.connections import AddressTaken, ConnectionLimits, OpenConnections
from plimsoll.app.machine.loop_thread import LoopThread
from plimsoll.telemetry.logs import configure


def endpoints(problems: dict[str, Any] | None = None, metrics: Callable[..., Any] | None = None) -> Endpoints:
    """What a process says of itself."""
    problems = {"unready": "", "broken": ""} if problems is None else problems

    async def nothing() -> bytes:
        return b"metric 1\n"

    return Endpoints(
        unready=lambda: problems["unready"],
        broken=lambda: problems["broken"],
        standing=lambda: "standing by for somebody",
        metrics=metrics or nothing,
    )


@asynccontextmanager
async def asking(said: Endpoints) -> AsyncIterator[Any]:
    """Status and text of a path."""
    async with (
        serving("127.0.0.1", [0], said) as (port,),
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
    ):

        async def ask(path: str, method: str = "GET") -> tuple[int, str]:
            async with http.request(method, path) as answer:
                return answer.status, await answer.text()

        yield ask


async def test_probes_say_what_is_wrong_and_who_leads() -> None:
    """Status for the kubelet, sentences for people."""
    problems = {"unready": "", "broken": ""}
    async with asking(endpoints(problems)) as ask:
        assert await ask("/readyz") == (200, "ok\nstanding by for somebody\n")
        assert await ask("/healthz") == (200, "ok\n")
        assert await ask("/metrics") == (200, "metric 1\n")
        problems.update(unready="waiting for the first list of pods")
        assert await ask("/readyz") == (
            503,
            "waiting for the first list of pods\nstanding by for somebody\n",
        )
        assert await ask("/healthz") == (200, "ok\n")
        problems.update(broken="the loop hangs")

        assert await ask("/readyz") == (503, "the loop hangs\nstanding by for somebody\n")
        assert await ask("/healthz") == (503, "the loop hangs\n")
        assert (await ask("/other"))[0] == 404
        assert (await ask("/healthz", "POST"))[0] == 405


async def test_probes_answer_while_the_main_loop_is_blocked() -> None:
    """They are served from another thread."""

    def probe(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), 5) as one:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            return one.makefile("rb").read()

    async with (
        LoopThread("probes") as thread,
        thread.entered(serving("127.0.0.1", [0], endpoints())) as ports,
    ):
        said = probe(ports[0])  # blocks this loop, so another thread must answer

    assert said.startswith(b"HTTP/1.1 200 OK")


async def test_metrics_that_the_main_loop_does_not_give_are_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prometheus receives an error response."""
    monkeypatch.setattr(module, "METRICS_S", 0.05)

    async def never() -> None:
        await asyncio.Event().wait()

    async with asking(endpoints(metrics=never)) as ask:
        assert await ask("/metrics") == (503, "the main event loop is busy\n")


@pytest.mark.parametrize(
    "sent", [b"", b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"]
)
async def test_a_connection_that_is_left_half_open_is_closed(sent: bytes) -> None:
    """Whatever its client leaves undone."""
    async with serving("127.0.0.1", [0], endpoints(), ConnectionLimits(9, 9, 0.2, 0.3)) as (port,):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(300):
            with suppress(ConnectionResetError):
                await reader.read()
        writer.close()


@asynccontextmanager
async def idle_connections(port: int, address: str, count: int) -> AsyncIterator[list[socket.socket]]:
    """Connections from an address of this machine, which send one byte."""
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:

        async def one() -> socket.socket:
            idle = stack.enter_context(socket.socket())
            idle.settimeout(0)
            idle.bind((address, 0))
            await loop.sock_connect(idle, ("127.0.0.1", port))
            await loop.sock_sendall(idle, b"G")
            return idle

        yield [await one() for _ in range(count)]


PROBE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@asynccontextmanager
async def pages_and_probes() -> AsyncIterator[tuple[int, int]]:
    """Both servers, as the process has them: the ports of metrics and of health."""
    said = endpoints()
    async with (
        LoopThread("election") as pages,
        LoopThread("probes") as probes,
        pages.entered(serving("127.0.0.1", [0], said)) as (metrics,),
        probes.entered(serving("127.0.0.1", [0], said.probes, PROBES)) as (health,),
    ):
        yield metrics, health


async def probed(port: int, address: str = "127.0.0.1") -> list[int]:
    """Statuses of both probes, asked from an address."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    said = []
    async with asyncio.timeout(300), aiohttp.ClientSession(connector=connector) as http:
        for path in ("/healthz", "/readyz"):
            async with http.get(f"http://127.0.0.1:{port}{path}") as answer:
                said.append(answer.status)
    return said


async def test_the_server_of_the_probes_serves_nothing_else() -> None:
    async with asking(endpoints().probes) as ask:
        assert await ask("/readyz") == (200, "ok\nstanding by for somebody\n")
        assert await ask("/metrics") == (404, "not found; there are /readyz and /healthz\n")


async def test_idle_connections_to_the_metrics_port_do_not_reach_the_probes() -> None:
    """Nor do they keep out a request to the metrics port, from another address or the same."""
    async with pages_and_probes() as (metrics, health):
        for _ in range(3):
            async with idle_connections(metrics, "127.0.0.1", 300):
                assert await probed(health) == [200, 200]
                assert await probed(metrics, "127.0.0.2") == [200, 200]
                assert await probed(metrics) == [200, 200]


async def test_idle_connections_to_the_health_port_keep_no_probe_out() -> None:
    """Whether from one address or from many: the oldest go."""
    async with pages_and_probes() as (_, health):
        async with (
            idle_connections(health, "127.0.0.2", 1) as (first,),
            idle_connections(health, "127.0.0.1", 300),
        ):
            assert await probed(health, "127.0.0.2") == [200, 200]
            assert await probed(health) == [200, 200]
            await asyncio.get_running_loop().sock_sendall(first, PROBE[1:])
            assert await asyncio.get_running_loop().sock_recv(first, 12) == b"HTTP/1.1 200"
        async with AsyncExitStack() as stack:
            for last in range(3, 13):
                await stack.enter_async_context(idle_connections(health, f"127.0.0.{last}", 15))
            assert await probed(health, "127.0.0.2") == [200, 200]


@pytest.mark.parametrize("sends_late", [False, True], ids=["at-once", "late"])
@pytest.mark.parametrize("sent", [b"G", b"\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-"])
async def test_a_burst_of_connections_from_its_own_address_keeps_no_probe_out(
    sent: bytes, sends_late: bool
) -> None:
    """Three hundred that follow it simultaneously, whatever they send, also before its request."""
    loop = asyncio.get_running_loop()
    async with serving("127.0.0.1", [0], endpoints().probes, PROBES) as (port,):
        with ExitStack() as stack:  # nothing is accepted before this loop runs
            probe, *others = (
                stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(301)
            )
            probe.sendall(b"" if sends_late else PROBE)
            for other in others:
                other.sendall(sent)
            probe.settimeout(0)
            if sends_late:
                await asyncio.sleep(0.1)  # the others are accepted
                await loop.sock_sendall(probe, PROBE)

            async with asyncio.timeout(300):
                assert await loop.sock_recv(probe, 12) == b"HTTP/1.1 200"


def test_of_too_many_connections_the_oldest_without_a_request_goes() -> None:
    requested: set[str] = set()
    limits = ConnectionLimits(4, 2, 1.0, 1.0)
    open_ones: OpenConnections[str] = OpenConnections(limits, requested.__contains__)

    assert [open_ones.opened(key, key[0]) for key in ("a1", "a2", "b1")] == [None, None, None]
    assert open_ones.opened("a3", "a") == "a1"
    requested.add("a2")
    assert open_ones.opened("a4", "a") == "a3"
    requested.add("a4")
    assert open_ones.opened("a5", "a") == "a5"  # the others of this address are served
    assert open_ones.opened("c1", "c") is None
    assert open_ones.opened("d1", "d") == "b1"
    open_ones.closed("a2")
    assert open_ones.opened("e1", "e") is None
    requested.update(("c1", "d1", "e1"))
    assert open_ones.opened("f1", "f") == "f1"


async def test_a_client_that_sends_too_much_is_cut_off() -> None:
    """Neither headers nor a body are kept beyond the limit."""
    async with serving("127.0.0.1", [0], endpoints()) as (port,):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"X-Long: " + b"a" * 4000 + b"\r\n")
        writer.write((b"X-Long: " + b"b" * 4000 + b"\r\n") * 4 + b"\r\n")
        async with asyncio.timeout(300):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n")
        async with asyncio.timeout(300):
            assert (await reader.read()).startswith(b"HTTP/1.1 200")  # it does not wait for the body
        writer.close()


def test_without_a_free_descriptor_there_is_one_line_and_connections_are_accepted_later() -> None:
    """Clients that connected meanwhile are served."""
    context = multiprocessing.get_context("fork")
    seen, told = context.Pipe(duplex=False)
    process = context.Process(target=out_of_descriptors, args=(told,))
    process.start()
    told.close()
    lines, cpu_s, answers = seen.recv() if seen.poll(60) else ("", 0.0, [])
    process.join(60)

    assert answers == [200] * 5
    assert [line for line in lines.splitlines() if "accept" in line.lower()] == lines.splitlines()
    assert lines.count("Too many open files") == 1
    assert cpu_s < 0.2


def out_of_descriptors(told: Any) -> None:
    """Serve without a free descriptor for a while; tells the log, the CPU time and the answers' statuses."""
    connections.PAUSE_S = 0.01
    handler = configure("text", "INFO")
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(log := io.StringIO())

    async def attempt() -> tuple[float, list[int]]:
        loop = asyncio.get_running_loop()
        async with serving("127.0.0.1", [0], endpoints()) as (port,):
            clients = [socket.socket() for _ in range(5)]
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(0), hard))
            began = time.process_time()
            for client in clients:
                client.settimeout(0)
                await loop.sock_connect(client, ("127.0.0.1", port))
                await loop.sock_sendall(client, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            await asyncio.sleep(0.3)
            spent = time.process_time() - began
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            return spent, [int((await loop.sock_recv(client, 99)).split()[1]) for client in clients]

    spent, answers = asyncio.run(attempt())
    told.send((log.getvalue(), spent, answers))


async def test_a_port_that_is_taken_is_one_sentence() -> None:
    """What is wrong, and which option helps."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            AddressTaken, match=f"cannot listen on 127.0.0.1:{port}: another process .*--metrics-port"
        ):
            async with serving("127.0.0.1", [0, port], endpoints()):
                pass
