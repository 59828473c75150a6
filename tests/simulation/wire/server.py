"""A WiredServer is roadstead's HTTP server on the virtual loop, with faults of requests and answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from random import Random
from typing import Protocol

from aiohttp import web

from roadstead.server.bodies.content_negotiation import JSON
from roadstead.server.request_handler import Request, RequestHandler
from roadstead.server.server import Server, Watch
from roadstead.store.store import event_line
from simulation.faults import FaultKind, FaultPlan
from simulation.network import LAG_S, OLD_S, SLOW_S
from simulation.refusals import PAGE, STATUSES, Rights, refused, status
from simulation.wire.faults import OF_ANSWERS, OF_PARTS, OF_REQUESTS, WireFaultKind, WireFaultPlan
from simulation.wire.lines import Connection, Cut, Plug

#: Bytes beyond which an answer has chunks and no length, as Go's server sends it.
CHUNKED_FROM = 2048

#: What proxies and load balancers answer, and seconds in their Retry-After header.
PAGES, RETRY_S = (429, 500, 502, 503, 504), (None, None, "1", "3")

#: Bytes a second of what drips.
DRIPS = (20.0, 2000.0)

#: Seconds that it takes at most: a list of the operator's may take 120, and peace is shorter when all rests.
DRIPS_S = 30.0

#: Bytes of the head of an answer, about.
HEAD = 200

#: Seconds after which an idle connection may be closed.
IDLE_S = (0.01, 30.0)

#: Where a request has what happens to it.
FAULT: web.RequestKey[FaultKind | None] = web.RequestKey("FAULT", FaultKind)

#: Where a login page is.
LOGIN = ("https://login.example/", "/login")

#: What is sent before an answer, and makes it useless.
NO_HTTP = (
    b"\x15\x03\x01\x00\x02\x02\x46",  # an alert of TLS, as a server sends that expects it
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n{},,",
    b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\xff\xfe: \xc3\x28\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"HTTP/2 200\r\n\r\n",
)

#: What may come before an answer.
INTERIM = (b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 102 Processing\r\nX-A: b\r\n\r\n")


class CarriesOut(Protocol):
    """What the server needs of the network."""

    faults: FaultPlan
    wire_faults: WireFaultPlan
    rights: Rights
    random: Random
    problems: list[BaseException]

    def carry_out(
        self, connection: Connection, read: Request, fault: FaultKind | None
    ) -> web.Response | None:
        """Let the API carry a request out; None where its answer is lost."""

    def watched(self, connection: Connection, request: web.BaseRequest) -> None:
        """A watch begins."""


class UnsteadyWatch:
    """A watch whose connection lags, drips, breaks or falls silent."""

    def __init__(self, watch: Watch, connection: Connection, network: CarriesOut) -> None:
        self._watch = watch
        self._connection = connection
        self._network = network
        self._rate = connection.to_client.rate

    async def chunks(self) -> AsyncIterator[bytes]:
        """Bytes to send, until it ends."""
        connection, network, line = self._connection, self._network, self._connection.to_client
        connection.is_watch = True
        try:
            async for part in self._watch.chunks():
                fault = network.faults.of_watch()
                met = network.wire_faults.drawn(OF_PARTS)
                if fault is FaultKind.WATCH_LAG:
                    line.lag_s = network.random.uniform(*LAG_S)
                elif network.faults.is_over:
                    line.lag_s = 0.0
                line.rate = self._rate
                if met is WireFaultKind.WATCH_DRIPS:
                    line.rate = max(network.random.uniform(*DRIPS), len(part) / DRIPS_S)
                elif met is WireFaultKind.WATCH_SILENT:
                    line.cut = Cut(network.random.randint(1, len(part)), connection.fall_silent)
                if fault is FaultKind.WATCH_TORN:
                    line.cut = Cut(network.random.randint(1, len(part)), _broken(connection, network.random))
                if fault is FaultKind.WATCH_SILENT:
                    line.cut = Cut(network.random.randint(1, len(part)), connection.fall_silent)
                if fault is FaultKind.WATCH_EXPIRED:
                    yield event_line("ERROR", status(410, "Expired", "too old resource version"))
                    return
                yield part
                if fault is FaultKind.WATCH_CUT:
                    return
        finally:
            connection.is_watch, line.lag_s, line.rate = False, 0.0, self._rate

    def close(self) -> None:
        """Nothing is sent any more."""
        self._watch.close()


class WiredServer(Server):
    """HTTP for the API, on a network in memory."""

    def __init__(self, handler: RequestHandler, network: CarriesOut) -> None:
        super().__init__(handler)
        self._network = network

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; an error of ours is noted."""
        try:
            return await self._handled(request)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as exc:
            self._network.problems.append(exc)
            raise

    async def _handled(self, request: web.BaseRequest) -> web.StreamResponse:
        connection, network = _connection(request), self._network
        fault = network.faults.of_exchange(is_write=request.method != "GET")
        if fault is FaultKind.LATENCY:
            await asyncio.sleep(network.random.uniform(*SLOW_S))
        elif fault is FaultKind.DROPPED_REQUEST:
            connection.reset()
            return web.Response(status=503)
        elif fault is FaultKind.BLACK_HOLE:
            connection.fall_silent()
            return web.Response(status=503)
        elif fault in STATUSES:
            await request.read()
            code, body = refused(fault)
            headers = {"Retry-After": "1"} if fault is FaultKind.TOO_MANY_WITH_DELAY else {}
            return web.Response(status=code, body=body, headers=headers, content_type=JSON)
        elif fault is FaultKind.TIMEOUT_BEFORE_EFFECT:
            await self._carry_out_late(request, connection)
            code, body = refused(FaultKind.TIMEOUT)
            return web.Response(status=code, body=body, content_type=JSON)
        elif fault is FaultKind.PROXY_PAGE:
            await request.read()
            return _page_of(WireFaultKind.LOGIN_PAGE, network.random)
        elif met := network.wire_faults.drawn(OF_REQUESTS):
            if met is WireFaultKind.GATEWAY_TIMEOUT:
                await self._carry_out_late(request, connection)
            else:
                await request.read()
            return _page_of(met, network.random)
        request[FAULT] = fault
        response = await super().handle(request)
        if fault is FaultKind.OLD_ANSWER:
            await asyncio.sleep(network.random.uniform(*OLD_S))
        if isinstance(response, web.Response) and response.prepared is False:
            return self._spoilt(connection, response, request)
        return response

    async def _carry_out_late(self, request: web.BaseRequest, connection: Connection) -> None:
        """Let a request be carried out after its answer."""
        network, body = self._network, await request.read()
        read = Request(request.method, request.path, request.query_string, request.headers, body)
        later_s = network.random.uniform(*SLOW_S)
        asyncio.get_running_loop().call_later(later_s, network.carry_out, connection, read, None)

    def watch(self, request: web.BaseRequest) -> Watch | None:
        """A watch that may break."""
        watch = super().watch(request)
        if watch is None:
            return None
        self._network.watched(_connection(request), request)
        return UnsteadyWatch(watch, _connection(request), self._network)

    def answered(self, request: web.BaseRequest, read: Request) -> web.Response:
        """Carried out where the network says so."""
        fault = request[FAULT]
        denied = self._network.rights.answer(read)
        if denied is not None:
            return web.Response(status=denied[0], body=denied[1], content_type=JSON)
        response = self._network.carry_out(_connection(request), read, fault)
        if response is None:
            request[FAULT] = FaultKind.LOST_RESPONSE
            return web.Response(status=503)
        return response

    def _spoilt(
        self, connection: Connection, response: web.Response, request: web.BaseRequest
    ) -> web.Response:
        network, fault = self._network, request[FAULT]
        random, line = network.random, connection.to_client
        body = response.body
        size = len(body) if isinstance(body, bytes) else 0
        if fault is FaultKind.LOST_RESPONSE:
            connection.reset()
            return response
        replaced = _replaced(fault)
        if replaced is not None:
            return replaced
        if size > CHUNKED_FROM:
            response.enable_chunked_encoding()
        rate = line.rate
        met = network.wire_faults.drawn(OF_ANSWERS)
        if fault is FaultKind.TRUNCATED or met is WireFaultKind.ANSWER_CUT:
            line.cut = Cut(random.randrange(1, HEAD + size), _broken(connection, random))
        elif met is WireFaultKind.ANSWER_UNFINISHED:
            line.cut = Cut(random.randrange(HEAD // 2 + size), connection.fall_silent)
        elif met is WireFaultKind.ANSWER_DRIPS:
            line.rate = max(random.uniform(*DRIPS), (HEAD + size) / DRIPS_S)
            asyncio.get_running_loop().call_soon(setattr, line, "rate", rate)
        elif met is WireFaultKind.CLOSED_AFTER_ANSWER:
            asyncio.get_running_loop().call_soon(connection.close_from_server)
        elif met is WireFaultKind.IDLE_CLOSED:
            asyncio.get_running_loop().call_later(random.uniform(*IDLE_S), _close_idle, connection)
        elif met is WireFaultKind.LAST_ANSWER:
            response.force_close()
        elif met is WireFaultKind.PROXY_PAGE_AFTER_EFFECT:
            return _page(random)
        elif met in (WireFaultKind.NO_HTTP, WireFaultKind.INTERIM) and request.transport is not None:
            request.transport.write(
                random.choice(NO_HTTP) if met is WireFaultKind.NO_HTTP else random.choice(INTERIM)
            )
        return response


def _connection(request: web.BaseRequest) -> Connection:
    transport = request.transport
    plug: Plug | None = None if transport is None else transport.get_extra_info("plug")
    if plug is None or plug.connection is None:
        raise ConnectionResetError("the connection has ended")
    return plug.connection


def _broken(connection: Connection, random: Random) -> Callable[[], object]:
    """One way to break a connection."""
    return random.choice((connection.reset, connection.break_from_server))


def _close_idle(connection: Connection) -> None:
    if not connection.is_watch and not connection.to_server.held and not connection.server.is_closed:
        connection.close_from_server()


def _replaced(fault: FaultKind | None) -> web.Response | None:
    """What comes in place of the answer to a request that was carried out."""
    if fault is FaultKind.TIMEOUT_AFTER_EFFECT:
        code, content = refused(FaultKind.TIMEOUT)
        return web.Response(status=code, body=content, content_type=JSON)
    if fault is FaultKind.BAD_GATEWAY:
        return web.Response(status=502, body=PAGE, content_type="text/html")
    return None


def _page_of(met: WireFaultKind, random: Random) -> web.Response:
    """What a proxy answers in place of the API server."""
    if met is WireFaultKind.REDIRECT:
        status = random.choice((301, 302, 303, 307, 308))
        return web.Response(status=status, headers={"Location": random.choice(LOGIN)})
    if met is WireFaultKind.LOGIN_PAGE:
        return web.Response(text="<html><body><form>Log in</form></body></html>\n", content_type="text/html")
    return _page(random, PAGES if met is WireFaultKind.PROXY_PAGE else (504,))


def _page(random: Random, statuses: Sequence[int] = PAGES) -> web.Response:
    status, retry_s = random.choice(statuses), random.choice(RETRY_S)
    response = web.Response(
        status=status,
        text=f"<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\r\n",
        content_type="text/html",
        headers={} if retry_s is None else {"Retry-After": retry_s},
    )
    if random.random() < 0.5:
        response.force_close()
    return response
