"""The live page: /ui is a page without data, which requests its content from /explain/live.

::

    GET /ui               HTML, for everyone; it prompts for a token and keeps it until its tab closes, unless
                          the request has one: then a proxy in front signs its users in, and adds their tokens
    GET /explain/live     server-sent events, each a LiveView, for callers that the gate admits

A stream ends after some seconds, before the endpoints would cut its connection, and the page reconnects. The
page thus survives a fail-over, and a closed page costs nothing. It sends the identifier of the last event
that it has received, as EventSource does, and is sent only what has changed since then.
"""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import count
from typing import ClassVar

from aiohttp import web

from plimsoll.app.memory.caller_gate import CallerGate, CallerRefusal
from plimsoll.app.memory.live_view import LiveView
from plimsoll.app.memory.live_views import NodeRow
from plimsoll.pages.page_parts import STYLE, TILES, asset, content_policy
from plimsoll.version import __version__

PAGE, STREAM = "/ui", "/explain/live"

#: The page's first tag, and the same where a proxy signs in: the page then asks for no token.
ROOT, PROXIED = '<html lang="en">', '<html lang="en" data-proxied>'

#: Seconds between two views, and maximum seconds of a stream; the endpoints cut connections later.
PERIOD_S, STREAM_S = 2.0, 12.0

#: Maximum number of concurrent streams.
STREAMS = 10

#: Seconds for which the end of a stream is kept, so that the next one goes on from there.
KEPT_S = 10.0

#: Header with the identifier of the last event that a caller has received.
LAST = "Last-Event-ID"

#: Maximum wait of a view for the main loop, in seconds.
ANSWER_S = 5.0

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


@cache
def live_page() -> tuple[str, str]:
    """The page of a running operator, and its policy header; the page requests only its own server."""
    page, style, early, script = map(_own, ("live.html", "live.css", "early.js", "live.js"))
    filled = {"style": asset(STYLE) + style, "early": early, "script": script + asset(TILES)}
    policy = content_policy(filled["style"], filled["early"], filled["script"])
    filled["version"] = __version__
    text = re.sub(r"@(style|early|script|version)@", lambda found: filled[found[1]], page)
    return text, f"{policy}; connect-src 'self'; frame-ancestors 'none'"


def _own(name: str) -> str:
    return (resources.files(__package__) / "page" / name).read_text("utf-8")


@dataclass(eq=False)
class LivePage:
    """Handles requests for the page and its stream, in the thread of the endpoints.

    Attributes:
        look: Returns the current view, given the nodes seen earlier, or None for a view without nodes; awaits
            the main loop.
    """

    paths: ClassVar = frozenset((PAGE, STREAM))

    gate: CallerGate
    look: Callable[[Mapping[str, NodeRow] | None], Awaitable[tuple[LiveView, dict[str, NodeRow]]]]
    _open: int = field(default=0, init=False)
    _ended: dict[str, Mapping[str, NodeRow]] = field(default_factory=dict, init=False)  # by last event

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request for the page or its stream."""
        return self._page(request) if request.path == PAGE else await self._stream(request)

    def _page(self, request: web.BaseRequest) -> web.Response:
        content, policy = live_page()
        if request.headers.get("Authorization", "")[:7].lower() == "bearer ":
            # Only what the page asks for next is judged: a forged token here hides the sign-in, no more.
            content = content.replace(ROOT, PROXIED, 1)
        headers = {**HEADERS, "Content-Security-Policy": policy}
        return web.Response(text=content, content_type="text/html", headers=headers)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        refusal = await self.gate.refusal(request.headers, STREAM, request.remote or "")
        if refusal is None and self._open >= STREAMS:
            refusal = CallerRefusal(503, f"{STREAMS} pages are looked at already; close one")
        if refusal is not None:
            return refusal.response()
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        response.force_close()
        self._open += 1
        try:
            await response.prepare(request)
            await self._send(response, self._ended.pop(request.headers.get(LAST, ""), None))
        finally:
            self._open -= 1
        return response

    async def _send(self, response: web.StreamResponse, seen: Mapping[str, NodeRow] | None) -> None:
        """Send views until the stream ends; the caller has ``seen`` these nodes.

        To one that has seen none, what people read first is sent before thousands of nodes.
        """
        stream, last = secrets.token_hex(8), ""
        ends = self.gate.clock.monotonic() + STREAM_S
        for number in count():
            try:
                async with asyncio.timeout(ANSWER_S):
                    view, rows = await self.look(seen)
            except TimeoutError:
                await response.write(b"event: busy\ndata: {}\n\n")
            else:
                last = f"{stream}-{number}"
                content = view.model_dump_json(by_alias=True).encode()
                await response.write(b"id: " + last.encode() + b"\ndata: " + content + b"\n\n")
                if seen is None:
                    seen = {}
                    continue
                seen = rows
            if self.gate.clock.monotonic() + PERIOD_S >= ends:
                break
            await asyncio.sleep(PERIOD_S)
        if last:
            self._ended[last] = seen or {}
            asyncio.get_running_loop().call_later(KEPT_S, self._ended.pop, last, None)
