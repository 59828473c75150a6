"""Opens aiohttp's client so that no connection outlives it.

When a request over TLS is aborted, its connection performs a TLS shutdown: the socket stays open until the
server has responded to that. By then aiohttp's connector no longer knows the connection, and closing it does
not wait for the socket. A command would thus end its event loop with the socket still open.
"""

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from weakref import WeakSet

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.abc import AbstractStreamWriter

#: A connection whose peer vanished silently (a machine, a NAT gateway) is closed within 45 seconds, as in
#: client-go; a watch that was cut off looks like a cluster in which nothing happens.
KEEP_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
if sys.platform == "linux":
    KEEP_ALIVE += [
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    ]

#: Seconds for the event loop to close sockets that were cut; it takes one or two iterations.
CUT_S = 1.0

#: Maximum number of concurrent connections.
CONNECTIONS = 100

#: Bytes of a response that are buffered before flow control stops the server.
READ_BUFFER_BYTES = 2**21

#: Opens a client with TLS settings; the flag says whether the environment names proxies.
OpenClient = Callable[[ssl.SSLContext, bool], contextlib.AbstractAsyncContextManager[aiohttp.ClientSession]]


@asynccontextmanager
async def opened_client(
    tls: ssl.SSLContext,
    has_proxies: bool,
    make_socket: Callable[[int, int, int], socket.socket] = socket.socket,
) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a client; on exit its sockets are closed as well, even if the peer does not respond.

    Args:
        tls: The TLS settings.
        has_proxies: Whether to look up proxies and .netrc, which takes two threads per request: where the
            environment names no proxy, that would be half the cost of a request.
        make_socket: Called with family, type and protocol; a simulation passes its own (docs/adr/0033).
    """
    sockets: WeakSet[socket.socket] = WeakSet()

    def opened(address: AddrInfoType) -> socket.socket:
        family, kind, protocol, *_ = address
        sockets.add(one := make_socket(family, kind, protocol))
        for option in KEEP_ALIVE:
            one.setsockopt(*option)
        return one

    connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=tls, socket_factory=opened)
    client = aiohttp.ClientSession(connector=connector, read_bufsize=READ_BUFFER_BYTES, trust_env=has_proxies)
    try:
        yield client
    finally:
        await client.close()
        await _cut(sockets)


async def _cut(sockets: WeakSet[socket.socket]) -> None:
    """Shut the sockets down, and let the event loop close them."""
    for each in sockets:
        with contextlib.suppress(OSError):  # the peer is gone already
            each.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CUT_S):
            while any(each.fileno() >= 0 for each in sockets):  # noqa: ASYNC110 - sockets have no event
                await asyncio.sleep(0)


async def bounded(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """The body of a response that is not the API server's; None when it has more than ``limit`` bytes."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
    return b"".join(parts)


class GatedBody(aiohttp.BytesPayload):
    """A body that passes the gate as it is sent: without its body a request is incomplete."""

    def __init__(self, content: bytes, gate: Callable[[], None]) -> None:
        super().__init__(content, content_type="application/json")
        self._gate = gate

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Write the body."""
        self._gate()
        await super().write_with_length(writer, content_length)
