"""Serves OCI image layouts as a registry on loopback, read only, for ``helm install oci://…``.

Source: OCI distribution specification 1.1, "Pulling manifests" and "Pulling blobs".
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MANIFEST = re.compile(r"/v2/([^/]+)/manifests/(.+)")
_BLOB = re.compile(r"/v2/([^/]+)/blobs/sha256:([0-9a-f]{64})")


@contextmanager
def served(layouts: Path) -> Iterator[str]:
    """The address, such as ``127.0.0.1:4000``, of a registry of the layouts in a folder."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, content = found(layouts, self.path)
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815 - the library's name

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def found(layouts: Path, path: str) -> tuple[str, bytes]:
    """The media type and bytes of a manifest, by tag or digest, or of a blob; ("", b"") without one."""
    if asked := _MANIFEST.fullmatch(path):
        index = layouts / asked[1] / "index.json"
        for each in json.loads(index.read_bytes())["manifests"] if index.exists() else ():
            if asked[2] in {each["digest"], each["annotations"]["org.opencontainers.image.ref.name"]}:
                blob = layouts / asked[1] / "blobs" / each["digest"].replace(":", "/")
                return each["mediaType"], blob.read_bytes()
    if asked := _BLOB.fullmatch(path):
        blob = layouts / asked[1] / "blobs/sha256" / asked[2]
        if blob.exists():
            return "application/octet-stream", blob.read_bytes()
    return ("application/json", b"{}") if path == "/v2/" else ("", b"")
