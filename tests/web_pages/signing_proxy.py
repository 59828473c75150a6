"""Plays oauth2-proxy before the operator: callers with its cookie get their token added, others a form.

It does what ``--pass-authorization-header`` does: the token of the session goes on as ``Authorization``,
whatever the browser has sent there, and what the browser says about users is taken away.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

#: The cookie of a session.
COOKIE = "_oauth2_proxy"
#: Headers of a browser that do not go on.
OWN = ("Authorization", "X-Forwarded-User", "X-Forwarded-Groups", "Cookie", "Host", "Connection")


class SigningProxy:
    """The proxy.

    Attributes:
        address: Where it listens.
        sessions: The token of each session; empty it to have all end.
    """

    def __init__(self, upstream: str, sessions: dict[str, str]) -> None:
        self.upstream, self.sessions = upstream, sessions
        self.address = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Pass a request on, byte by byte, or ask to sign in."""
        token = self.sessions.get(request.cookies.get(COOKIE, ""))
        if token is None:
            return web.Response(status=403, text="sign in")
        headers = {name: value for name, value in request.headers.items() if name not in OWN}
        headers["Authorization"] = f"Bearer {token}"
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.get(f"{self.upstream}{request.raw_path}", headers=headers) as answer,
        ):
            passed = web.StreamResponse(status=answer.status)
            for name in ("Content-Type", "Content-Security-Policy"):
                if name in answer.headers:
                    passed.headers[name] = answer.headers[name]
            await passed.prepare(request)
            async for part in answer.content.iter_any():
                await passed.write(part)
        return passed


@asynccontextmanager
async def signing_in(upstream: str, sessions: dict[str, str]) -> AsyncIterator[SigningProxy]:
    """A proxy before an address, on a port of loopback."""
    proxy = SigningProxy(upstream, sessions)
    server = web.ServerRunner(web.Server(proxy.answer), shutdown_timeout=1.0)
    await server.setup()
    site = web.TCPSite(server, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    proxy.address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined] # a server of sockets
    try:
        yield proxy
    finally:
        await server.cleanup()
