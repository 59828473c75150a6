"""No connection outlives the client that made it, even if the server hangs."""

from __future__ import annotations

import asyncio
import base64
import functools
import gc
import socket
import sys
import threading
from typing import TYPE_CHECKING, cast

import aiohttp
import pytest
import yaml

from plimsoll.cli.callers.pod_proxy import ask_pod
from plimsoll.kube.session.credentials import loader
from plimsoll.kube.session.http_client import opened_client
from plimsoll.kube.session.http_transport import HTTPTransport, tls_of
from plimsoll.kube.session.session import Session, connected
from roadstead.certificates import loopback_identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


class Deaf(asyncio.Protocol):
    """Hears one request, then nothing: no goodbye either."""

    def __init__(self, heard: threading.Event) -> None:
        self._heard = heard
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.pause_reading()
        self._heard.set()


@pytest.fixture
async def deaf(tmp_path: Path) -> AsyncIterator[tuple[Path, threading.Event]]:
    """The kubeconfig of a deaf server, and whether it has heard the request."""
    identity, heard, made = loopback_identity(), threading.Event(), list[Deaf]()

    def accept() -> Deaf:
        made.append(one := Deaf(heard))
        return one

    server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0, ssl=identity.context)
    cluster = {
        "server": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}",
        "certificate-authority-data": base64.b64encode(identity.certificate).decode(),
    }
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "a-token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    yield path, heard
    server.close()
    for each in made:
        if each._transport is not None:
            each._transport.abort()


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda session: session.request("GET", "/api"), id="a-read"),
        pytest.param(lambda session: session.request("POST", "/api", {}), id="a-write"),
        pytest.param(lambda session: ask_pod(session, ("a", "b", 80), "/c", "d"), id="a-pod"),
    ],
)
async def test_a_command_that_is_broken_off_leaves_no_socket(
    deaf: tuple[Path, threading.Event], ask: Callable[[Session], Awaitable[object]]
) -> None:
    """TLS would wait for the server to say goodbye, longer than the command's event loop lives."""
    kubeconfig, heard = deaf

    async def command() -> None:
        async with connected(kubeconfig) as session:
            asking = asyncio.ensure_future(ask(session))
            await asyncio.to_thread(heard.wait, 60)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    await asyncio.to_thread(asyncio.run, command())

    gc.collect()  # it would find the socket
    assert heard.is_set()


async def test_no_socket_outlives_the_client_however_far_it_has_come(
    deaf: tuple[Path, threading.Event],
) -> None:
    """One was refused, one waits for the server's part of TLS, one for an answer."""
    kubeconfig, heard = deaf
    made: list[socket.socket] = []

    def make(family: int, kind: int, protocol: int) -> socket.socket:
        made.append(one := socket.socket(family, kind, protocol))
        return one

    hello = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        hello.set()
        await reader.read()
        writer.close()

    loaded = await loader(kubeconfig)()
    (cluster,) = yaml.safe_load(kubeconfig.read_text())["clusters"]
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        refused = refusing.getsockname()[1]
        silent = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with opened_client(tls_of(loaded.configuration), has_proxies=False, make_socket=make) as client:
            with pytest.raises(aiohttp.ClientConnectionError):
                await client.get(f"https://127.0.0.1:{refused}/")
            asking = [
                asyncio.ensure_future(client.get(f"{server}/"))
                for server in (
                    cluster["cluster"]["server"],
                    f"https://127.0.0.1:{silent.sockets[0].getsockname()[1]}",
                )
            ]
            await asyncio.to_thread(heard.wait, 60)
            await hello.wait()
        open_still = [each.fileno() >= 0 for each in made]
        ends = await asyncio.gather(*asking, return_exceptions=True)
        silent.close()

    assert len(made) >= 3
    assert not any(open_still)
    assert all(isinstance(each, aiohttp.ClientError) for each in ends)


async def test_a_watch_whose_other_end_is_gone_ends(
    deaf: tuple[Path, threading.Event],
) -> None:
    """By the kernel's keep-alive, within 45 seconds; the clock of a watch without events would take 320."""
    kubeconfig, heard = deaf
    made: list[socket.socket] = []

    def make(family: int, kind: int, protocol: int) -> socket.socket:
        made.append(one := socket.socket(family, kind, protocol))
        return one

    loaded = await loader(kubeconfig)()
    opening = functools.partial(opened_client, make_socket=make)
    transport = HTTPTransport(loaded.configuration, open_client=opening)
    asking = asyncio.ensure_future(_first_part(transport))
    await asyncio.to_thread(heard.wait, 60)
    assert made[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    if sys.platform == "linux":
        idle, every, times = (
            made[0].getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle + every * times == 45
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await transport.close()


async def _first_part(transport: HTTPTransport) -> bytes:
    async with transport.watch("/api", {}, {}, 60.0) as (_, parts):
        return await anext(parts)
