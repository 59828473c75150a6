"""Lets admission judge the connections to pods: ``exec``, ``attach``, ``portforward`` and ``proxy``.

Source: Kubernetes v1.36 ``pkg/registry/core/pod/rest/subresources.go``, apiserver
``endpoints/handlers/rest.go``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from roadstead.store.api import Write
from roadstead.values.status_errors import StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from roadstead.store.api import Api
    from roadstead.values.resources import Obj

_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/(exec|attach|portforward|proxy)(/.*)?")
_KINDS = {
    "exec": "PodExecOptions",
    "attach": "PodAttachOptions",
    "portforward": "PodPortForwardOptions",
    "proxy": "PodProxyOptions",
}
_FLAGS = ("stdin", "stdout", "stderr", "tty")


def connection(api: Api, request: web.BaseRequest, user: Obj) -> Callable[[], Obj] | None:
    """Asks admission about the connection that a request wants, and returns its options; None: it wants none.

    Raises:
        StatusError: calling it, if the connection is rejected.
        Unanswered: calling it, if it waits for webhooks.
    """
    found = _PATH.fullmatch(request.url.raw_path)
    if found is None or (found[4] and found[3] != "proxy"):
        return None
    key = unquote(found[1]), unquote(found[2])
    options = _options(found[3], request, unquote(found[4] or ""))
    resource = api.resource("pods")
    return lambda: api.connected(resource, key, found[3], options, _KINDS[found[3]], Write(user=user))


def check_host(api: Api, request: web.BaseRequest) -> None:
    """Raise what a pod answers to a connection that only a kubelet could serve: 400 without a node."""
    found = _PATH.fullmatch(request.url.raw_path)
    if found is None or found[3] not in ("attach", "portforward"):
        return
    pod = api.entry(api.resource("pods"), unquote(found[1]), unquote(found[2])).obj
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {found[2]} does not have a host assigned")
    raise StatusError(501, "NotImplemented", f"roadstead has no kubelet that serves {found[3]}")


def _options(subresource: str, request: web.BaseRequest, path: str) -> Obj:
    query = request.query
    if subresource == "proxy":
        return {"path": path} if path else {}
    if subresource == "portforward":
        ports = [int(one) for one in query.getall("ports", []) if one.isdigit()]
        return {"ports": ports} if ports else {}
    found: Obj = {flag: True for flag in _FLAGS if query.get(flag) in ("true", "1")}
    if query.get("container"):
        found["container"] = query["container"]
    if subresource == "exec" and "command" in query:
        found["command"] = query.getall("command")
    return found
