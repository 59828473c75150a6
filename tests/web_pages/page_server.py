"""Serves the live page with a view that a test made, in place of an operator."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from plimsoll.app.memory.live_page import LAST, PAGE, STREAM, live_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.app.memory.live_view import LiveView

#: What is said about every pod and node.
EXPLANATION = {"pod": "<b>it</b>", "attemptsMade": 3, "rejectedBy": []}


@contextmanager
def serving(*views: LiveView) -> Iterator[tuple[str, list[str]]]:
    """The page's address, and the paths that are asked for; a stream of the views stays open for a test."""
    asked: list[str] = []
    ended = threading.Event()
    events = "".join(
        f"id: {number}\ndata: {each.model_dump_json(by_alias=True)}\n\n" for number, each in enumerate(views)
    ).encode()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if last := self.headers.get(LAST):
                asked.append(f"after {last}")
            if self.path.partition("?")[0] == PAGE:
                content, policy = live_page()
                self._begin("text/html; charset=utf-8", {"Content-Security-Policy": policy})
                self.wfile.write(content.encode())
            elif self.path == STREAM:
                self._begin("text/event-stream", {})
                self.wfile.write(events)
                self.wfile.flush()
                ended.wait(120)
            elif self.path.startswith("/explain/"):
                self._begin("application/json", {})
                self.wfile.write(json.dumps(EXPLANATION).encode())
            else:
                self._begin("image/x-icon", {})  # a browser asks for an icon by itself

        def _begin(self, kind: str, more: dict[str, str]) -> None:
            self.send_response(200)
            for name, value in {"Content-Type": kind, **more}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """A test's output is no log of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{PAGE}", asked
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
