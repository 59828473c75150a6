"""The network of a simulation as bytes: the operator's HTTP clients, roadstead's HTTP server, TCP between."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from random import Random
from tempfile import NamedTemporaryFile
from typing import Any

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from kubernetes_asyncio import client

from plimsoll.kube.session.http_client import opened_client
from plimsoll.kube.session.http_transport import HTTPTransport
from plimsoll.kube.session.transport import Transport
from roadstead.certificates import Identity, loopback_identity
from roadstead.server.request_handler import Request, RequestHandler
from simulation.exchanges import Exchange
from simulation.faults import FaultKind, FaultPlan
from simulation.network import Network
from simulation.short_pages import ShortPages
from simulation.trace import Trace
from simulation.transport import TOKEN
from simulation.wire.contract import JudgedTransport
from simulation.wire.faults import WireFaultPlan
from simulation.wire.lines import Connection
from simulation.wire.loop import WiredLoop
from simulation.wire.server import WiredServer

#: Connections of a client, as the operator's loader sets it.
CONNECTIONS = 100

#: Seconds until a client closes an idle connection: never; servers do.
IDLE_S = 1e9


#: The share of seeds with TLS.
TLS_SHARE = 0.15


@cache
def _identity() -> Identity:
    """Of the API server; RSA's signatures are of equal length, so that equal seeds send as many bytes."""
    return loopback_identity(rsa.generate_private_key(65537, 2048))


class WireNetwork(Network):
    """All connections to one API server, as bytes.

    Attributes:
        wire_faults: What goes wrong with bytes.
        server: In front of the API.
        problems: Errors that HTTP servers and clients let through, and must not.
    """

    def __init__(
        self,
        loop: WiredLoop,
        handler: RequestHandler,
        random: Random,
        faults: FaultPlan,
        trace: Trace,
        pages: ShortPages | None = None,
    ) -> None:
        super().__init__(loop, handler, random, faults, trace, pages)
        self.wire = loop
        self.wire_faults: WireFaultPlan = loop.weather.faults
        self.problems = loop.problems
        self.server = WiredServer(handler, self)
        self._uses_own_client = random.random() < 0.8
        self._has_tls = random.random() < TLS_SHARE

    async def open(self) -> None:
        """Let the API server listen."""
        await self.server.start(tls=_identity().context if self._has_tls else None)

    @asynccontextmanager
    async def transport(self, sender: str) -> AsyncIterator[Transport]:
        """HTTP, as :func:`plimsoll.kube.session.session.connected` has it."""
        configuration = client.Configuration(host=self.server.url, api_key={"BearerToken": f"Bearer {TOKEN}"})
        configuration.connection_pool_maxsize = CONNECTIONS
        plug: Any = self.wire.plug

        @asynccontextmanager
        async def open_client(tls: Any, has_proxies: bool) -> AsyncIterator[Any]:
            async with opened_client(tls, has_proxies, plug) as http:
                # Virtual time goes by faster than the machine's, which aiohttp reads to end idle connections.
                connector: Any = http.connector
                connector._keepalive_timeout = IDLE_S
                yield http

        with NamedTemporaryFile(suffix=".pem") as authority:
            authority.write(_identity().certificate)
            authority.flush()
            configuration.ssl_ca_cert = authority.name
            inner = HTTPTransport(
                configuration, own_client=self._uses_own_client, proxies={}, open_client=open_client
            )
        transport = JudgedTransport(inner, self.problems)
        try:
            yield transport
        finally:
            await transport.close()

    # -- what the server carries out ------------------------------------------------------------------------

    def carry_out(
        self, connection: Connection, read: Request, fault: FaultKind | None
    ) -> web.Response | None:
        """Let the API carry a request out; None where its answer is lost."""
        exchange = Exchange(connection.client.owner, read, self.loop.create_future(), fault, self.loop.time())
        if fault is None:
            for each in self.around:
                each.arrives(exchange)
        if self.loop.time() < self._up_from or exchange.fault is FaultKind.DROPPED_REQUEST:
            return None
        response = self.response(exchange)
        for each in self.around:
            each.has_taken_effect(exchange)
        if exchange.upon is not None:
            exchange.upon()  # the answer arrives in parts
        lost = exchange.fault is FaultKind.LOST_RESPONSE or self.loop.time() < self._up_from
        return None if lost else response

    def watched(self, connection: Connection, request: web.BaseRequest) -> None:
        """A watch begins."""
        self.trace.note(connection.client.owner, f"WATCH {request.path_qs}")

    # -- faults of the whole network ------------------------------------------------------------------------

    def restart_server(self, away_s: float) -> None:
        """The API server is away: its machine refuses connections, or does not even do that."""
        self._up_from = self.loop.time() + away_s
        weather = self.wire.weather
        weather.listens = False if self.random.random() < 0.7 else None
        for connection in list(self.wire.connections.values()):
            if weather.listens is None:
                connection.mute()
                connection.break_from_server()
            else:
                connection.reset()
        if away_s < math.inf:
            self.loop.call_at(self._up_from, self._come_back, context=self.context)

    def _come_back(self) -> None:
        """What is sent on connections of the server before is refused from now on."""
        if self.loop.time() < self._up_from:
            return
        self.wire.weather.listens = True
        for connection in self.wire.connections.values():
            if connection.server.is_closed:
                connection.to_client.is_dead = False

    def cut(self, sender: str) -> None:
        """The watches of a process end."""
        for connection in list(self.wire.connections.values()):
            if connection.client.owner == sender and connection.is_watch:
                connection.reset()

    def forget(self, sender: str) -> None:
        """A process has ended, and its kernel says so; or the machine is gone."""
        for connection in list(self.wire.connections.values()):
            if connection.client.owner == sender and not connection.client.is_closed:
                self.wire.weather.ended(connection)
                connection.client.close()

    def close(self) -> None:
        """The run is over: nothing arrives any more."""
        self.restart_server(math.inf)
