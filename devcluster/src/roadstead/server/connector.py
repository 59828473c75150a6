"""Connects an aiohttp session with a ``Server`` in the same process, without a port."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.tracing import Trace

    from roadstead.server.server import Server


class InProcessConnector(aiohttp.BaseConnector):
    """The connector of a session that sends all requests to one server, regardless of their host."""

    def __init__(self, server: Server) -> None:
        super().__init__(limit=0)
        self._server = server

    async def _create_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - as aiohttp calls it
    ) -> ResponseHandler:
        del req, traces, timeout
        _, protocol = await self._server.connect(self._factory)
        return protocol
