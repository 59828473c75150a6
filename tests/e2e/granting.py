"""A door to an API server that lets through what a role grants, refuses the rest, and remembers both."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

#: verb, group, resource
Call = tuple[str, str, str]

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def call_of(method: str, path: str, *, is_watch: bool) -> Call | None:
    """What a request is to the authorizer; None for discovery, which everybody may read."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    if parts[0] not in {"api", "apis"} or not rest:
        return None
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource, name, sub = (*rest, "", "")[:3]
    if method == "GET":
        verb = "get" if name else "watch" if is_watch else "list"
    else:
        verb = _VERBS[method] if name or method != "DELETE" else "deletecollection"
    return verb, group, f"{resource}/{sub}" if sub else resource


@dataclass(slots=True)
class Door:
    """Lets requests through as granted."""

    server: str
    grants: set[Call]
    url: str = ""
    used: set[Call] = field(default_factory=set)
    refused: set[Call] = field(default_factory=set)

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """Judge one request; stream the server's answer."""
        is_watch = request.query.get("watch") in {"true", "1"}
        call = call_of(request.method, request.path, is_watch=is_watch)
        if call is not None and call not in self.grants:
            self.refused.add(call)
            message = f"cannot {call[0]} {call[2]}.{call[1]}"
            body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403}
            return web.json_response({**body, "reason": "Forbidden", "message": message}, status=403)
        if call is not None:
            self.used.add(call)
        headers = {
            name: request.headers[name]
            for name in ("Accept", "Authorization", "Content-Type")
            if name in request.headers
        }
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
            session.request(
                request.method, self.server + request.path_qs, data=await request.read(), headers=headers
            ) as answer,
        ):
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response


@asynccontextmanager
async def door(server: str, grants: set[Call]) -> AsyncIterator[Door]:
    """Open a door on loopback."""
    one = Door(server, grants)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", one.pass_on)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    one.url = f"http://{host}:{port}"
    try:
        yield one
    finally:
        await runner.cleanup()
