"""Opens kubernetes-asyncio's client so that no connection outlives it.

When a request over TLS is aborted, its connection performs a TLS shutdown: the socket stays open until the
server has responded to that. By then aiohttp's connector no longer knows the connection, and closing it does
not wait for the socket. A command would thus end its event loop with the socket still open.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakSet

from aiohttp import AddrInfoType
from kubernetes_asyncio import client

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


@asynccontextmanager
async def opened_client(
    configuration: client.Configuration,
    make_socket: Callable[[int, int, int], socket.socket] = socket.socket,
) -> AsyncIterator[client.ApiClient]:
    """Open a client; on exit its sockets are closed as well, even if the peer does not respond.

    Args:
        configuration: The address, credentials and TLS settings.
        make_socket: Called with family, type and protocol; a simulation passes its own (docs/adr/0033).
    """
    sockets: WeakSet[socket.socket] = WeakSet()

    def opened(address: AddrInfoType) -> socket.socket:
        family, kind, protocol, *_ = address
        sockets.add(one := make_socket(family, kind, protocol))
        for option in KEEP_ALIVE:
            one.setsockopt(*option)
        return one

    one = client.ApiClient(configuration=configuration)
    connector: Any = one.rest_client.pool_manager.connector
    connector._socket_factory = opened  # noqa: SLF001 - the library has no argument for it
    try:
        yield one
    finally:
        await one.close()
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
