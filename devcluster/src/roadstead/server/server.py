"""Serves a ``RequestHandler`` over connections: HTTP by aiohttp."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import orjson
from aiohttp import web

from roadstead.server.bodies.content_negotiation import JSON
from roadstead.server.connections import check_host, connection
from roadstead.server.fault_injection import Faults
from roadstead.server.pod_proxy import proxied
from roadstead.server.pod_streams import streamed
from roadstead.server.request_handler import Request, RequestHandler, failure, refusal
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from roadstead.values.resources import Obj

#: A client's protocol.
Connected = TypeVar("Connected", bound=asyncio.BaseProtocol)

#: Largest accepted body in bytes, as of a real server.
LARGEST_BODY = 3 * 1024 * 1024
_TIMEOUT = "Timeout: request did not complete within requested timeout - context deadline exceeded"


async def _body(request: web.BaseRequest) -> bytes:
    """The body of a request, up to the limit; aiohttp's own is lower."""
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise StatusError(
                413, "RequestEntityTooLarge", f"Request entity too large: limit is {LARGEST_BODY}"
            )
    return bytes(body)


class Watch(Protocol):
    """A source of a watch's bytes (:class:`roadstead.server.watches.Watcher`)."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Bytes to send, until it ends."""

    def close(self) -> None:
        """Stop sending."""


class Server:
    """The HTTP side of an ``Api``.

    Args:
        handler: the request handler.
    """

    def __init__(self, handler: RequestHandler) -> None:
        self.handler = handler
        self.faults = Faults(handler.api)
        self.webhooks = handler.webhooks
        self._runner: web.ServerRunner | None = None
        self.url = ""

    async def open(self) -> None:
        """Accept connections of ``connect``."""
        self._runner = web.ServerRunner(web.Server(self.handle, access_log=None), shutdown_timeout=0.5)
        await self._runner.setup()

    async def connect(self, make_protocol: Callable[[], Connected]) -> tuple[asyncio.Transport, Connected]:
        """Connect a client in this process without a port, as ``loop.create_connection`` does with one.

        Args:
            make_protocol: makes the client's protocol.

        Raises:
            RuntimeError: the server is not open.
        """
        if self._runner is None or self._runner.server is None:
            raise RuntimeError("the server is not open")
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        await loop.connect_accepted_socket(self._runner.server, ours)
        return await loop.create_connection(make_protocol, sock=theirs)

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None) -> str:
        """Listen on loopback; returns the URL. It may be called again, for another port."""
        if self._runner is None:
            await self.open()
        assert self._runner is not None
        site = web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        host, bound = self._runner.addresses[-1][:2]
        self.url = f"{'https' if tls else 'http'}://{host}:{bound}"
        return self.url

    async def stop(self, *, abruptly: bool = False) -> None:
        """Stop listening and end all watches; ``abruptly`` resets all connections, as a crash does."""
        if abruptly and self._runner is not None and self._runner.server is not None:
            for connection in self._runner.server.connections:
                if connection.transport is not None:
                    connection.transport.abort()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        await self.webhooks.close()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve a request; a rejection becomes a Status."""
        path = request.path
        try:
            self.handler.authenticate(path, request.headers)
            if request.method == "POST" and (control := self.faults.controls.get(path)):
                return web.json_response(control(orjson.loads(await _body(request) or b"{}")))
            fault, strike = self.faults.of(request), self.faults.strike
            if fault is not None and not fault.takes_effect and await strike(fault, request):
                return web.Response()
            response = await self._served(request)
            is_lost = fault is not None and fault.takes_effect and await strike(fault, request)
            return web.Response() if is_lost else response
        except StatusError as error:
            return refusal(error)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - one bad request must not end the server
            return failure(f"{request.method} {request.path_qs}", error)

    async def _served(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve an authenticated request; a rejection becomes a Status."""
        path = request.path
        try:
            self.handler.authorize(request.method, path, request.query_string, request.headers)
            options: Obj = {}
            if "/pods/" in path:
                user = self.handler.identities.user(request.headers)
                if (ask := connection(self.handler.api, request, user)) is not None:
                    options = await self.webhooks.run(ask)
                    check_host(self.handler.api, request)
                if (stream := await streamed(self.handler.api, request, options)) is not None:
                    return stream
            if "/proxy" in path and (passed_on := await proxied(self.handler.api, request)) is not None:
                return passed_on
            body = b""
            if request.method != "GET":
                body = await _body(request)
            elif (watch := await self.webhooks.run(lambda: self.watch(request))) is not None:
                return await _watched(request, watch, self.faults)
            read = Request(request.method, path, request.query_string, request.headers, body)
            return await self.webhooks.run(lambda: self.answered(request, read))
        except StatusError as error:
            return refusal(error)
        except TimeoutError:
            return refusal(StatusError(504, "Timeout", _TIMEOUT))

    def watch(self, request: web.BaseRequest) -> Watch | None:
        """The watch that a request begins; None when it begins none."""
        return self.handler.watcher(request.path, request.query_string, request.headers)

    def answered(self, request: web.BaseRequest, read: Request) -> web.Response:  # noqa: ARG002 - for subclasses
        """Respond to a request that was read."""
        return self.handler.answered(read)


async def _watched(request: web.BaseRequest, watcher: Watch, faults: Faults) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
    try:
        await response.prepare(request)
        faults.opened(request)
        async for chunk in watcher.chunks():
            await faults.hold(request)
            await response.write(chunk)
        await response.write_eof()
    except ConnectionError:
        pass  # the client has closed the connection
    finally:
        faults.closed(request)
        watcher.close()
    return response
