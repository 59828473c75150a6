"""The HTTP endpoints for Prometheus, probes and users: /metrics, /readyz, /healthz, /explain/, /ui.

They run in the election's thread, so that they respond while the main loop computes. Each connection serves
one request and has a time limit, whatever its client does.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from plimsoll.app.memory.endpoint import PREFIX, ExplainEndpoint
from plimsoll.framework.errors import PlimsollError
from plimsoll.preflight.ports import REMEDY, obstacle

if TYPE_CHECKING:
    from plimsoll.app.memory.live_page import LivePage  # with jinja2, where it is served

#: Maximum lifetime of a connection in seconds, and maximum number of open connections.
CONNECTION_S, CONNECTIONS = 15.0, 200

#: Maximum wait of /metrics for the main loop, in seconds.
METRICS_S = 10.0


class AddressTaken(PlimsollError):
    """A port cannot be listened on; a retry would not help."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The content of the endpoints.

    Attributes:
        unready: Why the operator is not ready yet, "" when it is ready.
        broken: Why the process should be restarted, "" when it should not.
        standing: The state of the election, in words; a line of /readyz.
        explain: Handles paths below /explain/; None if these are not served.
        live: Handles the live page; None if it is not served.
    """

    unready: Callable[[], str]
    broken: Callable[[], str]
    standing: Callable[[], str]
    metrics: Callable[[], Awaitable[bytes]]
    explain: ExplainEndpoint | None = None
    live: "LivePage | None" = None

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request."""
        response = await self._answer(request)
        response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
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
            case "/metrics":
                try:
                    async with asyncio.timeout(METRICS_S):
                        body = await self.metrics()
                except TimeoutError:
                    return web.Response(status=503, text="the main event loop is busy\n")
                return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
        return web.Response(status=404, text="not found; there are /metrics, /readyz and /healthz\n")


def _said(problem: str, *more: str) -> web.Response:
    return web.Response(text="\n".join((problem or "ok", *more, "")), status=503 if problem else 200)


class _Server(web.Server):
    """Closes long-lived connections: of a client that sends half a request, or does not read the response."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(handler, access_log=None)
        self._ends: dict[object, asyncio.TimerHandle] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Start the time limit."""
        super().connection_made(handler, transport)
        if len(self._ends) >= CONNECTIONS:
            transport.abort()
            return
        loop = asyncio.get_running_loop()
        self._ends[handler] = loop.call_later(CONNECTION_S, transport.abort)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Cancel the time limit: the connection ended by itself."""
        super().connection_lost(handler, exc)
        end = self._ends.pop(handler, None)
        if end is not None:
            end.cancel()


@asynccontextmanager
async def serving(address: str, ports: Sequence[int], endpoints: Endpoints) -> AsyncIterator[list[int]]:
    """Serve within the context, on free ports in place of 0; yields the ports.

    Raises:
        AddressTaken: Another process listens there, or the address is not this machine's.
    """
    runner = web.ServerRunner(_Server(endpoints.answer), shutdown_timeout=0.5)
    await runner.setup()
    try:
        for port in ports:
            try:
                await web.TCPSite(runner, address, port).start()
            except OSError as exc:
                raise AddressTaken(f"cannot listen on {address}:{port}: {obstacle(exc)}; {REMEDY}") from exc
        yield [int(bound[1]) for bound in runner.addresses]
    finally:
        await runner.cleanup()
