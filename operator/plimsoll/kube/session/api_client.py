"""Opens kubernetes-asyncio's client so that no connection outlives it.

A request that is broken off over TLS ends its connection politely: the socket stays open until the server has
said goodbye, and aiohttp's connector, which forgets the connection, does not wait for that when it is closed.
A command ends its event loop then, with the socket still open.
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

#: A connection whose other end is gone without a word (a machine, a NAT gateway) ends within 45 seconds, as
#: client-go's does; a watch that is cut off looks like a cluster in which nothing happens.
KEEP_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
if sys.platform == "linux":
    KEEP_ALIVE += [
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    ]

#: Seconds that the event loop has to close sockets that were cut; it takes a turn or two.
CUT_S = 1.0


@asynccontextmanager
async def opened_client(
    configuration: client.Configuration,
    make_socket: Callable[[int, int, int], socket.socket] = socket.socket,
) -> AsyncIterator[client.ApiClient]:
    """A client; when it is closed its sockets are, also where the other end does nothing.

    Args:
        configuration: The address, credentials and TLS.
        make_socket: Given family, type and protocol; a simulation hands in its own (docs/adr/0033).
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
    connector._socket_factory = opened  # noqa: SLF001 - the library makes its connector without one
    try:
        yield one
    finally:
        await one.close()
        await _cut(sockets)


async def _cut(sockets: WeakSet[socket.socket]) -> None:
    """Tell the event loop that the other ends are gone, and let it close the sockets."""
    for each in sockets:
        with contextlib.suppress(OSError):  # the other end is gone indeed
            each.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CUT_S):
            while any(each.fileno() >= 0 for each in sockets):  # noqa: ASYNC110 - sockets have no event for it
                await asyncio.sleep(0)
