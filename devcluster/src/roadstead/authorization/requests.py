"""Describes requests to an authorizer, by their method and path.

Source: apiserver v1.36 ``pkg/endpoints/request/requestinfo.go``.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from roadstead.authorization.rules import Asked

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: What a namespace has besides the resources in it.
_OF_NAMESPACES = frozenset({"status", "finalize"})


def asked_by(method: str, path: str, query_string: str = "") -> Asked:
    """What a request asks for, by its path alone: the resource need not be served."""
    parts = [part for part in path.split("/") if part]
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:] if parts[:1] == ["apis"] else []
    if not rest:
        return Asked(method.lower(), path=path)
    group = "" if parts[0] == "api" else parts[1]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    resource, name, sub = [*rest, "", ""][:3]
    query = parse_qs(query_string)
    if method in ("GET", "HEAD"):
        is_watch = query.get("watch", [""])[0] in ("1", "t", "T", "true", "True", "TRUE")
        verb = "get" if name else "watch" if is_watch else "list"
    else:
        verb = _VERBS.get(method, method.lower())
        verb = "deletecollection" if verb == "delete" and not name else verb
    if not name and verb in ("list", "watch", "deletecollection"):
        for term in query.get("fieldSelector", [""])[0].split(","):
            key, _, value = term.partition("=")
            name = value.removeprefix("=") if key == "metadata.name" else name
    return Asked(verb, group, f"{resource}/{sub}" if sub else resource, namespace, name)
