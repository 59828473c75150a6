"""A loopback HTTP server with scripted answers, and a session that is connected to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import yaml
from aiohttp import web
from aiohttp.web_response import StreamResponse

from plimsoll.kube.session.session import connected


class ToldServer:
    """Answers each request with the next scripted answer; a callable answer writes the response itself."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.answers: list[Any] = []

    def then(self, body: Any = None, status: int = 200, headers: Any = None) -> None:
        """Answer the next request so."""
        self.answers.append((status, body if body is not None else {}, headers or {}))

    def then_stream(self, *lines: Any, hold: Any = None) -> None:
        """Answer the next request with lines, documents or bytes; then wait for ``hold``."""
        self.answers.append((lines, hold))

    async def answer(self, request: Any) -> StreamResponse:
        """The next answer; a request without a scripted answer hangs."""
        body = await request.read()
        self.requests.append((request.method, request.path_qs, orjson.loads(body) if body else None, request))
        if not self.answers:
            await asyncio.Event().wait()
        told = self.answers.pop(0)
        if len(told) == 3:
            status, body, headers = told
            content = body if isinstance(body, bytes) else orjson.dumps(body)
            response = web.Response(
                status=status, body=content, headers={"Content-Type": "application/json", **headers}
            )
            if "Connection" in headers:
                response.force_close()
            return response
        lines, hold = told
        stream = web.StreamResponse()
        await stream.prepare(request)
        for line in lines:
            await stream.write(line if isinstance(line, bytes) else orjson.dumps(line) + b"\n")
        if hold is not None:
            await hold.wait()
        return stream


@asynccontextmanager
async def told_server(folder: Path) -> AsyncIterator[Any]:
    """The server, and a session to it that shows a token."""
    told = ToldServer()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", told.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
                "users": [{"name": "u", "user": {"token": "a-token"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    try:
        async with connected(kubeconfig) as session:
            yield told, session
    finally:
        await runner.cleanup()
