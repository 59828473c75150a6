"""An API server that refuses, each way below a path of its own, and kubeconfigs that name it.

``unauthorized`` answers 401, ``forbidden`` 403 with the API server's words, ``bare`` knows no custom
resources and has no objects.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import yaml

from roadstead.authorization.requests import asked_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Refusing(BaseHTTPRequestHandler):
    """Answers by the first part of the path."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        """Refuse one request."""
        given = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole, _, query = self.path.partition("?")
        _, way, rest = whole.split("/", 2)
        code, body = self.decide(way, f"/{rest}", dict(parse_qsl(query)), json.loads(given or b"null"))
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def decide(self, way: str, path: str, query: dict[str, str], body: Any) -> tuple[int, dict[str, Any]]:
        """Code and body of one answer."""
        return _answer(way, self.command, path)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 - names of the library

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def _answer(way: str, method: str, path: str) -> tuple[int, dict[str, Any]]:
    if way == "unauthorized":
        return _status(401, "Unauthorized", "Unauthorized")
    asked = asked_by(method, path)
    if way == "forbidden" and asked.resource:
        qualified = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
        where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
        return _status(
            403,
            "Forbidden",
            f'{qualified} is forbidden: User "jane" cannot {asked.verb} resource "{asked.resource}"'
            f' in API group "{asked.group}" {where}',
        )
    if method == "POST" and path.endswith("reviews"):
        return 201, {"status": {"allowed": True, "authenticated": True, "user": {"username": "jane"}}}
    if path.startswith(("/apis/plimsoll.dev", "/apis/metrics.k8s.io")):
        return _status(404, "NotFound", "the server could not find the requested resource")
    if path in {"/version", "/version/"}:
        return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
    if not asked.resource:
        return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [], "resources": []}
    if asked.name:
        return _status(404, "NotFound", f'{asked.resource} "{asked.name}" not found')
    return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}


def _status(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}}
    return code, {**status, "code": code, "reason": reason, "message": message}


class _Server(ThreadingHTTPServer):
    """A client that leaves aborts its connections, which is no error of the server's."""

    request_queue_size = 100  # connections beyond it are tried again after a second

    def handle_error(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def refusing_server(handler: type[Refusing] = Refusing) -> Iterator[str]:
    """The URL of a server, which runs in a thread."""
    server = _Server(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def kubeconfig_of(file: Path, url: str, **context: str) -> Path:
    """A kubeconfig of one context."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "one", "cluster": {"server": url}}],
        "users": [{"name": "jane", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "jane", **context}}],
        "current-context": "here",
    }
    file.write_text(yaml.safe_dump(content))
    return file
