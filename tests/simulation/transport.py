"""A SimulatedTransport is the way of one process to the API server: calls instead of HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import urlencode

from kubernetes_asyncio import client

from roadstead.server.request_handler import Request
from simulation.exchanges import Answer, Stream

ADDRESS = "http://api.simulated"
TOKEN = "simulated"


class Connections(Protocol):
    """What a transport needs of the network."""

    def send(self, sender: str, request: Request) -> asyncio.Future[Answer]:
        """Send a request; the future has its answer."""
        ...

    async def opened(self, sender: str, request: Request) -> Stream:
        """A watch."""
        ...

    def left(self, stream: Stream) -> None:
        """The client has closed a watch."""
        ...


class SimulatedTransport:
    """The way of one process to the API server: a :class:`plimsoll.kube.session.transport.Transport`."""

    pipelines = False

    def __init__(self, network: Connections, sender: str) -> None:
        self._network = network
        self._sender = sender
        self.address = ADDRESS
        self.configuration = client.Configuration(host=ADDRESS, api_key={"BearerToken": f"Bearer {TOKEN}"})

    async def exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        *,
        params: Mapping[str, str] | None,
        timeout_s: float,
        gate: Callable[[], None],
    ) -> Answer:
        """Status and body of one answer."""
        gate()
        path, _, asked = path.partition("?")
        request = Request(method, path, urlencode(params or {}) or asked, headers, content or b"")
        answer = self._network.send(self._sender, request)
        async with asyncio.timeout(timeout_s):
            return await answer

    async def exchanges(
        self,
        method: str,
        writes: Sequence[tuple[str, bytes]],
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        gate: Callable[[], None],
    ) -> list[Answer]:
        """Never called: nothing is sent together."""
        raise NotImplementedError

    @asynccontextmanager
    async def watch(
        self, path: str, headers: Mapping[str, str], params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Status and body of an answer without end."""
        request = Request("GET", path, urlencode(params), headers, b"")
        stream = await self._network.opened(self._sender, request)
        try:
            yield stream.status, stream.parts(silence_s)
        finally:
            self._network.left(stream)

    async def close(self) -> None:
        """Nothing is open."""
