"""HTTP connections with limits: of their number, of those from one address, of what each sends, and of time.

Each connection serves one request. When there are too many, the oldest one without a request is closed, so
idle connections keep no others out, not even those from their own address. A request counts from when the
system has received it, and Linux hands connections over once they have sent something: a client that sends
its request immediately is never without one. After an error, as without a free file descriptor, the next
connection is accepted after a pause.
"""

import asyncio
import itertools
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Generic, Self, TypeVar

import structlog
from aiohttp import web
from msgspec import Struct

from plimsoll.framework.errors import PlimsollError
from plimsoll.preflight.ports import REMEDY, obstacle

K = TypeVar("K", bound=Hashable)

#: Bytes that a client may send, in the request line, headers and body together.
SENT = 16 * 1024

#: Connections that the system completes before they are accepted, and those that are accepted at a time.
BACKLOG, BATCH = 1024, 128

#: Seconds until connections are accepted again after an error.
PAUSE_S = 1.0

#: Seconds after which Linux lets a connection be accepted that has sent nothing.
SILENT_S = 1

#: What ends the headers of a request.
HEADERS_END = b"\r\n\r\n"


class AddressTaken(PlimsollError):
    """A port cannot be listened on; a retry would not help."""


class ConnectionLimits(Struct, frozen=True):
    """ConnectionLimits of the connections to one server.

    Attributes:
        total: Maximum number of open connections.
        per_address: The same from one address.
        request_s: Maximum seconds until the request is complete.
        connection_s: Maximum seconds of a connection.
    """

    total: int
    per_address: int
    request_s: float
    connection_s: float


class OpenConnections(Generic[K]):
    """Decides which connection is closed when there are too many.

    Args:
        has_request: Whether a connection's request has arrived, read or not.
    """

    def __init__(self, limits: ConnectionLimits, has_request: Callable[[K], bool]) -> None:
        self._limits = limits
        self._has_request = has_request
        self._addresses: dict[K, str] = {}  # the oldest first

    def opened(self, key: K, address: str) -> K | None:
        """Add a connection; returns the one to close: the oldest without a request, or this one."""
        self._addresses[key] = address
        same = [each for each, other in self._addresses.items() if other == address]
        if len(same) > self._limits.per_address:
            candidates = same
        elif len(self._addresses) > self._limits.total:
            candidates = list(self._addresses)
        else:
            return None
        excess = next((each for each in candidates if not self._has_request(each)), key)
        self.closed(excess)
        return excess

    def closed(self, key: K) -> None:
        """Forget a connection."""
        self._addresses.pop(key, None)


class _Connection(web.RequestHandler):
    """Ends when its client sends too much."""

    __slots__ = ("_client", "_received")

    _client: socket.socket
    _received: bytes

    def accepted(self, client: socket.socket) -> Self:
        """Begin to count."""
        self._client, self._received = client, b""
        return self

    def has_request(self) -> bool:
        """Whether the headers of a request have arrived; the parser passes over empty lines before it."""
        try:
            waiting = self._client.recv(SENT, socket.MSG_PEEK)
        except OSError:  # nothing waits, or it has ended
            waiting = b""
        return HEADERS_END in (self._received + waiting).lstrip(b"\r\n")

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, within the limit."""
        self._received += data
        if len(self._received) <= SENT:
            super().data_received(data)
        elif isinstance(self.transport, asyncio.Transport):
            self.transport.abort()


def _has_request(connection: web.RequestHandler) -> bool:
    return isinstance(connection, _Connection) and connection.has_request()


class _Server(web.Server):
    """Keeps the limits: of clients that send half a request, or do not read the response, or are many."""

    def __init__(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], limits: ConnectionLimits
    ) -> None:
        super().__init__(self._handle, access_log=None, lingering_time=0)
        self._handler = handler
        self._limits = limits
        self._open: OpenConnections[web.RequestHandler] = OpenConnections(limits, _has_request)
        self._ends: dict[web.RequestHandler, tuple[asyncio.Transport, list[asyncio.TimerHandle]]] = {}

    def begin(self, client: socket.socket) -> _Connection:
        """What serves a new connection."""
        return _Connection(self, loop=asyncio.get_running_loop(), **self._kwargs).accepted(client)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.protocol in self._ends:
            self._ends[request.protocol][1][0].cancel()
        response = await self._handler(request)
        response.force_close()
        return response

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Start the time limits; close a connection if there are too many."""
        super().connection_made(handler, transport)
        loop = asyncio.get_running_loop()
        spans = self._limits.request_s, self._limits.connection_s
        self._ends[handler] = transport, [loop.call_later(span, transport.abort) for span in spans]
        address, *_ = transport.get_extra_info("peername") or ("",)
        excess = self._open.opened(handler, address)
        if excess is not None:
            loop.call_soon(self._ends[excess][0].abort)  # aiohttp must have begun with a new one

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Cancel the time limits: the connection has ended."""
        super().connection_lost(handler, exc)
        self._open.closed(handler)
        _, ends = self._ends.pop(handler, (None, []))
        for end in ends:
            end.cancel()


@asynccontextmanager
async def listening(
    address: str,
    ports: Sequence[int],
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    limits: ConnectionLimits,
) -> AsyncIterator[list[int]]:
    """Serve within the context, on free ports in place of 0; yields the ports.

    Raises:
        AddressTaken: Another process listens there, or the address is not this machine's.
    """
    server = _Server(handler, limits)
    with ExitStack() as stack:
        sockets = [stack.enter_context(_listener(address, port)) for port in ports]
        tasks = [asyncio.create_task(_accept(each, server)) for each in sockets]
        try:
            yield [int(each.getsockname()[1]) for each in sockets]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            server.pre_shutdown()
            await server.shutdown(timeout=0.5)


def _listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listener = socket.create_server((address, port), family=family, backlog=BACKLOG)
    except OSError as exc:
        raise AddressTaken(f"cannot listen on {address}:{port}: {obstacle(exc)}; {REMEDY}") from exc
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, SILENT_S)
    listener.setblocking(False)  # noqa: FBT003 - the library's signature
    return listener


async def _accept(listener: socket.socket, server: _Server) -> None:
    """Accept connections until cancelled; asyncio's own loop logs 128 lines a second without descriptors."""
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        for turn in itertools.count(1):
            try:
                client, _ = await loop.sock_accept(listener)  # pauses only if no connection waits
            except ConnectionAbortedError:
                continue
            except OSError as exc:
                problem = exc.strerror or str(exc)
                structlog.get_logger("plimsoll").error("connections cannot be accepted", problem=problem)
                await asyncio.sleep(PAUSE_S)
                continue
            group.create_task(_begin(client, server))
            if turn % BATCH == 0:
                await asyncio.sleep(0)


async def _begin(client: socket.socket, server: _Server) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: server.begin(client), client)
    except OSError:  # it ended meanwhile
        client.close()
