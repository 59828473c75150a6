"""The HTTP endpoints for Prometheus, probes and users: /metrics, /readyz, /healthz, /explain/, /ui.

Probes have a server of their own, with its own thread and limits, so that they respond while the main loop
computes and whatever happens at the other port. The others run in the election's thread.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web
from msgspec import Struct
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from plimsoll.app.machine.connections import ConnectionLimits, listening
from plimsoll.app.memory.endpoint import PREFIX, ExplainEndpoint

if TYPE_CHECKING:
    from plimsoll.app.memory.live_page import LivePage

#: Connections to the server of metrics, /explain/ and /ui, and to the one of the probes.
PAGES = ConnectionLimits(total=200, per_address=50, request_s=5.0, connection_s=15.0)
PROBES = ConnectionLimits(total=64, per_address=16, request_s=5.0, connection_s=10.0)

#: Maximum wait of /metrics for the main loop, in seconds.
METRICS_S = 10.0


class Endpoints(Struct, frozen=True):
    """The content of the endpoints.

    Attributes:
        unready: Why the operator is not ready yet, "" when it is ready.
        broken: Why the process should be restarted, "" when it should not.
        standing: The state of the election, in words; a line of /readyz.
        metrics: Returns the page for Prometheus; None if it is not served.
        explain: Handles paths below /explain/; None if these are not served.
        live: Handles the live page; None if it is not served.
    """

    unready: Callable[[], str]
    broken: Callable[[], str]
    standing: Callable[[], str]
    metrics: Callable[[], Awaitable[bytes]] | None = None
    explain: ExplainEndpoint | None = None
    live: "LivePage | None" = None

    @property
    def probes(self) -> "Endpoints":
        """The probes alone."""
        return Endpoints(self.unready, self.broken, self.standing)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request."""
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, text="method not allowed\n", headers={"Allow": "GET, HEAD"})
        if self.live is not None and request.path in self.live.paths:
            return await self.live.answer(request)
        if self.explain is not None and request.path.startswith(PREFIX):
            return await self.explain.answer(request)
        match request.path:
            case "/healthz":
                return _said(self.broken())
            case "/readyz":
                return _said(self.broken() or self.unready(), self.standing())
            case "/metrics" if self.metrics is not None:
                try:
                    async with asyncio.timeout(METRICS_S):
                        body = await self.metrics()
                except TimeoutError:
                    return web.Response(status=503, text="the main event loop is busy\n")
                return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
        pages = "/readyz and /healthz" if self.metrics is None else "/metrics, /readyz and /healthz"
        return web.Response(status=404, text=f"not found; there are {pages}\n")


def _said(problem: str, *more: str) -> web.Response:
    return web.Response(text="\n".join((problem or "ok", *more, "")), status=503 if problem else 200)


@asynccontextmanager
async def serving(
    address: str, ports: Sequence[int], endpoints: Endpoints, limits: ConnectionLimits = PAGES
) -> AsyncIterator[list[int]]:
    """Serve within the context, on free ports in place of 0; yields the ports.

    Raises:
        AddressTaken: Another process listens there, or the address is not this machine's.
    """
    async with listening(address, ports, endpoints.answer, limits) as bound:
        yield bound
