"""The network of a simulation: requests reach the API's own logic, and answers come back, when it lets them.

A request that was sent takes effect whether its sender still waits, is paused or is dead. What a connection
carries stays in order; connections overtake each other.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Protocol
from urllib.parse import urlencode

import aiohttp
import orjson
from aiohttp import web
from kubernetes_asyncio import client

from plimsoll.kube.session.transport import Transport
from roadstead.server.request_handler import Request, RequestHandler, refusal
from roadstead.server.watches import Watcher
from roadstead.values.status_errors import StatusError
from simulation.exchanges import Answer, Exchange, Stream
from simulation.faults import FaultKind, FaultPlan
from simulation.loop import VirtualLoop
from simulation.trace import Trace

ADDRESS = "http://api.simulated"
TOKEN = "simulated"

#: Seconds of one way, usually and on a slow exchange. A request must not be under way for longer than a
#: leader leaves between its last write and the end of its lease (docs/high-availability.md).
ONE_WAY_S, SLOW_S = (0.0005, 0.004), (0.05, 2.0)

#: Seconds that a watch may lag behind.
LAG_S = (0.2, 8.0)

#: Statuses that the API server answers without carrying a request out.
STATUSES = {
    FaultKind.CONFLICT: (409, "Conflict"),
    FaultKind.TOO_MANY_REQUESTS: (429, "TooManyRequests"),
    FaultKind.TOO_MANY_WITH_DELAY: (429, "TooManyRequests"),
    FaultKind.INTERNAL_ERROR: (500, "InternalError"),
    FaultKind.UNAVAILABLE: (503, "ServiceUnavailable"),
    FaultKind.TIMEOUT: (504, "Timeout"),
    FaultKind.UNAUTHORIZED: (401, "Unauthorized"),
}


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
        context: Of the world around the processes: what happens on the network belongs to no process.

    Attributes:
        carried_out: The exchange that the API server is carrying out.
        before: Called before an exchange is carried out.
        around: Act before and after that.
        late: Until when what a process sends waits in it: a step that takes long sends at its end.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        handler: RequestHandler,
        random: Random,
        faults: FaultPlan,
        trace: Trace,
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
        if fault in STATUSES:
            status, body = status_answer(fault)
            self.trace.note(exchange.sender, f"{request.method} {request.path} -> {status} (fault)")
        else:
            status, body = self._carry_out(exchange)
            for each in self.around:
                each.has_taken_effect(exchange)
            fault = exchange.fault
        if fault is FaultKind.TIMEOUT_AFTER_EFFECT:
            status, body = status_answer(FaultKind.TIMEOUT)
        if fault is FaultKind.LOST_RESPONSE:
            self._fail(number, ConnectionResetError("the connection was dropped before the answer"))
            return
        self._later(self._one_way(fault), self._settle, number, status, body)

    def _carry_out(self, exchange: Exchange) -> Answer:
        response = self.response(exchange)
        return response.status, response.body if isinstance(response.body, bytes) else b""

    def response(self, exchange: Exchange) -> web.Response:
        """Let the API carry a request out."""
        request = exchange.request
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

    def _settle(self, number: int, status: int, body: bytes) -> None:
        exchange = self._under_way.pop(number, None)
        if exchange is not None and not exchange.answer.done():
            exchange.answer.set_result((status, body))

    # -- watches -----------------------------------------------------------------------------------------

    async def opened(self, sender: str, request: Request) -> Stream:
        """A watch."""
        await asyncio.sleep(self._one_way(None))
        if self.loop.time() < self._up_from:
            raise ConnectionRefusedError("the API server is away")
        stream = Stream(sender, request.path, self.loop)
        try:
            self.handler.authenticate(request.path, request.headers)
            watcher = self.handler.watcher(request.path, request.query_string, request.headers)
        except StatusError as error:
            stream.status, stream.is_over = error.code, True
            stream.arrived.append(orjson.dumps(error.status))
            return stream
        assert watcher is not None, request.path
        self.trace.note(sender, f"WATCH {request.path}?{request.query_string}")
        self._streams.append(stream)
        pump = self.loop.create_task(self._pump(stream, watcher), context=self.context)
        stream.pump = pump
        return stream

    async def _pump(self, stream: Stream, watcher: Watcher) -> None:
        try:
            async for part in watcher.chunks():
                fault = self.faults.of_watch()
                if fault is FaultKind.WATCH_LAG:
                    stream.lag_s = self.random.uniform(*LAG_S)
                elif self.faults.is_over:
                    stream.lag_s = 0.0
                sent = part[: self.random.randrange(len(part))] if fault is FaultKind.WATCH_TORN else part
                stream.last = max(stream.last, self.loop.time() + self._one_way(None) + stream.lag_s)
                stream.coming.append(sent)
                self.loop.call_at(stream.last, stream.arrive, context=self.context)
                if fault in (FaultKind.WATCH_CUT, FaultKind.WATCH_TORN):
                    problem = self.random.choice((None, aiohttp.ClientPayloadError("the watch broke off")))
                    self.loop.call_at(stream.last + 1e-5, stream.end, problem, context=self.context)
                    return
            self.loop.call_at(stream.last + 1e-5, stream.end, context=self.context)
        finally:
            watcher.close()

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


def status_answer(fault: FaultKind) -> Answer:
    """What the API server answers."""
    code, reason = STATUSES[fault]
    details = {"retryAfterSeconds": 1} if fault is FaultKind.TOO_MANY_WITH_DELAY else {}
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": f"simulated: {fault}",
        "details": details,
    }
    return code, orjson.dumps(status)


class SimulatedTransport:
    """The way of one process to the API server: a :class:`plimsoll.kube.session.transport.Transport`."""

    pipelines = False

    def __init__(self, network: Network, sender: str) -> None:
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
