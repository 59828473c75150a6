"""Sends requests over kept-alive HTTP/1.1 connections with little overhead for small requests and responses.

A bound pod is two writes, and over TLS each takes half the CPU time that it takes through aiohttp's client:
there are no redirects, cookies, traces or response streams (docs/adr/0016). llhttp parses the responses
within fixed bounds (response_parser.py). Watches and everything that goes through a proxy use aiohttp.

An exchange that fails closes its connection, so a late response cannot be mistaken for that of another
request.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import cast
from urllib.parse import quote, urlencode, urlsplit

from plimsoll.kube.session.response_parser import BODY_BYTES, READ_BYTES, Response, ResponseParser

#: Idle seconds after which a connection is not used again: less than the idle timeout of servers.
IDLE_S = 60.0

#: Characters of a path that are not escaped.
SAFE = "/:@!$&'()*+,;=~%"
_UNESCAPED = re.compile(r"[A-Za-z0-9_.\-/:@!$&'()*+,;=~%]*").fullmatch

#: Maximum number of cached sets of headers.
HEADS = 16


class _Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self, lost: "Callable[[_Connection], None]") -> None:
        self.idle_since = 0.0
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._parser = ResponseParser()
        self._answer: asyncio.Future[Response] | None = None
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or answer.done():
            self.abort()  # it responds to no request
            return
        try:
            response = self._parser.feed(data)
        except ValueError as exc:
            answer.set_exception(ConnectionError(f"the answer is no HTTP that can be used: {exc}"))
            self.abort()
            return
        if response is not None:
            answer.set_result(response)

    def eof_received(self) -> None:
        self._ended = True
        if self._answer is None or self._answer.done():
            return
        if (response := self._parser.end()) is not None:
            self._answer.set_result(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._lost(self)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the connection ended before the answer"))

    @property
    def is_open(self) -> bool:
        """Whether another exchange may begin."""
        return not self._ended and self._transport is not None and not self._transport.is_closing()

    @property
    def earlier(self) -> list[Response]:
        """The responses before the last one, if several requests were sent together."""
        return self._parser.earlier

    async def exchange(
        self, request: bytes, deadline: float, count: int = 1, most: int = BODY_BYTES
    ) -> Response:
        """Send requests; wait for the last response until ``deadline``, in the event loop's time."""
        self._parser.begin(count, most)
        if self._transport is None or not self.is_open:
            raise ConnectionResetError("the connection ended before the request")
        loop = asyncio.get_running_loop()
        answer = self._answer = loop.create_future()
        # A timer on the future, not on the task: asyncio.timeout costs three times as much.
        timer = loop.call_at(deadline, _give_up, answer)
        try:
            self._transport.write(request)
            response: Response = await answer
            return response
        finally:
            timer.cancel()

    def abort(self) -> None:
        """Close the connection immediately."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()


def _give_up(answer: "asyncio.Future[Response]") -> None:
    if not answer.done():
        answer.set_exception(TimeoutError("no answer in time"))


class Wire:
    """A pool of connections to one server.

    Args:
        address: The server's address, including the prefix of all paths.
        tls: The TLS settings; None for plain HTTP.
        server_hostname: The name in the certificate, if it is not the host of the address.
    """

    def __init__(
        self, address: str, tls: ssl.SSLContext | None, server_hostname: str | None, limit: int, agent: str
    ) -> None:
        url = urlsplit(address)
        self._host = url.hostname or ""
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._prefix = url.path.rstrip("/")
        self._tls = tls if url.scheme == "https" else None
        self._server_hostname = (server_hostname or self._host) if self._tls is not None else None
        self._common = f"Host: {url.netloc.rpartition('@')[2]}\r\nUser-Agent: {agent}\r\n"
        self._heads: dict[tuple[tuple[str, str], ...], bytes] = {}
        self._places = asyncio.Semaphore(limit)
        self._open: dict[_Connection, None] = {}  # in the order of their creation
        self._idle: list[_Connection] = []
        self._is_closed = False

    async def exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        params: Mapping[str, str] | None = None,
        timeout_s: float,
        before: Callable[[], None],
    ) -> Response:
        """Send one request and wait for its response.

        The timeout includes the wait for a connection. ``before`` is called right before sending; if it
        raises, nothing is sent. A read over a connection that was kept is repeated once if that had ended.

        Raises:
            TimeoutError: No response arrived in time.
            OSError: The connection failed, or the response is missing or not HTTP.
        """
        request = self._request(method, path, headers, body, params)
        if method != "GET":
            return (await self._exchanged(request, 1, timeout_s, before))[0]
        began, was_kept = asyncio.get_running_loop().time(), bool(self._idle)
        try:
            return (await self._exchanged(request, 1, timeout_s, before, READ_BYTES))[0]
        except ConnectionError:
            if not was_kept:
                raise
        # The server has closed a connection that was idle.
        left_s = timeout_s - (asyncio.get_running_loop().time() - began)
        return (await self._exchanged(request, 1, left_s, before, READ_BYTES))[0]

    async def exchanges(
        self,
        method: str,
        headers: Mapping[str, str],
        writes: Sequence[tuple[str, bytes]],
        *,
        timeout_s: float,
        before: Callable[[], None],
    ) -> list[Response]:
        """Send several requests together over one connection (pipelining); a server responds in their order.

        ``writes`` are paths and bodies. If the connection ends early, the responses received until then are
        returned, at least one.

        Raises:
            TimeoutError: No response arrived in time.
            OSError: The connection failed, or the first response is missing or not HTTP.
        """
        requests = b"".join([self._request(method, path, headers, body, None) for path, body in writes])
        return await self._exchanged(requests, len(writes), timeout_s, before)

    async def _exchanged(
        self,
        requests: bytes,
        count: int,
        timeout_s: float,
        before: Callable[[], None],
        most: int = BODY_BYTES,
    ) -> list[Response]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        if self._places.locked() or (connection := self._kept()) is None:
            async with asyncio.timeout_at(deadline):
                connection = await self._waited_for()
        else:
            await self._places.acquire()  # one is free
        is_sent = False
        try:
            before()
            is_sent = True
            response = await connection.exchange(requests, deadline, count, most)
        except BaseException as exc:
            connection.abort()
            if is_sent and isinstance(exc, OSError) and connection.earlier:
                return connection.earlier
            raise
        else:
            if response.is_last or not connection.is_open:
                connection.abort()
            else:
                connection.idle_since = loop.time()
                self._idle.append(connection)
            return [*connection.earlier, response]
        finally:
            self._places.release()

    async def _waited_for(self) -> _Connection:
        """A connection, together with the place that it occupies."""
        await self._places.acquire()
        try:
            return self._kept() or await self._connected()
        except BaseException:
            self._places.release()
            raise

    async def close(self) -> None:
        """Close all connections; those being established are closed once they are open."""
        self._is_closed = True
        for connection in tuple(self._open):
            connection.abort()
        while self._open:  # noqa: ASYNC110 - aborted transports report their end in later turns of the loop
            await asyncio.sleep(0)

    def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        params: Mapping[str, str] | None,
    ) -> bytes:
        target = self._prefix + path
        if not _UNESCAPED(target):
            path, _, query = target.partition("?") if method == "GET" else (target, "", "")
            target = quote(path, safe=SAFE) + (f"?{query}" if query else "")
        if params:
            target += f"{'&' if '?' in target else '?'}{urlencode(params)}"
        return b"%s %s%s%d\r\n\r\n%s" % (
            method.encode("latin-1"),
            target.encode("latin-1"),
            self._head(headers),
            len(body),
            body,
        )

    def _head(self, headers: Mapping[str, str]) -> bytes:
        """The bytes between the target and the Content-Length: the same for many requests."""
        key = tuple(headers.items())
        head = self._heads.get(key)
        if head is None:
            lines = "".join(f"{name}: {value}\r\n" for name, value in key)
            if lines.count("\n") != len(key):
                raise ValueError("a header has more than one line")
            head = f" HTTP/1.1\r\n{self._common}{lines}Content-Length: ".encode("latin-1")
            if len(self._heads) >= HEADS:  # tokens are replaced from time to time
                self._heads.clear()
            self._heads[key] = head
        return head

    def _kept(self) -> _Connection | None:
        """The most recently used connection, so that idle ones age and are closed."""
        oldest = asyncio.get_running_loop().time() - IDLE_S
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    async def _connected(self) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self._over),
            self._host,
            self._port,
            ssl=self._tls,
            server_hostname=self._server_hostname,
        )
        if self._is_closed:
            connection.abort()
            raise ConnectionAbortedError("closed meanwhile")
        if connection.is_open:
            self._open[connection] = None
        return connection

    def _over(self, connection: _Connection) -> None:
        self._open.pop(connection, None)
        with contextlib.suppress(ValueError):
            self._idle.remove(connection)
