"""Writes over kept connections: HTTP/1.1 with little between a small request and its small answer.

A bound pod is two writes, and over TLS each cost 0.29 ms of CPU by aiohttp's client and costs 0.13 ms here:
no redirects, cookies, traces or response streams (docs/adr/0016). Reads, watches and whatever goes through a
proxy stay with aiohttp.

An exchange that does not end well closes its connection: an answer that comes late is nobody else's.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, urlencode, urlsplit

#: Bytes of an answer: of its head, and of all of it.
HEAD_BYTES, ANSWER_BYTES = 2**16, 2**26

#: Seconds without a request after which a connection is not used again: before a server closes it.
IDLE_S = 60.0

#: Characters of a path that stand for themselves.
SAFE = "/:@!$&'()*+,;=~%"


@dataclass(frozen=True, slots=True)
class Response:
    """An answer.

    Attributes:
        status: HTTP's.
        content: The body.
        is_last: Whether the server closes the connection behind it.
    """

    status: int
    content: bytes
    is_last: bool


class _Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self, lost: "Callable[[_Connection], None]") -> None:
        self.idle_since = 0.0
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._answer: asyncio.Future[Response] | None = None
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.abort()  # nobody asked
            return
        self._received += data
        self._look()

    def eof_received(self) -> None:
        self._ended = True
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._lost(self)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the connection ended before the answer"))

    @property
    def is_open(self) -> bool:
        """Whether another exchange may begin."""
        return not self._ended and self._transport is not None and not self._transport.is_closing()

    async def exchange(self, request: bytes) -> Response:
        """Send a request and wait for its answer."""
        assert self._transport is not None
        self._received.clear()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def abort(self) -> None:
        """Close without ado."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    def _look(self) -> None:
        """Whether what was received is an answer."""
        answer = self._answer
        if answer is None or answer.done():
            return
        try:
            response = parsed(self._received, ended=self._ended)
        except ValueError as exc:
            answer.set_exception(ConnectionError(f"the answer is no HTTP: {exc}"))
            self.abort()
            return
        if response is not None:
            answer.set_result(response)


class Wire:
    """Connections to one server, kept between requests.

    Args:
        address: Of the server, with the path that all paths begin with.
        tls: None for plain HTTP.
        server_hostname: In the certificate, where it is not the host of the address.
        limit: Connections at once.
        agent: Who we are.
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
        self._places = asyncio.Semaphore(limit)
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []

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
        """Send one request and wait for its answer.

        Args:
            method: HTTP's.
            path: Below the address.
            headers: Besides those that describe the message.
            body: Sent as it is.
            params: The query.
            timeout_s: For all of it, the wait for a connection included.
            before: Called right before sending; what it raises keeps the request from being sent.

        Raises:
            TimeoutError: No answer in time.
            OSError: No connection, no answer, or one that is no HTTP.
        """
        request = self._request(method, path, headers, body, params)
        async with asyncio.timeout(timeout_s), self._places:
            connection = self._kept() or await self._connected()
            try:
                before()
                response = await connection.exchange(request)
            except BaseException:
                connection.abort()
                raise
            if response.is_last or not connection.is_open:
                connection.abort()
            else:
                connection.idle_since = asyncio.get_running_loop().time()
                self._idle.append(connection)
            return response

    async def close(self) -> None:
        """Close all connections."""
        for connection in tuple(self._open):
            connection.abort()
        while self._open:  # noqa: ASYNC110 - aborted transports say so in the next turns of the loop
            await asyncio.sleep(0)

    def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        params: Mapping[str, str] | None,
    ) -> bytes:
        query = f"?{urlencode(params)}" if params else ""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if lines.count("\n") != len(headers):
            raise ValueError("a header has more than one line")
        target = quote(self._prefix + path, safe=SAFE)
        head = (
            f"{method} {target}{query} HTTP/1.1\r\n{self._common}{lines}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("latin-1") + body

    def _kept(self) -> _Connection | None:
        """The connection that was used last: the others may grow old and be closed."""
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
        self._open.add(connection)
        return connection

    def _over(self, connection: _Connection) -> None:
        self._open.discard(connection)
        with contextlib.suppress(ValueError):
            self._idle.remove(connection)


def parsed(received: bytes | bytearray, *, ended: bool) -> Response | None:
    """An answer, None while there is more to come.

    Args:
        received: All bytes since the request was sent.
        ended: Whether the server has closed the connection.

    Raises:
        ValueError: It is no HTTP/1.1, or too long.
    """
    begin = 0
    while True:
        end = received.find(b"\r\n\r\n", begin)
        if end < 0:
            if len(received) - begin > HEAD_BYTES:
                raise ValueError(f"its head is longer than {HEAD_BYTES} bytes")
            return None
        status_line, *lines = bytes(received[begin:end]).split(b"\r\n")
        begin = end + 4
        version, _, rest = status_line.partition(b" ")
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not rest[:3].isdigit():
            raise ValueError(f"it begins with {status_line[:80]!r}")
        status = int(rest[:3])
        if status >= 200:  # what is below announces the answer
            break
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        fields[name.lower()] = value.strip()
    is_last = version == b"HTTP/1.0" or fields.get(b"connection", b"").lower() == b"close"
    if b"transfer-encoding" in fields:
        if fields[b"transfer-encoding"].lower() != b"chunked":
            raise ValueError(f"its transfer encoding is {fields[b'transfer-encoding'][:80]!r}")
        found = _unchunked(received, begin)
        if found is None:
            return None
        content, stop = found
    elif b"content-length" in fields or status in (204, 304):
        length = fields.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > ANSWER_BYTES:
            raise ValueError(f"its length is {length[:80]!r}")
        stop = begin + (0 if status in (204, 304) else int(length))
        if len(received) < stop:
            return None
        content = bytes(received[begin:stop])
    elif not ended:
        if len(received) - begin > ANSWER_BYTES:
            raise ValueError(f"it is longer than {ANSWER_BYTES} bytes")
        return None
    else:
        return Response(status, bytes(received[begin:]), is_last=True)
    return Response(status, content, is_last=is_last or ended or stop != len(received))


def _unchunked(received: bytes | bytearray, begin: int) -> tuple[bytes, int] | None:
    """The body of chunks and where it stops, None while there is more to come."""
    parts: list[bytes] = []
    total = 0
    while True:
        end = received.find(b"\r\n", begin)
        if end < 0:
            if len(received) - begin > HEAD_BYTES:
                raise ValueError("a chunk has no size")
            return None
        size = bytes(received[begin:end]).partition(b";")[0].strip()
        try:
            length = int(size, 16)
        except ValueError:
            raise ValueError(f"the size of a chunk is {size[:80]!r}") from None
        total += length
        if length < 0 or total > ANSWER_BYTES:
            raise ValueError(f"it is longer than {ANSWER_BYTES} bytes")
        begin = end + 2
        if not length:
            stop = received.find(b"\r\n", begin)
            while stop > begin:  # trailers
                begin, stop = stop + 2, received.find(b"\r\n", stop + 2)
            return (b"".join(parts), stop + 2) if stop >= 0 else None
        if len(received) < begin + length + 2:
            return None
        parts.append(bytes(received[begin : begin + length]))
        begin += length + 2
