"""A virtual event loop with a network in memory.

``sock_connect``, ``create_connection`` and ``create_server`` are asyncio's, on plugs instead of sockets.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import math
import socket
import ssl as tls
from asyncio import sslproto
from collections.abc import Callable, Collection
from enum import StrEnum
from random import Random
from typing import Any, cast

from simulation.loop import PROCESS, VirtualLoop
from simulation.wire.faults import WireFaultPlan
from simulation.wire.lines import CAPACITIES, ONE_WAY_S, RATES, Address, Connection, Line, Plug
from simulation.wire.transports import WireTransport
from simulation.wire.weather import Weather

#: Seconds until a kernel gives up a connection without an answer.
GIVE_UP_S = 127.0


class Listener(asyncio.AbstractServer):
    """A server's socket that listens."""

    def __init__(
        self,
        loop: WiredLoop,
        address: Address,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        context: tls.SSLContext | None,
    ) -> None:
        self._loop = loop
        self._address = address
        self._make_protocol = make_protocol
        self._tls = context
        self.context = contextvars.copy_context()

    @property
    def sockets(self) -> tuple[Listener, ...]:
        """It is its own socket."""
        return (self,)

    def getsockname(self) -> Address:
        """Where it listens."""
        return self._address

    def accept(self, plug: Plug) -> None:
        """A client has come."""
        self._loop.attach(plug, self._make_protocol(), self._tls)

    def close(self) -> None:
        """Listen no more."""
        self._loop.listeners.pop(self._address, None)

    async def wait_closed(self) -> None:
        """It is closed."""

    def is_serving(self) -> bool:
        """Whether it listens."""
        return self._loop.listeners.get(self._address) is self

    async def start_serving(self) -> None:
        """It does."""

    async def serve_forever(self) -> None:
        """Listen until cancelled."""
        await asyncio.Event().wait()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop."""
        return self._loop


class WiredLoop(VirtualLoop):
    """A virtual loop whose connections are in memory.

    Args:
        random: Orders what is ready.
        network: Cuts and delays bytes.
        make_weather: Given the time of the loop.

    Attributes:
        connections: Those that are open, by number.
        problems: Errors that protocols have let through.
        weather: What befalls them.
    """

    def __init__(
        self, random: Random, network: Random, make_weather: Callable[[Callable[[], float]], Weather]
    ) -> None:
        super().__init__(random)
        self.weather = make_weather(self.time)
        self._network = network
        self._plugs = 0
        self.made = 0
        self.listeners: dict[Address, Listener] = {}
        self.connections: dict[int, Connection] = {}
        self.problems: list[BaseException] = []

    def plug(self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, _protocol: int = 0) -> Plug:
        """A socket of the process that asks."""
        self._plugs += 1
        process = PROCESS.get()
        return Plug(family, kind, self._plugs, "" if process is None else process.name)

    # -- what asyncio's loops have -------------------------------------------------------------------------

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connect a plug."""
        way_s = self._network.uniform(*ONE_WAY_S)
        await asyncio.sleep(way_s)
        accepting = self.weather.accepts(sock)
        if accepting is None:
            await asyncio.sleep(GIVE_UP_S)
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
        await asyncio.sleep(way_s)
        listener = self.listeners.get((address[0], address[1]))
        if listener is None or not accepting:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed {address!r}")
        self._connected(sock, listener)

    def _connected(self, client: Plug, listener: Listener) -> None:
        self.made += 1
        server = Plug(client.family, client.type, client.fileno(), "")
        server.context = listener.context.copy()
        capacity = self._network.choice(CAPACITIES)
        rate = self._network.choice(RATES)
        to_server, to_client = (Line(self, self._network, capacity, each) for each in (math.inf, rate))
        connection = Connection(
            self.made, client, server, to_server, to_client, self._over, self.weather.written
        )
        client.plug_in(connection, to_client, to_server)
        server.plug_in(connection, to_server, to_client)
        self.connections[connection.number] = connection
        self.call_soon(listener.accept, server, context=server.context)

    def _over(self, connection: Connection) -> None:
        self.connections.pop(connection.number, None)

    async def getaddrinfo(self, host: Any, *_: Any, **__: Any) -> Any:
        """There are no names."""
        raise socket.gaierror(socket.EAI_NONAME, f"Name or service not known: {host}")

    async def create_connection(  # type: ignore[override] # typeshed knows all combinations of arguments
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        server_hostname: str | None = None,
        **options: Any,
    ) -> Any:
        """A transport and its protocol."""
        plug = sock
        if plug is None:
            plug = self.plug()
            await self.sock_connect(plug, (host, port))
        plug.context = contextvars.copy_context()
        protocol = make_protocol()
        waiter = self.create_future()
        transport = self.attach(plug, protocol, ssl, waiter, server_hostname, **options)
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def create_server(  # type: ignore[override] # likewise
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        host: str = "",
        port: int = 0,
        *,
        ssl: Any = None,
        **_: Any,
    ) -> Listener:
        """Listen."""
        address = (host, port or 6443)
        self.listeners[address] = listener = Listener(self, address, make_protocol, ssl)
        return listener

    def attach(
        self,
        plug: Plug,
        protocol: asyncio.BaseProtocol,
        context: tls.SSLContext | None,
        waiter: asyncio.Future[None] | None = None,
        server_hostname: str | None = None,
        **options: Any,
    ) -> asyncio.Transport:
        """A transport on a plug, with TLS where there is a context."""
        if context is None:
            transport = WireTransport(self, plug, protocol, self.problems.append)
            self.call_soon(transport.begin, waiter, context=plug.context)
            return transport
        done: Any = waiter
        secured: Any = sslproto.SSLProtocol(
            self, protocol, context, done, plug.owner == "", server_hostname, **options
        )
        transport = WireTransport(self, plug, secured, self.problems.append)
        self.call_soon(transport.begin, context=plug.context)
        return cast("asyncio.Transport", secured._app_transport)


def wired_loop(order: Random, random: Random, until: float, kinds: Collection[StrEnum] | None) -> WiredLoop:
    """A loop whose connections meet faults of some kinds, until the faults stop; None draws the kinds."""
    drawn, befalls, cuts = (Random(random.getrandbits(64)) for _ in range(3))

    def weather(time: Callable[[], float]) -> Weather:
        return Weather(befalls, WireFaultPlan(drawn, time, until, kinds))

    return WiredLoop(order, cuts, weather)
