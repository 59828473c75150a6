"""The endpoints /readyz, /healthz and /metrics."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest

from plimsoll.app import endpoints as module
from plimsoll.app.connections import AddressTaken, Limits
from plimsoll.app.endpoints import PROBES, Endpoints, serving
from plimsoll.app.machine.loop_thread import LoopThread


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
    async with serving("127.0.0.1", [0], endpoints(), Limits(9, 9, 0.2, 0.3)) as (port,):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(60):
            with suppress(ConnectionResetError):
                await reader.read()
        writer.close()


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
