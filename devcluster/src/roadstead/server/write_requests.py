"""Parses write requests: verb, object, namespace, and fields that are unknown to the kind.

``writes`` carries it out.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roadstead.schemas.schemas import WrongTypeError, go_type
from roadstead.server.bodies.content_negotiation import content_type, repeated_keys
from roadstead.store.admission import ADMINISTRATOR
from roadstead.store.store import Entry
from roadstead.values.status_errors import (
    OTHER_NAMESPACE,
    Cause,
    StatusError,
    bad_request,
    invalid,
    method_not_allowed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.server.paths import Target
    from roadstead.values.resources import Obj, Resource

STRATEGIC_PATCH = "application/strategic-merge-patch+json"


@dataclass(slots=True)
class WriteResult:
    """The response to a write; ``resource`` is that of the entry, None for a Status or a list."""

    body: Entry | Obj
    status: int = 200
    resource: Resource | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """The parameters, body, headers and sender of a request."""

    query: Mapping[str, str]
    body: bytes
    headers: Mapping[str, str]
    user: Obj = field(default_factory=lambda: ADMINISTRATOR)

    @property
    def media(self) -> str:
        """The media type of the body."""
        return content_type(self.headers.get("Content-Type", ""))


def success(code: int) -> Obj:
    """A Status that reports success."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}


def verb_of(target: Target, method: str) -> str:
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
        if verb == "create" and resource.namespaced and target.namespace is None:
            if resource.custom:
                raise StatusError(404, "NotFound", "the server could not find the requested resource")
            verb = ""
    if target.subresource and verb not in verbs:
        message = "the server does not allow this method on the requested resource"
        raise StatusError(405, "MethodNotAllowed", message)
    if not verb or verb not in verbs:
        raise method_not_allowed(resource, method.lower())
    return verb


def stray_field_warnings(sent: SentRequest, strays: list[str], resource: Resource) -> list[str]:
    """Warnings of unknown and repeated fields.

    Raises:
        StatusError: 400, if they are rejected.
    """
    asked = sent.query.get("fieldValidation", "")
    if asked == "Ignore":
        return []
    warnings = [f'unknown field "{stray}"' for stray in strays]
    if asked and sent.media != STRATEGIC_PATCH:
        warnings = [f'duplicate field "{key}"' for key in repeated_keys(sent.body)] + warnings
    if warnings and asked == "Strict":
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"strict decoding error: {', '.join(warnings)}"
        )
    return warnings


def sent_object(value: Any, resource: Resource) -> Obj:
    """A body as an object of the resource.

    Raises:
        StatusError: 400.
    """
    if not isinstance(value, dict):
        raise bad_request("the body of the request must be an object")
    given = (value.get("apiVersion") or resource.api_version, value.get("kind") or resource.kind)
    if given != (resource.api_version, resource.kind):
        if resource.custom and given[0] == resource.api_version:
            name = str((value.get("metadata") or {}).get("name", ""))
            named = dataclasses.replace(resource, kind=str(given[1]))
            message = f'Invalid value: "{given[1]}": must be {resource.kind}'
            raise invalid(named, name, [Cause("kind", message)])
        raise bad_request(
            f'{given[1]} in version "{given[0]}" cannot be handled as a {resource.kind}: '
            f"expected {resource.api_version}, Kind={resource.kind}"
        )
    if value.get("metadata") is None:
        value["metadata"] = {}
    if not isinstance(value["metadata"], dict):
        why = WrongTypeError(go_type(value["metadata"]), "v1.ObjectMeta")
        why.leave(resource.kind, "metadata")
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'
        )
    return value


def settle_namespace(obj: Obj, target: Target) -> None:
    """Write the namespace of the path into the object.

    Raises:
        StatusError: 400, if the object names another one.
    """
    meta = obj["metadata"]
    if not target.resource.namespaced:
        meta.pop("namespace", None)
        return
    if meta.get("namespace") and meta["namespace"] != target.namespace:
        raise bad_request(OTHER_NAMESPACE)
    meta["namespace"] = target.namespace


def check_name(obj: Obj, target: Target) -> None:
    """Compare the object's name with that of the path.

    Raises:
        StatusError: 400, if they differ.
    """
    name = obj["metadata"].get("name")
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
