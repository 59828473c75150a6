"""A proxy between one life of an operator and the API server: it passes on, records, and does harm.

It ends TLS on both sides and reads HTTP/1.1, so that it knows what it breaks. Each connection of the operator
has one to the API server; requests on it are passed on one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import urlsplit

from chaos import messages
from chaos.answers import STATUSES, refusal, status_object, version_in
from chaos.faults import ChaosFaults
from chaos.faults import ChaosKind as K
from chaos.messages import BrokenMessageError, Head
from chaos.passage import Passage, Passages

#: Seconds of a delay, of a watch that is held back, of an answer that trickles, and until a write takes
#: effect that was answered by 504. A request must not be under way for longer than a leader leaves between
#: its last write and the end of its lease.
DELAY_S, LAG_S, TRICKLE_S, LATE_S = (0.05, 2.0), (0.2, 8.0), (0.5, 3.0), (0.05, 2.0)

#: Seconds after which a connection that says nothing is reset, as by a firewall that has forgotten it.
SILENCE_S = (5.0, 40.0)


class Mood(StrEnum):
    """How a proxy treats all connections."""

    OPEN = "open"
    REFUSES = "refuses"
    SWALLOWS = "swallows"


@dataclass(frozen=True, slots=True)
class Upstream:
    """The API server, as its kubeconfig names it.

    Attributes:
        authorization: The header that its credentials make, "" for client certificates.
    """

    url: str
    tls: ssl.SSLContext | None
    authorization: str

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection."""
        parts = urlsplit(self.url)
        port = parts.port or (443 if self.tls else 80)
        return await asyncio.open_connection(parts.hostname, port, ssl=self.tls, limit=messages.LIMIT_BYTES)


class EndedError(Exception):
    """This connection is not served any more."""


class Proxy:
    """Listens on loopback for one life of an operator.

    Args:
        name: Of that life.

    Attributes:
        mood: Changed by deeds.
        tokens: Those that are accepted; all others are answered by 401.
    """

    def __init__(
        self, name: str, upstream: Upstream, tls: ssl.SSLContext, faults: ChaosFaults, passages: Passages
    ) -> None:
        self.name = name
        self.mood = Mood.OPEN
        self.tokens: set[str] = set()
        self.upstream = upstream
        self._tls = tls
        self.faults = faults
        self.passages = passages
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen; the URL."""
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, ssl=self._tls, limit=messages.LIMIT_BYTES
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return f"https://127.0.0.1:{port}"

    async def stop(self) -> None:
        """Close everything; writes that were answered take effect, whether their sender lives or not."""
        if self._server is not None:
            self._server.close()
        self.cut_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._late, return_exceptions=True)

    def later(self, effect: Coroutine[None, None, None]) -> None:
        """Let a write take effect that has been answered."""
        self._late.add(task := asyncio.create_task(effect))
        task.add_done_callback(self._late.discard)

    def cut_all(self) -> None:
        """Reset every connection of the operator."""
        for writer in list(self._writers):
            reset(writer)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        connection = Connection(self, reader, writer)
        try:
            if self.mood is not Mood.REFUSES:
                await connection.serve()
        except (EndedError, BrokenMessageError, OSError):
            pass
        except asyncio.CancelledError:
            if self._server is not None and self._server.is_serving():
                raise
        finally:
            connection.close()
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.transport.abort()


class Connection:
    """One connection of an operator, and its counterpart to the API server."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._far: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def close(self) -> None:
        """Leave the API server."""
        if self._far is not None:
            self._far[1].transport.abort()
            self._far = None

    async def serve(self) -> None:
        """Pass on one request after the other, until the operator or a fault ends it."""
        while (head := await messages.head(self._reader)) is not None:
            content = await messages.body(self._reader, head)
            method, target, _ = head.first
            path, _, query = target.partition("?")
            passage = Passage(self._proxy.name, method, path, query, content, self._proxy.passages.clock())
            try:
                await self._treat(head, passage)
            finally:
                if passage.fault != K.TIMEOUT_BEFORE_EFFECT:
                    self._proxy.passages.over(passage)

    async def _treat(self, head: Head, passage: Passage) -> None:
        if self._proxy.mood is Mood.SWALLOWS:
            passage.fault = Mood.SWALLOWS
            await self._swallow()
        shown = head.header("authorization").removeprefix("Bearer ")
        if self._proxy.tokens and shown not in self._proxy.tokens:
            passage.fault = K.TOKEN_EXPIRED
            await self._answer(*refusal(K.UNAUTHORIZED))
            return
        fault = self._proxy.faults.of_exchange(passage.path, is_write=passage.is_write)
        passage.fault = fault or ""
        if fault in STATUSES:
            await self._answer(*refusal(fault))
            return
        if fault is K.TIMEOUT_BEFORE_EFFECT:
            self._proxy.later(self._take_effect(head, passage))
            await self._answer(*refusal(K.TIMEOUT))
            return
        await self._harm(head, passage, fault)
        far_reader = await self._send(head, passage)
        answer = await messages.head(far_reader)
        if answer is None:
            raise EndedError
        if "watch=" in passage.query and answer.is_chunked and answer.status == 200:
            passage.status = 200
            await self._relay_watch(answer, far_reader)
            return
        await self._relay(answer, far_reader, passage, fault)

    async def _harm(self, head: Head, passage: Passage, fault: K | None) -> None:
        """What is done to a request before it is passed on.

        Raises:
            EndedError: It is not passed on any more.
        """
        match fault:
            case K.DELAY:
                await asyncio.sleep(self._proxy.faults.random.uniform(*DELAY_S))
            case K.CUT:
                raise EndedError
            case K.RESET:
                reset(self._writer)
                raise EndedError
            case K.SWALLOWED:
                await self._swallow()
            case K.HALF_CLOSED:
                half_close(self._writer)
                await self._swallow()
            case K.TORN_REQUEST:
                await self._send_half(head, passage)
            case K.REPEATED if passage.is_write:
                await self._send_in_vain(head, replace(passage))
        if self._proxy.mood is Mood.SWALLOWS:
            passage.fault = passage.fault or Mood.SWALLOWS
            await self._swallow()

    async def _take_effect(self, head: Head, passage: Passage) -> None:
        """Pass a write on that has been answered, over a connection of its own."""
        await asyncio.sleep(self._proxy.faults.random.uniform(*LATE_S))
        one = Connection(self._proxy, self._reader, self._writer)
        try:
            far_reader = await one._send(head, passage)
            answer = await messages.head(far_reader)
            if answer is not None:
                await one._take(answer, far_reader, passage)
        except (BrokenMessageError, OSError):
            pass  # the API server is away
        finally:
            one.close()
            self._proxy.passages.over(passage)

    async def _far_side(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection to the API server, a new one if the old one has ended."""
        if self._far is not None and self._far[0].at_eof():
            self.close()
        if self._far is None:
            self._far = await self._proxy.upstream.connect()
        return self._far

    async def _send(self, head: Head, passage: Passage) -> asyncio.StreamReader:
        """Pass the request on."""
        reader, writer = await self._far_side()
        passage.passed_on = self._proxy.passages.clock()
        self._proxy.passages.passed(passage)
        writer.write(self._request(head, passage))
        await writer.drain()
        return reader

    def _request(self, head: Head, passage: Passage) -> bytes:
        """What is sent to the API server."""
        extra = [("Host", urlsplit(self._proxy.upstream.url).netloc)]
        if self._proxy.upstream.authorization:
            extra.append(("Authorization", self._proxy.upstream.authorization))
        if passage.is_write or passage.body:
            extra.append(("Content-Length", str(len(passage.body))))
        return head.with_body(*extra) + passage.body

    async def _send_half(self, head: Head, passage: Passage) -> None:
        """Begin to pass the request on, and end both connections.

        Raises:
            EndedError: Always.
        """
        _, writer = await self._far_side()
        whole = self._request(head, passage)
        writer.write(whole[: self._proxy.faults.random.randrange(len(whole))])
        await writer.drain()
        raise EndedError

    async def _send_in_vain(self, head: Head, passage: Passage) -> None:
        """Pass the request on and drop the answer, as a proxy that then tries again."""
        far_reader = await self._send(head, passage)
        answer = await messages.head(far_reader)
        if answer is None:
            raise EndedError
        await self._take(answer, far_reader, passage)
        self._proxy.passages.over(passage)

    async def _take(self, answer: Head, far_reader: asyncio.StreamReader, passage: Passage) -> bytes:
        """The body of an answer; what it says is recorded."""
        content = b"" if answer.status in (204, 304) else await messages.body(far_reader, answer)
        passage.answered = self._proxy.passages.clock()
        passage.status = answer.status
        if passage.is_write:
            passage.version = version_in(content)
        return content

    async def _relay(
        self, answer: Head, far_reader: asyncio.StreamReader, passage: Passage, fault: K | None
    ) -> None:
        """Give back a whole answer, or what a fault makes of it."""
        content = await self._take(answer, far_reader, passage)
        if self._proxy.mood is Mood.SWALLOWS:
            await self._swallow()
        whole = answer.with_body(("Content-Length", str(len(content)))) + content
        random = self._proxy.faults.random
        match fault:
            case K.LOST_ANSWER:
                reset(self._writer)
                raise EndedError
            case K.SWALLOWED_ANSWER:
                await self._swallow()
            case K.TORN_ANSWER:
                self._writer.write(whole[: random.randrange(len(whole))])
                with contextlib.suppress(OSError):
                    await self._writer.drain()
                self._writer.close()
                raise EndedError
            case K.TIMEOUT_AFTER_EFFECT:
                await self._answer(*refusal(K.TIMEOUT))
                return
            case K.SLOW_ANSWER:
                parts, seconds = 10, random.uniform(*TRICKLE_S)
                size = -(-len(whole) // parts)
                for at in range(0, len(whole), size):
                    await asyncio.sleep(seconds / parts)
                    self._writer.write(whole[at : at + size])
                    await self._writer.drain()
                return
        self._writer.write(whole)
        await self._writer.drain()

    async def _relay_watch(self, answer: Head, far_reader: asyncio.StreamReader) -> None:
        """Pass on a body without end, until one of both ends or a fault ends it.

        Raises:
            EndedError: Always: a byte of the next request may have been read.
        """
        self._writer.write(answer.with_body(("Transfer-Encoding", "chunked")))
        await self._writer.drain()
        gone = asyncio.ensure_future(self._reader.read(1))  # the operator sends nothing during a watch
        relaying = asyncio.ensure_future(self._relay_parts(far_reader))
        try:
            await asyncio.wait((gone, relaying), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            relaying.cancel()
            await asyncio.gather(gone, relaying, return_exceptions=True)
        raise EndedError

    async def _relay_parts(self, far_reader: asyncio.StreamReader) -> None:
        faults, writer = self._proxy.faults, self._writer
        async for part in messages.chunks(far_reader):
            fault, sent = faults.of_watch(), part
            if fault is K.WATCH_LAG:
                await asyncio.sleep(faults.random.uniform(*LAG_S))
            if fault is K.WATCH_SILENT or self._proxy.mood is Mood.SWALLOWS:
                await asyncio.sleep(faults.random.uniform(*SILENCE_S))
                reset(writer)
                return
            if fault is K.WATCH_TORN:
                sent = part[: faults.random.randrange(len(part))]
            if fault is K.WATCH_GONE:
                event = {"type": "ERROR", "object": status_object(410, "Expired")}
                sent = json.dumps(event).encode() + b"\n"
            if sent:
                writer.write(messages.chunk(sent))
            if fault in (K.WATCH_CUT, K.WATCH_TORN, K.WATCH_GONE):
                if faults.random.random() < 0.5:
                    writer.write(messages.chunk(b""))  # as if the server had ended it
                await writer.drain()
                writer.close()
                return
            await writer.drain()
        writer.write(messages.chunk(b""))
        await writer.drain()
        writer.close()

    async def _answer(self, head: bytes, content: bytes) -> None:
        self._writer.write(head + content)
        await self._writer.drain()

    async def _swallow(self) -> None:
        """Read on and say nothing, until the operator gives up.

        Raises:
            EndedError: Always.
        """
        while await self._reader.read(2**16):
            pass
        raise EndedError


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by RST, without a goodbye of TLS."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


def half_close(writer: asyncio.StreamWriter) -> None:
    """Say that nothing more comes, and go on reading."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.shutdown(socket.SHUT_WR)
