"""Serves requests from an ``Api`` without HTTP: ``server`` connects it to sockets, simulations call it.

``documents`` adds discovery and OpenAPI, ``tables`` renders kubectl's tables, and ``api.virtual`` holds
resources that are computed for each request, such as those of metrics.k8s.io.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson
import yaml
from aiohttp import web

from roadstead.authorization.identities import Identities, impersonation_needs
from roadstead.authorization.requests import asked_by
from roadstead.server import writes
from roadstead.server.bodies.content_negotiation import JSON, Form, accepted
from roadstead.server.bodies.protobuf_bodies import MEDIA_TYPE, encoded_protobuf
from roadstead.server.lists import Page, flag, list_options, page, too_large
from roadstead.server.paths import Target, target
from roadstead.server.renderers import Documents, TableRenderer
from roadstead.server.watches import Watcher
from roadstead.server.webhook_calls import WebhookCaller
from roadstead.server.write_requests import SentRequest, WriteResult, success
from roadstead.store.progress import Unanswered
from roadstead.store.store import Entry
from roadstead.values.status_errors import StatusError, bad_request, method_not_allowed

if TYPE_CHECKING:
    from pathlib import Path

    from roadstead.authorization.role_based import RoleBased
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


def _is_open(path: str) -> bool:
    """Whether every client may read a path."""
    return path in _OPEN or path.startswith(("/livez/", "/readyz/", "/healthz/"))


@dataclass(frozen=True, slots=True)
class Request:
    """A request, its body read."""

    method: str
    path: str
    query_string: str
    headers: Mapping[str, str]
    body: bytes


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


class RequestHandler:
    """Serves the requests of clients.

    Args:
        api: the API to serve.
        token: the bearer token that clients must send.
        tables: renders tables; without it a client that requests a table gets the objects.
        documents: called in order for paths that name no resource.
        actions: called on a POST to their path.
        token_file: further valid tokens, one per line; read at each request, so that they can be replaced and
            withdrawn.
        authorizer: what users may do; without it, every client with a token may do everything.
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
        authorizer: RoleBased | None = None,
    ) -> None:
        self.api = api
        self.webhooks = WebhookCaller(api)
        self.tables = tables
        self.documents = list(documents)
        self._actions = dict(actions or {})
        accounts = functools.partial(api.find, "serviceaccounts")
        self.identities = Identities(token, token_file, anonymous=authorizer is not None, accounts=accounts)
        self.authorizer = authorizer

    def authenticate(self, path: str, headers: Mapping[str, str]) -> None:
        """Check the client's identity.

        Raises:
            StatusError: 401.
        """
        if not _is_open(path):
            self.identities.sender(headers)

    def authorize(self, method: str, path: str, query_string: str, headers: Mapping[str, str]) -> None:
        """Check that an authenticated client may send a request.

        Raises:
            StatusError: 403; 400, if it impersonates a group without a user.
        """
        if self.authorizer is None or _is_open(path):
            return
        for need in impersonation_needs(headers):
            self.authorizer.check(self.identities.sender(headers), need)
        self.authorizer.check(self.identities.user(headers), asked_by(method, path, query_string))

    def answered(self, request: Request) -> web.Response:
        """Respond to an authenticated request other than a watch; a rejection becomes a Status.

        Raises:
            Unanswered: it waits for webhooks.
        """
        try:
            return self._answer(request)
        except StatusError as error:
            return refusal(error)
        except Unanswered:
            raise
        except Exception as error:  # noqa: BLE001 - one bad request must not end the server
            return failure(f"{request.method} {request.path}", error)

    def watcher(self, path: str, query_string: str, headers: Mapping[str, str]) -> Watcher | None:
        """The watch that an authenticated GET starts; None if it is not a watch.

        Raises:
            StatusError: it is rejected.
        """
        if "watch=" not in query_string:
            return None
        found = self._target(path)
        query = dict(parse_qsl(query_string, keep_blank_values=True))
        if found is None or found.name or not flag(query.get("watch", "false")):
            return None
        self._require(found, "list", "GET")
        self._require(found, "watch", "GET")
        form = accepted(headers.get("Accept", ""))
        options = list_options(query, watch=True)
        render: Callable[[Obj], Obj] | None = None
        if form.shape == "PartialObjectMetadata":
            render = partial_of(form.version)
        elif form.shape == "Table" and self.tables is not None:
            render = self._table_rows(found.resource, form, query)
        return Watcher(self.api, found.resource, found.namespace, options, render, self.webhooks.run)

    def _target(self, path: str) -> Target | None:
        """The resource, with object and subresource, that a path names; None for another document."""
        found = target(path, self.api.registry) if path.startswith(("/api/", "/apis/")) else None
        if found is not None and found.subresource and found.resource.subresource(found.subresource) is None:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        return found

    def _answer(self, request: Request) -> web.Response:
        found = self._target(request.path)
        if found is None:
            return self._document(request)
        query = dict(parse_qsl(request.query_string, keep_blank_values=True)) if request.query_string else {}
        form = accepted(request.headers.get("Accept", ""), protobuf=self._has_messages(found.resource))
        verb = request.method
        if verb == "GET":
            response = self._one(found, query, form) if found.name else self._list(found, query, form)
        else:
            sent = SentRequest(query, request.body, request.headers, self.identities.user(request.headers))
            change = writes.write(self.api, found, verb, sent, self.identities.token, self.authorizer)
            response = self._written(change, form, query)
        if found.resource.warning:
            response.headers.add("Warning", f'299 - "{found.resource.warning}"')
        return response

    def _has_messages(self, resource: Resource) -> bool:
        """Whether objects of a resource can be sent as Protocol Buffers."""
        return not resource.custom and resource.key not in self.api.virtual

    @staticmethod
    def _require(found: Target, verb: str, method: str) -> None:
        if verb not in found.resource.verbs:
            raise method_not_allowed(found.resource, method.lower())

    def _document(self, request: Request) -> web.Response:
        path = request.path
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

    def _one(self, found: Target, query: dict[str, str], form: Form) -> web.Response:
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
    ) -> web.Response:
        if form.shape == "Table" and self.tables is not None:
            table = self._table(resource, [entry.obj], form, query)
            table["metadata"] = {"resourceVersion": entry.obj["metadata"].get("resourceVersion", "")}
            return _render(table, form, status)
        if form.shape == "PartialObjectMetadata":
            return _render(partial(entry.obj, form.version), form, status)
        if form.media != "json":
            return _render(entry.obj, form, status)
        return web.Response(body=entry.raw, status=status, content_type=JSON)

    def _table(self, resource: Resource, objects: Sequence[Obj], form: Form, query: dict[str, str]) -> Obj:
        assert self.tables is not None
        include = query.get("includeObject", "") or "Metadata"
        return self.tables(resource, objects, include_object=include, columns=True, version=form.version)

    def _list(self, found: Target, query: dict[str, str], form: Form) -> web.Response:
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
        if form.media != "json":
            return _render({**head, "items": [entry.obj for entry in part.entries]}, form)
        lines = [entry.raw for entry in part.entries]
        if not resource.custom:  # items of a list of a built-in kind do not repeat the kind
            begin = len(orjson.dumps({"kind": resource.kind, "apiVersion": resource.api_version}))
            lines = [b"{" + raw[begin:] for raw in lines]
        body = b'%s,"items":[%s]}' % (orjson.dumps(head)[:-1], b",".join(lines))
        return web.Response(body=body, content_type=JSON)

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

    def _written(self, change: WriteResult, form: Form, query: dict[str, str]) -> web.Response:
        if change.resource is not None and isinstance(change.body, Entry):
            response = self._entry(change.resource, change.body, form, query, change.status)
        else:
            body = change.body.obj if isinstance(change.body, Entry) else change.body
            response = _render(body, form, change.status)
        return _with_warnings(response, change.warnings)


def _with_warnings(response: web.Response, warnings: Sequence[str]) -> web.Response:
    for warning in _shortened([one for one in dict.fromkeys(warnings) if one]):
        if not _CONTROL.search(warning):
            response.headers.add("Warning", f"299 - {orjson.dumps(warning).decode()}")
    return response


#: Characters of all warnings of an answer together, and of each as soon as they are more.
_ALL_WARNINGS, _ONE_WARNING = 4096, 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _shortened(warnings: Sequence[str]) -> list[str]:
    """The warnings that fit into an answer.

    Source: apiserver v1.36 ``pkg/endpoints/filters/warning.go``.
    """
    if sum(map(len, warnings)) <= _ALL_WARNINGS:
        return [*warnings]
    shown: list[str] = []
    for warning in warnings:
        if sum(map(len, shown)) >= _ALL_WARNINGS:
            break
        shown.append(warning[:_ONE_WARNING])
    return shown


def _render(value: Any, form: Form, status: int = 200) -> web.Response:
    if form.media == "yaml":
        return web.Response(
            body=yaml.safe_dump(value).encode(), status=status, content_type="application/yaml"
        )
    encoded = encoded_protobuf(value) if form.media == "protobuf" else None
    if encoded is not None:
        return web.Response(body=encoded, status=status, content_type=MEDIA_TYPE)
    return _json(value, status)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, headers=headers, content_type=JSON)


def refusal(error: StatusError) -> web.Response:
    """A rejection as a Status."""
    headers = {}
    if "retryAfterSeconds" in error.details:
        headers["Retry-After"] = str(error.details["retryAfterSeconds"])
    return _with_warnings(_json(error.status, error.code, headers), error.warnings)


def failure(attempt: str, error: Exception) -> web.Response:
    """The response to a request that has triggered a bug; called in the exception handler."""
    _LOG.exception("%s failed", attempt)
    return _json(StatusError(500, "InternalError", f"Internal error occurred: {error!r}").status, 500)
