"""Builds causes of invalid fields with the API server's messages, one constructor for each reason.

Source: apimachinery v1.36 ``util/validation/field/errors.go``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from roadstead.values.status_errors import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The name of a field without a path.
NOWHERE = "<nil>"


class Omitted:
    """A value that messages omit, because it would be too long."""


OMITTED = Omitted()


def quoted(value: Any) -> str:
    """A value in the API server's messages."""
    if isinstance(value, float):
        return go_number(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def go_number(value: float) -> str:
    """A number in Go's notation: 10 and not 10.0."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def _sentence(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def invalid(field: str, value: Any, detail: str) -> Cause:
    """The value is invalid."""
    shown = "" if isinstance(value, Omitted) else quoted(value)
    return Cause(field, _sentence("Invalid value", shown, detail), "FieldValueInvalid")


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    """The value has another type than the field."""
    return Cause(field, _sentence("Invalid value", quoted(value), detail), "FieldValueTypeInvalid")


def required(field: str, detail: str = "") -> Cause:
    """The field must be set."""
    return Cause(field, _sentence("Required value", detail), "FieldValueRequired")


def forbidden(field: str, detail: str) -> Cause:
    """The field must not be set."""
    return Cause(field, _sentence("Forbidden", detail), "FieldValueForbidden")


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> Cause:
    """The value is not among the supported ones."""
    listed = ", ".join(quoted(one if isinstance(one, str) else quoted(one)) for one in supported)
    return Cause(
        field,
        _sentence("Unsupported value", quoted(value), f"supported values: {listed}"),
        "FieldValueNotSupported",
    )


def duplicate(field: str, value: Any) -> Cause:
    """The value occurs twice."""
    return Cause(field, _sentence("Duplicate value", quoted(value)), "FieldValueDuplicate")


def too_long(field: str, most: int) -> Cause:
    """The text has too many bytes."""
    return Cause(field, f"Too long: may not be more than {most} bytes", "FieldValueTooLong")


def too_many(field: str, given: int, most: int) -> Cause:
    """The list or map has too many items."""
    items = "item" if most == 1 else "items"
    return Cause(field, f"Too many: {given}: must have at most {most} {items}", "FieldValueTooMany")


def below(path: str, name: str) -> str:
    """The path of a field of an object."""
    return f"{path}.{name}" if path else name
