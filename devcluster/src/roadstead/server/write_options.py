"""Reads options of writes from parameters and bodies.

Source: apimachinery v1.36 ``pkg/apis/meta/v1/validation``; apiserver ``pkg/endpoints/handlers/delete.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roadstead.schemas import fields
from roadstead.schemas.field_errors import too_long
from roadstead.schemas.schemas import MismatchError
from roadstead.store.api import Write
from roadstead.store.deletion import DeleteOptions
from roadstead.values.status_errors import Cause, StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.values.resources import Obj

APPLY = "application/apply-patch+yaml"
_OPTIONS = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}
_LONGEST_MANAGER = 128


def _bad_option(kind: str, causes: list[Cause]) -> StatusError:
    """422: parameters are invalid."""
    message = ", ".join(f"{cause.field}: {cause.message}" for cause in causes)
    details = {
        "group": "meta.k8s.io",
        "kind": kind,
        "causes": [{"reason": one.reason, "message": one.message, "field": one.field} for one in causes],
    }
    return StatusError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {message}', details)


def _manager_causes(name: str) -> list[Cause]:
    """Faults in the name of a field manager."""
    causes = [too_long("fieldManager", _LONGEST_MANAGER)] if len(name.encode()) > _LONGEST_MANAGER else []
    for position, sign in enumerate(name):
        if not sign.isprintable():
            shown = f"\\x{ord(sign):02x}" if ord(sign) < 0x80 else sign
            message = f"invalid character U+{ord(sign):04X} (at position {position})"
            causes.append(Cause("fieldManager", f'Invalid value: "{shown}": {message}'))
    return causes


def write_options(verb: str, query: Mapping[str, str], media: str, subresource: str, client: str) -> Write:
    """The writer and the options of a write.

    Args:
        verb: the verb of the write.
        query: its parameters.
        media: the type of its body.
        subresource: "" for the main resource.
        client: the field manager if the parameters name none.

    Raises:
        StatusError: 422, if a parameter is invalid.
    """
    causes = []
    dry = query.get("dryRun", "")
    if dry and dry != "All":
        message = f'Unsupported value: ["{dry}"]: supported values: "All"'
        causes.append(Cause("dryRun", message, "FieldValueNotSupported"))
    validation = query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Warn", "Strict"):
        message = f'Unsupported value: "{validation}": supported values: "Ignore", "Warn", "Strict"'
        causes.append(Cause("fieldValidation", message, "FieldValueNotSupported"))
    if verb == "patch":
        if media == APPLY and not query.get("fieldManager"):
            causes.append(
                Cause("fieldManager", "Required value: is required for apply patch", "FieldValueRequired")
            )
        if media != APPLY and query.get("force"):
            causes.append(
                Cause("force", "Forbidden: may not be specified for non-apply patch", "FieldValueForbidden")
            )
    causes += _manager_causes(query.get("fieldManager", ""))
    if causes:
        raise _bad_option(_OPTIONS[verb], causes)
    manager = query.get("fieldManager", "") or client
    options: Obj = {"kind": _OPTIONS[verb], "apiVersion": "meta.k8s.io/v1"}
    options |= {key: query[key] for key in ("fieldManager", "fieldValidation") if query.get(key)}
    if dry:
        options["dryRun"] = [dry]
    if query.get("force") == "true":
        options["force"] = True
    return Write(dry_run=bool(dry), manager=manager, subresource=subresource, options=options)


#: Group, version and kind of bodies, by subresource.
BODIES = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}


def typed(obj: Any, kind: tuple[str, str, str]) -> Obj:
    """A body with its fields decoded by the types of its kind.

    Raises:
        StatusError: 400.
    """
    schema = fields.schema_of(*kind)
    assert schema is not None
    try:
        taken: Obj = schema.taken(obj, [])
    except MismatchError as error:
        raise bad_request(f"the body of the request cannot be handled as a {kind[2]}: {error}") from error
    return taken


def delete_options(query: Mapping[str, str], given: Any) -> DeleteOptions:
    """Options of a deletion, from its body, or without a body from its parameters.

    Args:
        query: the parameters.
        given: the request body, or None.

    Raises:
        StatusError: 400, 422.
    """
    chosen = _deletion_asked(query) if given is None else typed(_checked(given), ("", "v1", "DeleteOptions"))
    preconditions = chosen.get("preconditions") or {}
    propagation, orphan = chosen.get("propagationPolicy") or "", chosen.get("orphanDependents")
    dry = chosen.get("dryRun") or []
    causes = []
    if propagation not in ("", "Background", "Foreground", "Orphan"):
        words = '"Background", "Foreground", "Orphan", "nil"'
        message = f'Unsupported value: "{propagation}": supported values: {words}'
        causes.append(Cause("propagationPolicy", message, "FieldValueNotSupported"))
    if orphan is not None and propagation:
        message = (
            f'Invalid value: "{propagation}": orphanDependents and deletionPropagation cannot be both set'
        )
        causes.append(Cause("propagationPolicy", message))
    if any(one != "All" for one in dry):
        causes.append(Cause("dryRun", 'Unsupported value: supported values: "All"', "FieldValueNotSupported"))
    if causes:
        raise _bad_option("DeleteOptions", causes)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    uid, version = preconditions.get("uid") or "", preconditions.get("resourceVersion") or ""
    shown = {key: value for key, value in chosen.items() if value not in (None, "")}
    shown |= {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    return DeleteOptions(chosen.get("gracePeriodSeconds"), propagation, uid, version, bool(dry), sent=shown)


def _checked(given: Any) -> Any:
    """A body that names a kind must be DeleteOptions, of any group.

    Raises:
        StatusError: 400.
    """
    kind = given.get("kind") if isinstance(given, dict) else None
    if kind in (None, "", "DeleteOptions"):
        return given
    version = given.get("apiVersion", "")
    raise bad_request(f'no kind "{kind}" is registered for version "{version}"')


def _deletion_asked(query: Mapping[str, str]) -> Obj:
    """Options of a deletion from parameters.

    Raises:
        StatusError: 400.
    """
    asked: Obj = {"propagationPolicy": query.get("propagationPolicy", "")}
    if text := query.get("gracePeriodSeconds"):
        try:
            asked["gracePeriodSeconds"] = int(text)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    if query.get("orphanDependents"):
        asked["orphanDependents"] = query["orphanDependents"] not in ("0", "false")
    if query.get("dryRun"):
        asked["dryRun"] = [query["dryRun"]]
    return asked
