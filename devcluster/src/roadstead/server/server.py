"""Answers HTTP requests from an ``Api``.

``documents`` adds discovery and OpenAPI, ``tables`` renders kubectl's tables, and ``api.virtual`` holds
resources that are computed for each request, such as those of metrics.k8s.io.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

import orjson
import yaml
from aiohttp import web

from roadstead.server import writes
from roadstead.server.content_negotiation import JSON, Form, accepted
from roadstead.server.lists import Page, flag, list_options, page, too_large
from roadstead.server.paths import Target, target
from roadstead.server.pod_proxy import proxied
from roadstead.server.renderers import AdmissionReviewer, Documents, TableRenderer
from roadstead.server.watches import Watcher
from roadstead.server.write_requests import SentRequest, WriteResult, success
from roadstead.store.store import Entry
from roadstead.values.status_errors import StatusError, bad_request, method_not_allowed

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from roadstead.store.api import Api
    from roadstead.values.resources import Obj, Resource

_LOG = logging.getLogger(__name__)

#: The version of Kubernetes that clients see.
VERSION: Obj = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.2",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_OPEN = ("/healthz", "/livez", "/readyz", "/version")


#: A client's protocol.
Connected = TypeVar("Connected", bound=asyncio.BaseProtocol)

#: Largest accepted body in bytes, as of a real server.
LARGEST_BODY = 3 * 1024 * 1024


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


def partial(obj: Obj, version: str = "v1") -> Obj:
    """An object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj["metadata"],
    }


def partial_of(version: str) -> Callable[[Obj], Obj]:
    """``partial`` in a version."""
    return lambda obj: partial(obj, version)


class Server:
    """The HTTP side of an ``Api``.

    Args:
        api: what is served.
        token: the bearer token that clients must send.
        tables: renders tables; without it a client that requests one gets the objects.
        documents: called in order for paths that name no resource.
        actions: called on a POST to their path.
        token_file: further tokens that are accepted, one a line; read at each request, so that they can be
            replaced and withdrawn.
        admission: warns of objects that were written.
    """

    def __init__(
        self,
        api: Api,
        token: str,
        *,
        tables: TableRenderer | None = None,
        documents: Sequence[Documents] = (),
        actions: Mapping[str, Callable[[], None]] | None = None,
        token_file: Path | None = None,
        admission: AdmissionReviewer | None = None,
    ) -> None:
        self._admission = admission
        self.api = api
        self.tables = tables
        self.documents = list(documents)
        self._token = token
        self._actions = dict(actions or {})
        self._token_file = token_file
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

    async def stop(self) -> None:
        """Stop listening and end all watches."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; a rejection becomes a Status."""
        try:
            self._authenticate(request)
            return await self._answer(request)
        except StatusError as error:
            headers = {}
            if "retryAfterSeconds" in error.details:
                headers["Retry-After"] = str(error.details["retryAfterSeconds"])
            return _json(error.status, error.code, headers)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - one bad request must not end the server
            _LOG.exception("%s %s failed", request.method, request.path_qs)
            broken = StatusError(500, "InternalError", f"Internal error occurred: {error!r}")
            return _json(broken.status, 500)

    def _authenticate(self, request: web.BaseRequest) -> None:
        if request.path in _OPEN or request.path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return
        scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._accepts(shown.strip().encode()):
            raise StatusError(401, "Unauthorized", "Unauthorized")

    def _accepts(self, shown: bytes) -> bool:
        tokens = [self._token.encode()]
        if self._token_file is not None and self._token_file.is_file():
            tokens += self._token_file.read_bytes().split()
        return any(hmac.compare_digest(shown, token) for token in tokens)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        passed_on = await proxied(self.api, request) if "/proxy" in path else None
        if passed_on is not None:
            return passed_on
        found = target(path, self.api.registry) if path.startswith(("/api/", "/apis/")) else None
        if found is None:
            return self._document(path, request)
        if found.subresource and found.resource.subresource(found.subresource) is None:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        query = dict(parse_qsl(request.query_string, keep_blank_values=True)) if request.query_string else {}
        form = accepted(request.headers.get("Accept", ""))
        verb = request.method
        response: web.StreamResponse
        if verb == "GET":
            if not found.name and flag(query.get("watch", "false")):
                self._require(found, "list", verb)
                return await self._watch(request, found, query, form)
            response = self._one(found, query, form) if found.name else self._list(found, query, form)
        else:
            sent = SentRequest(query, await _body(request), request.headers)
            stored = writes.stored(self.api, found)
            change = writes.write(self.api, found, verb, sent, self._token)
            if self._admission is not None:
                change.warnings += writes.reviewed(self.api, found, change, stored, self._admission)
            response = self._written(change, form, query)
        if found.resource.warning:
            response.headers.add("Warning", f'299 - "{found.resource.warning}"')
        return response

    @staticmethod
    def _require(found: Target, verb: str, method: str) -> None:
        if verb not in found.resource.verbs:
            raise method_not_allowed(found.resource, method.lower())

    def _document(self, path: str, request: web.BaseRequest) -> web.StreamResponse:
        if path in ("/healthz", "/livez", "/readyz") or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return web.Response(body=b"ok", content_type="text/plain", charset="utf-8")
        if path == "/version":
            return _json(VERSION)
        if request.method == "POST" and (action := self._actions.get(path)):
            action()
            return _json(success(200))
        for documents in self.documents:
            document = documents(path, request.headers.get("Accept", ""))
            if document is not None:
                return web.Response(
                    body=document.content,
                    status=document.status,
                    headers={"Content-Type": document.content_type},
                )
        return web.Response(status=404, text="404 page not found\n")

    # -- reading ---------------------------------------------------------------------------------------------

    def _one(self, found: Target, query: dict[str, str], form: Form) -> web.StreamResponse:
        resource = found.resource
        if found.subresource:
            subresource = resource.subresource(found.subresource)
            if subresource is None or "get" not in subresource.verbs:
                raise method_not_allowed(resource, "get")
        else:
            self._require(found, "get", "GET")
        version = query.get("resourceVersion", "")
        if version and not version.isdigit():
            raise bad_request(f'resourceVersion: Invalid value: "{version}"')
        if version and int(version) > self.api.store.revision:
            raise too_large(int(version), self.api.store.revision)
        entry = writes.read(self.api, found)
        return self._entry(resource, entry, form, query)

    def _entry(
        self, resource: Resource, entry: Entry, form: Form, query: dict[str, str], status: int = 200
    ) -> web.StreamResponse:
        if form.shape == "Table" and self.tables is not None:
            table = self._table(resource, [entry.obj], form, query)
            table["metadata"] = {"resourceVersion": entry.obj["metadata"].get("resourceVersion", "")}
            return _render(table, form, status)
        if form.shape == "PartialObjectMetadata":
            return _render(partial(entry.obj, form.version), form, status)
        if form.media == "yaml":
            return _render(entry.obj, form, status)
        return web.Response(body=entry.raw, status=status, content_type=JSON)

    def _table(self, resource: Resource, objects: Sequence[Obj], form: Form, query: dict[str, str]) -> Obj:
        assert self.tables is not None
        include = query.get("includeObject", "") or "Metadata"
        return self.tables(resource, objects, include_object=include, columns=True, version=form.version)

    def _list(self, found: Target, query: dict[str, str], form: Form) -> web.StreamResponse:
        resource = found.resource
        self._require(found, "list", "GET")
        options = list_options(query, watch=False)
        virtual = self.api.virtual.get(resource.key)
        if virtual is not None:
            chosen = self.api.matcher(resource, options.labels, options.fields)
            computed = virtual.list(found.namespace)
            entries = [Entry(obj, 0) for obj in computed if chosen is None or chosen(obj)]
            part = Page(entries, self.api.store.revision)
        else:
            part = page(self.api, resource, found.namespace, options)
        metadata: Obj = {"resourceVersion": str(part.revision)}
        if part.token:
            metadata["continue"] = part.token
            if part.remaining is not None:
                metadata["remainingItemCount"] = part.remaining
        if form.shape == "Table" and self.tables is not None:
            table = self._table(resource, [entry.obj for entry in part.entries], form, query)
            table["metadata"] = metadata
            return _render(table, form)
        if form.shape == "PartialObjectMetadata":
            items = [partial(entry.obj, form.version) for entry in part.entries]
            kind = "PartialObjectMetadataList"
            return _render(
                {
                    "kind": kind,
                    "apiVersion": f"meta.k8s.io/{form.version}",
                    "metadata": metadata,
                    "items": items,
                },
                form,
            )
        head: Obj = {
            "kind": resource.list_kind or f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
        }
        if form.media == "yaml":
            return _render({**head, "items": [entry.obj for entry in part.entries]}, form)
        lines = [entry.raw for entry in part.entries]
        if not resource.custom:  # items of a list of a built-in kind do not repeat the kind
            begin = len(orjson.dumps({"kind": resource.kind, "apiVersion": resource.api_version}))
            lines = [b"{" + raw[begin:] for raw in lines]
        body = b'%s,"items":[%s]}' % (orjson.dumps(head)[:-1], b",".join(lines))
        return web.Response(body=body, content_type=JSON)

    async def _watch(
        self, request: web.BaseRequest, found: Target, query: dict[str, str], form: Form
    ) -> web.StreamResponse:
        self._require(found, "watch", "GET")
        options = list_options(query, watch=True)
        render: Callable[[Obj], Obj] | None = None
        if form.shape == "PartialObjectMetadata":
            render = partial_of(form.version)
        elif form.shape == "Table" and self.tables is not None:
            render = self._table_rows(found.resource, form, query)
        watcher = Watcher(self.api, found.resource, found.namespace, options, render)
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
        try:
            await response.prepare(request)
            async for chunk in watcher.chunks():
                await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            pass  # the client has closed the connection
        finally:
            watcher.close()
        return response

    def _table_rows(self, resource: Resource, form: Form, query: dict[str, str]) -> Callable[[Obj], Obj]:
        tables = self.tables
        assert tables is not None
        include = query.get("includeObject", "") or "Metadata"
        sent_columns = False

        def rows(obj: Obj) -> Obj:
            nonlocal sent_columns
            if "uid" not in obj["metadata"]:  # a bookmark
                return {
                    "kind": "Table",
                    "apiVersion": f"meta.k8s.io/{form.version}",
                    "metadata": obj["metadata"],
                    "rows": [],
                    "columnDefinitions": [],
                }
            table = tables(
                resource, [obj], include_object=include, columns=not sent_columns, version=form.version
            )
            sent_columns = True
            table["metadata"] = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return table

        return rows

    # -- writing ---------------------------------------------------------------------------------------------

    def _written(self, change: WriteResult, form: Form, query: dict[str, str]) -> web.StreamResponse:
        headers = [("Warning", f"299 - {orjson.dumps(warning).decode()}") for warning in change.warnings]
        if change.resource is not None and isinstance(change.body, Entry):
            response = self._entry(change.resource, change.body, form, query, change.status)
        else:
            body = change.body.obj if isinstance(change.body, Entry) else change.body
            response = _render(body, form, change.status)
        for name, value in headers:
            response.headers.add(name, value.replace("\n", " "))
        return response


def _render(value: Any, form: Form, status: int = 200) -> web.Response:
    if form.media == "yaml":
        return web.Response(
            body=yaml.safe_dump(value).encode(), status=status, content_type="application/yaml"
        )
    return _json(value, status)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, headers=headers, content_type=JSON)
