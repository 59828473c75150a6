"""Writes as they come over HTTP: what method, path, parameters and body ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plimsoll.devcluster import patching
from plimsoll.devcluster.api import Api, Write, key_of
from plimsoll.devcluster.copying import copied
from plimsoll.devcluster.deleting import DeleteOptions
from plimsoll.devcluster.negotiating import content_type, decoded, unsupported
from plimsoll.devcluster.statuses import StatusError, bad_request, method_not_allowed

if TYPE_CHECKING:
    from plimsoll.devcluster.paths import Target
    from plimsoll.devcluster.resources import Obj, Resource
    from plimsoll.devcluster.store import Entry

Headers = Mapping[str, str]
Query = Mapping[str, str]


@dataclass(slots=True)
class Written:
    """The answer to a write; ``resource`` says what the entry is, None for a Status and the like."""

    body: Entry | Obj
    status: int = 200
    resource: Resource | None = None
    warnings: list[str] = field(default_factory=list)


def read(api: Api, target: Target) -> Entry:
    """The object, or its subresource, that a GET names."""
    return api.entry(target.resource, target.namespace, target.name)


@dataclass(frozen=True, slots=True)
class Sent:
    """What came with a request beside its path."""

    query: Query
    body: bytes
    headers: Headers


def write(api: Api, target: Target, method: str, sent: Sent) -> Written:
    """Carry out a write.

    Raises:
        StatusError: where it is refused.
    """
    resource, query, body, headers = target.resource, sent.query, sent.body, sent.headers
    verb = _verb(target, method)
    media = content_type(headers.get("Content-Type", ""))
    how = Write(dry_run="dryRun" in query, manager=_manager(query, headers), subresource=target.subresource)
    if verb == "delete":
        return _delete(api, target, query, body, media)
    if verb == "deletecollection":
        return _delete_collection(api, target, query, body, media)
    if verb == "patch":
        return _patch(api, target, body, media, how)
    obj = _object(decoded(body, media), resource)
    _settle_namespace(obj, target)
    warnings = api.kind(resource).decode(obj, resource)
    if verb == "create":
        return Written(api.create_owned(resource, obj, how), 201, resource, warnings)
    if obj["metadata"].get("name", target.name) != target.name:
        raise bad_request(
            f"the name of the object ({obj['metadata'].get('name')}) does not match the name on the URL "
            f"({target.name})"
        )
    obj["metadata"]["name"] = target.name
    return Written(api.update_owned(resource, obj, how), 200, resource, warnings)


def _verb(target: Target, method: str) -> str:
    """The verb of a method on a target.

    Raises:
        StatusError: 405.
    """
    resource = target.resource
    verbs: tuple[str, ...] = resource.verbs
    if target.subresource:
        subresource = resource.subresource(target.subresource)
        verbs = subresource.verbs if subresource else ()
    if target.name:
        named = {"PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        verb = named.get(method, "create" if method == "POST" and target.subresource else "")
    else:
        verb = {"POST": "create", "DELETE": "deletecollection"}.get(method, "")
        if resource.namespaced and target.namespace is None:
            verb = ""
    if not verb or verb not in verbs:
        raise method_not_allowed(resource, method.lower())
    return verb


def _manager(query: Query, headers: Headers) -> str:
    given = query.get("fieldManager", "")
    return given or headers.get("User-Agent", "unknown").partition("/")[0]


def _object(value: Any, resource: Resource) -> Obj:
    """A body as an object of the resource.

    Raises:
        StatusError: 400.
    """
    if not isinstance(value, dict):
        raise bad_request("the body of the request must be an object")
    given = (value.get("apiVersion", resource.api_version), value.get("kind", resource.kind))
    if given != (resource.api_version, resource.kind):
        raise bad_request(
            f'{given[1]} in version "{given[0]}" cannot be handled as a {resource.kind}: '
            f"expected {resource.api_version}, Kind={resource.kind}"
        )
    if not isinstance(value.setdefault("metadata", {}), dict):
        raise bad_request("metadata must be an object")
    return value


def _settle_namespace(obj: Obj, target: Target) -> None:
    meta = obj["metadata"]
    if not target.resource.namespaced:
        return
    if meta.get("namespace") and meta["namespace"] != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = target.namespace


_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def _patch(api: Api, target: Target, body: bytes, media: str, how: Write) -> Written:
    if media not in _PATCHES:
        raise unsupported(media, _PATCHES)
    patch = decoded(body, "application/yaml" if media.endswith("yaml") else "")
    old = api.entry(target.resource, target.namespace, target.name).obj
    if not isinstance(patch, dict):
        raise bad_request("the patch must be an object")
    new = patching.merge(copied(old), patch)
    return Written(api.update_owned(target.resource, new, how), 200, target.resource)


def _delete_options(query: Query, body: bytes, media: str) -> DeleteOptions:
    given = decoded(body, media) if body.strip() else {}
    if not isinstance(given, dict):
        raise bad_request("the body of the request must be DeleteOptions")
    grace = given.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds"):
        grace = int(query["gracePeriodSeconds"])
    preconditions = given.get("preconditions") or {}
    propagation = given.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = given.get("orphanDependents")
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    return DeleteOptions(
        grace,
        propagation,
        preconditions.get("uid") or "",
        preconditions.get("resourceVersion") or "",
        "dryRun" in query or bool(given.get("dryRun")),
    )


def _delete(api: Api, target: Target, query: Query, body: bytes, media: str) -> Written:
    resource = target.resource
    options = _delete_options(query, body, media)
    entry, removed = api.remove(resource, target.namespace, target.name, options)
    if removed and resource.key != "pods":
        details = {"name": target.name, "kind": resource.plural, "uid": entry.obj["metadata"]["uid"]}
        if resource.group:
            details["group"] = resource.group
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
        return Written(status)
    return Written(entry, 200, resource)


def _delete_collection(api: Api, target: Target, query: Query, body: bytes, media: str) -> Written:
    resource = target.resource
    options = _delete_options(query, body, media)
    chosen = api.list(
        resource,
        target.namespace,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
    )
    gone = []
    for obj in chosen:
        namespace, name = key_of(obj)
        try:
            gone.append(api.remove(resource, namespace, name, options)[0].obj)
        except StatusError as error:
            if error.code != 404:
                raise
    head = {
        "kind": resource.list_kind or f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(api.store.revision)},
    }
    return Written({**head, "items": gone})
