"""Builds errors: ``metav1.Status`` with code, reason, message and details.

The messages are the API server's own, because clients and people rely on their wording.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roadstead.values.resources import Obj, Resource


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for which a field is rejected, as in ``details.causes``.

    ``reason`` is a FieldValueInvalid, FieldValueRequired, FieldValueNotSupported and so on.
    """

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class StatusError(Exception):
    """A rejected request; ``str()`` returns its message."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        #: Those of admission until then.
        self.warnings: list[str] = []
        if retry_after is not None:
            self.details["retryAfterSeconds"] = retry_after

    @property
    def status(self) -> Obj:
        """The ``metav1.Status`` object."""
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status


def _details(resource: Resource, name: str, **more: Any) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.error_group:
        details["group"] = resource.error_group
    return {**details, "kind": resource.plural, **more}


def not_found(resource: Resource, name: str) -> StatusError:
    """404: the object does not exist."""
    return StatusError(404, "NotFound", f'{resource.error_key} "{name}" not found', _details(resource, name))


def already_exists(resource: Resource, name: str, *, ending: bool = False) -> StatusError:
    """409: an object with this name exists, possibly one that is being deleted."""
    message = f'{resource.error_key} "{name}" already exists'
    text = f"object is being deleted: {message}" if ending else message
    return StatusError(409, "AlreadyExists", text, _details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> StatusError:
    """409: the object's state contradicts the request."""
    message = f'Operation cannot be fulfilled on {resource.error_key} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(resource, name))


OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def forbidden(resource: Resource, name: str, why: str, **more: Any) -> StatusError:
    """403: admission or policy rejects it."""
    message = f'{resource.error_key} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, _details(resource, name, **more))


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> StatusError:
    """422: fields are invalid."""
    faults = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.error_group:
        details["group"] = resource.error_group
    if resource.kind:
        details["kind"] = resource.kind
    details["causes"] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]
    return StatusError(422, "Invalid", f'{resource.group_kind} "{name}" is invalid: {text}', details)


def bad_request(message: str) -> StatusError:
    """400: the request is malformed."""
    return StatusError(400, "BadRequest", message)


def method_not_allowed(resource: Resource, verb: str) -> StatusError:
    """405: the resource does not support this verb."""
    return StatusError(
        405,
        "MethodNotAllowed",
        f'{verb} is not supported on resources of kind "{resource.error_key}"',
        _details(resource, ""),
    )


def expired(message: str) -> StatusError:
    """410: the requested version is too old."""
    return StatusError(410, "Expired", message)


def too_many_requests(
    message: str, *, retry_after: int | None = None, causes: Sequence[dict[str, str]] = ()
) -> StatusError:
    """429: the client should retry later."""
    details = {"causes": list(causes)} if causes else None
    return StatusError(429, "TooManyRequests", message, details, retry_after=retry_after)
