"""The network of a simulation: requests reach the API's own logic, and answers come back, when it lets them.

A request that was sent takes effect whether its sender still waits, is paused or is dead. What a connection
carries stays in order; connections overtake each other.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Protocol
from urllib.parse import parse_qsl

import aiohttp
import orjson
from aiohttp import web

from plimsoll.kube.session.transport import Transport
from roadstead.server.request_handler import Request, RequestHandler, refusal
from roadstead.server.watches import Watcher
from roadstead.store.store import event_line
from roadstead.values.status_errors import StatusError
from simulation.exchanges import Answer, Exchange, Stream
from simulation.faults import FaultKind, FaultPlan
from simulation.loop import VirtualLoop
from simulation.refusals import PAGE, STATUSES, Rights, refused, spoiled, status
from simulation.short_pages import ShortPages
from simulation.trace import Trace
from simulation.transport import SimulatedTransport

#: Seconds of one way, usually and on a slow exchange. A request must not be under way for longer than a
#: leader leaves between its last write and the end of its lease (docs/high-availability.md).
ONE_WAY_S, SLOW_S = (0.0005, 0.004), (0.05, 2.0)

#: Seconds that a watch may lag behind.
LAG_S = (0.2, 8.0)

#: Seconds until an answer comes that is old by then.
OLD_S = (3.0, 20.0)

#: Seconds by which a watch is late that another API server serves, which is behind; and how long that one
#: waits until it knows the version from which the watch goes on.
BEHIND_S, CATCH_UP_S = (2.0, 20.0), 3.0

LIST_COMPLETE = b"k8s.io/initial-events-end"
BOOKMARK = b'{"type":"BOOKMARK"'


class Interference(Protocol):
    """Acts right before and right after a request is carried out."""

    def arrives(self, exchange: Exchange) -> None:
        """It is at the API server and will be carried out now."""
        ...

    def has_taken_effect(self, exchange: Exchange) -> None:
        """The same exchange, before its answer is sent."""
        ...


class Network:
    """All connections to one API server.

    Args:
        pages: How lists differ from those of the newest API servers; None where they do not.
        context: Of the world around the processes: what happens on the network belongs to no process.

    Attributes:
        carried_out: The exchange that the API server is carrying out.
        before: Called before an exchange is carried out.
        around: Act before and after that.
        rights: Those that the operator does not have.
        late: Until when what a process sends waits in it: a step that takes long sends at its end.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        handler: RequestHandler,
        random: Random,
        faults: FaultPlan,
        trace: Trace,
        pages: ShortPages | None = None,
    ) -> None:
        self.loop = loop
        self.handler = handler
        self.random = random
        self.faults = faults
        self.trace = trace
        self.context = contextvars.copy_context()
        self.carried_out: Exchange | None = None
        self.before: list[Callable[[], object]] = []
        self.around: list[Interference] = []
        self.late: dict[str, float] = {}
        self.rights = Rights()
        self.pages = pages
        self._up_from = 0.0
        self._under_way: dict[int, Exchange] = {}
        self._sent = 0
        self._streams: list[Stream] = []

    @asynccontextmanager
    async def transport(self, sender: str) -> AsyncIterator[Transport]:
        """The way of one process to the API server."""
        yield SimulatedTransport(self, sender)

    async def open(self) -> None:
        """The API server is there."""

    # -- requests ----------------------------------------------------------------------------------------

    def send(self, sender: str, request: Request) -> asyncio.Future[Answer]:
        """Send a request; the future has its answer."""
        answer: asyncio.Future[Answer] = self.loop.create_future()
        if self._up_from == math.inf:
            answer.set_exception(ConnectionRefusedError("the run is over"))
            return answer
        fault = self.faults.of_exchange(is_write=request.method != "GET")
        exchange = Exchange(sender, request, answer, fault, self.loop.time())
        self._sent += 1
        number = self._sent
        self._under_way[number] = exchange
        waits_s = max(0.0, self.late.get(sender, 0.0) - self.loop.time())
        self._later(waits_s + self._one_way(fault), self._arrive, number)
        return answer

    def _one_way(self, fault: FaultKind | None) -> float:
        return self.random.uniform(*(SLOW_S if fault is FaultKind.LATENCY else ONE_WAY_S))

    def _later(self, seconds: float, call: Callable[..., object], *args: object) -> None:
        self.loop.call_later(seconds, call, *args, context=self.context)

    def _arrive(self, number: int) -> None:
        """A request is at the API server."""
        exchange = self._under_way.get(number)
        if exchange is None:
            return  # its connection was cut
        if self.loop.time() < self._up_from:
            self._fail(number, ConnectionRefusedError("the API server is away"))
            return
        if exchange.fault is None:
            for each in self.around:
                each.arrives(exchange)
        if number not in self._under_way or self.loop.time() < self._up_from:
            self._fail(number, ConnectionResetError("the API server went away"))
            return
        fault, request = exchange.fault, exchange.request
        if fault is FaultKind.DROPPED_REQUEST:
            self._fail(number, ConnectionResetError("the connection was dropped"))
            return
        if fault is FaultKind.BLACK_HOLE:
            del self._under_way[number]
            return
        given = self._given(fault, request)
        if fault is FaultKind.TIMEOUT_BEFORE_EFFECT:
            self._later(self.random.uniform(*SLOW_S), self._carry_out_late, exchange)
        if given is not None:
            code, body = given
            self.trace.note(exchange.sender, f"{request.method} {request.path} -> {code} (fault)")
        else:
            code, body = self._carry_out(exchange)
            for each in self.around:
                each.has_taken_effect(exchange)
            fault = exchange.fault
        self._answer(number, fault, code, body)

    def _answer(self, number: int, fault: FaultKind | None, code: int, body: bytes) -> None:
        """Send an answer, or what becomes of it on its way."""
        if fault is FaultKind.LOST_RESPONSE:
            self._fail(number, ConnectionResetError("the connection was dropped before the answer"))
            return
        if fault is FaultKind.TIMEOUT_AFTER_EFFECT:
            code, body = refused(FaultKind.TIMEOUT)
        elif fault in (FaultKind.TRUNCATED, FaultKind.BAD_GATEWAY):
            code, body = spoiled(fault, (code, body), self.random)
        old_s = self.random.uniform(*OLD_S) if fault is FaultKind.OLD_ANSWER else 0.0
        self._later(old_s + self._one_way(fault), self._settle, number, code, body)

    def _given(self, fault: FaultKind | None, request: Request) -> Answer | None:
        """What is answered without carrying a request out; None where it is carried out."""
        if fault in STATUSES:
            return refused(fault)
        if fault is FaultKind.TIMEOUT_BEFORE_EFFECT:
            return refused(FaultKind.TIMEOUT)
        if fault is FaultKind.PROXY_PAGE:
            return 200, PAGE
        return self.rights.answer(request)

    def _carry_out(self, exchange: Exchange) -> Answer:
        response = self.response(exchange)
        return response.status, response.body if isinstance(response.body, bytes) else b""

    def _carry_out_late(self, exchange: Exchange) -> None:
        """Carry out a request that has had its answer."""
        if self.loop.time() >= self._up_from and self.rights.answer(exchange.request) is None:
            self._carry_out(exchange)

    def response(self, exchange: Exchange) -> web.Response:
        """Let the API carry a request out."""
        request = exchange.request
        if self.pages is not None:
            request = self.pages.shortened(request)
            if given := self.pages.refusal(request):
                self.trace.note(exchange.sender, f"GET {request.path}: the token of a page has expired")
                return web.Response(status=given[0], body=given[1], content_type="application/json")
        self.carried_out = exchange
        try:
            for look in self.before:
                look()
            try:
                self.handler.authenticate(request.path, request.headers)
                response = self.handler.answered(request)
            except StatusError as error:
                response = refusal(error)
        finally:
            self.carried_out = None
        body = response.body
        content = body if isinstance(body, bytes) else b""
        asked = f"?{request.query_string}" if request.query_string else ""
        self.trace.note(
            exchange.sender,
            f"{request.method} {request.path}{asked} -> {response.status}",
            request.body + content,
        )
        return response

    def _fail(self, number: int, problem: Exception) -> None:
        exchange = self._under_way.pop(number, None)
        if exchange is not None:
            self._later(self._one_way(None), _raise, exchange.answer, problem)

    def _settle(self, number: int, code: int, body: bytes) -> None:
        exchange = self._under_way.pop(number, None)
        if exchange is not None and not exchange.answer.done():
            if exchange.upon is not None:
                exchange.upon()
            exchange.answer.set_result((code, body))

    # -- watches -----------------------------------------------------------------------------------------

    async def opened(self, sender: str, request: Request) -> Stream:
        """A watch."""
        await asyncio.sleep(self._one_way(None))
        if self.loop.time() < self._up_from:
            raise ConnectionRefusedError("the API server is away")
        stream = Stream(sender, request.path, self.loop)
        fault = self.faults.of_opening()
        if fault is FaultKind.WATCH_BEHIND:
            stream.behind_s = self.random.uniform(*BEHIND_S)
            await asyncio.sleep(CATCH_UP_S)
        refusal_of = self._refused_watch(request, fault)
        if refusal_of is not None:
            stream.status, body = refusal_of
            stream.is_over = True
            stream.arrived.append(body)
            return stream
        stream.fault = fault
        if self.pages is not None and (line := self.pages.watch_refusal(request)):
            stream.is_over = True
            stream.arrived.append(line)
            return stream
        try:
            self.handler.authenticate(request.path, request.headers)
            watcher = self.handler.watcher(request.path, request.query_string, request.headers)
        except StatusError as error:
            stream.status, stream.is_over = error.code, True
            stream.arrived.append(orjson.dumps(error.status))
            return stream
        if watcher is None:  # the definition of the resource is gone
            response = self.handler.answered(request)
            stream.status, stream.is_over = response.status, True
            stream.arrived.append(response.body if isinstance(response.body, bytes) else b"")
            return stream
        self.trace.note(sender, f"WATCH {request.path}?{request.query_string}")
        self._streams.append(stream)
        pump = self.loop.create_task(self._pump(stream, watcher), context=self.context)
        stream.pump = pump
        return stream

    def _refused_watch(self, request: Request, fault: FaultKind | None) -> Answer | None:
        """Of an operator without the right, and where the API server does not know the version yet."""
        version = dict(parse_qsl(request.query_string)).get("resourceVersion", "0")
        if fault is FaultKind.WATCH_BEHIND and version != "0" and self.random.random() < 0.5:
            known = int(version) - 1
            message = f"Timeout: Too large resource version: {version}, current: {known}"
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            details = {"causes": [cause], "retryAfterSeconds": 1}
            return 504, status(504, "Timeout", message, details)
        return self.rights.answer(request)

    async def _pump(self, stream: Stream, watcher: Watcher) -> None:
        try:
            async for part in watcher.chunks():
                fault = self.faults.of_watch()
                if fault is FaultKind.WATCH_LAG:
                    stream.lag_s = self.random.uniform(*LAG_S)
                elif self.faults.is_over:
                    stream.lag_s = stream.behind_s = 0.0
                if fault is FaultKind.WATCH_SILENT:
                    stream.is_silent = True
                    return  # half-open: the client hears of nothing any more, also not of its end
                whole = self._part(stream, fault, part)
                if not whole:
                    continue
                sent = whole[: self.random.randrange(len(whole))] if fault is FaultKind.WATCH_TORN else whole
                late_s = self._one_way(None) + max(stream.lag_s, stream.behind_s)
                stream.last = max(stream.last, self.loop.time() + late_s)
                stream.coming.append(sent)
                self.loop.call_at(stream.last, stream.arrive, context=self.context)
                if fault in (FaultKind.WATCH_CUT, FaultKind.WATCH_TORN, FaultKind.WATCH_EXPIRED):
                    problem = self.random.choice((None, aiohttp.ClientPayloadError("the watch broke off")))
                    self.loop.call_at(stream.last + 1e-5, stream.end, problem, context=self.context)
                    return
            self.loop.call_at(stream.last + 1e-5, stream.end, context=self.context)
        finally:
            watcher.close()

    def _part(self, stream: Stream, fault: FaultKind | None, part: bytes) -> bytes:
        """What the API server sends; it sends bookmarks as it likes, but for the one that ends a list."""
        if fault is FaultKind.WATCH_EXPIRED:
            return event_line("ERROR", status(410, "Expired", "too old resource version"))
        if stream.fault is not FaultKind.NO_BOOKMARKS:
            return part
        lines = part.splitlines(keepends=True)
        kept = [one for one in lines if not one.startswith(BOOKMARK) or LIST_COMPLETE in one]
        if len(kept) < len(lines):
            self.faults.count(FaultKind.NO_BOOKMARKS)
        return b"".join(kept)

    def delay(self, path: str, seconds: float) -> None:
        """All watches of a resource lag, in all processes, while others do not."""
        for stream in self._streams:
            if stream.path == path:
                stream.lag_s = seconds

    def watched_paths(self) -> list[str]:
        """The paths that are watched."""
        return sorted({stream.path for stream in self._streams})

    def left(self, stream: Stream) -> None:
        """The client has closed a watch."""
        if stream in self._streams:
            self._streams.remove(stream)
        if stream.pump is not None:
            stream.pump.cancel()

    # -- faults of the whole network ---------------------------------------------------------------------

    def restart_server(self, away_s: float) -> None:
        """All connections end; what was under way may have taken effect."""
        self._up_from = self.loop.time() + away_s
        for number in list(self._under_way):
            if self.random.random() < 0.5:
                self._fail(number, ConnectionResetError("the API server went away"))
        for stream in list(self._streams):
            stream.end(aiohttp.ClientPayloadError("the API server went away"))
            self.left(stream)

    def cut(self, sender: str) -> None:
        """The watches of a process end."""
        for stream in [each for each in self._streams if each.sender == sender]:
            stream.end(ConnectionResetError("the watch was cut"))
            self.left(stream)

    def notice_silence(self) -> None:
        """Keep-alive probes of half-open connections fail at last."""
        for stream in [each for each in self._streams if each.is_silent]:
            stream.end(ConnectionResetError("no answer to keep-alive probes"))
            self.left(stream)

    def close(self) -> None:
        """The run is over: nothing arrives any more."""
        self.restart_server(math.inf)
        for number in list(self._under_way):
            self._fail(number, ConnectionResetError("the run is over"))

    def forget(self, sender: str) -> None:
        """A process is dead: its watches end."""
        for stream in [each for each in self._streams if each.sender == sender]:
            self.left(stream)


def _raise(answer: asyncio.Future[Answer], problem: Exception) -> None:
    if not answer.done():
        answer.set_exception(problem)
