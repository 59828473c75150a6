"""Builds causes for fields that several kinds have."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from roadstead.kinds.checks.metadata import (
    label_causes,
    label_faults,
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
)
from roadstead.values.selectors import matches_labels, selector_requirements
from roadstead.values.status_errors import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.values.resources import Obj


def quoted(value: Any) -> str:
    """A value in messages."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def required(field: str, detail: str = "") -> Cause:
    """The field must be set."""
    return Cause(field, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def invalid(field: str, value: Any, detail: str) -> Cause:
    """The value is invalid."""
    return Cause(field, f"Invalid value: {quoted(value)}: {detail}")


def forbidden(field: str, detail: str) -> Cause:
    """The field must not be set or changed."""
    return Cause(field, f"Forbidden: {detail}", "FieldValueForbidden")


def duplicate(field: str, value: Any) -> Cause:
    """The value occurs twice."""
    return Cause(field, f"Duplicate value: {quoted(value)}", "FieldValueDuplicate")


def missing(field: str, value: Any, detail: str = "") -> Cause:
    """The named object does not exist."""
    message = f"Not found: {quoted(value)}"
    return Cause(field, f"{message}: {detail}" if detail else message, "FieldValueNotFound")


def too_many(field: str, given: int, most: int) -> Cause:
    """The list has too many items."""
    return Cause(field, f"Too many: {given}: must have at most {most} items", "FieldValueTooMany")


def too_long(field: str, most: int) -> Cause:
    """The text has too many bytes."""
    return Cause(field, f"Too long: may not be more than {most} bytes", "FieldValueTooLong")


def not_among(field: str, value: Any, supported: Iterable[str]) -> Cause:
    """The value is not among the supported ones."""
    listed = ", ".join(f'"{word}"' for word in supported)
    message = f"Unsupported value: {quoted(value)}: supported values: {listed}"
    return Cause(field, message, "FieldValueNotSupported")


def one_of(field: str, value: Any, supported: Iterable[str]) -> list[Cause]:
    """The value must be one of some words; messages list them in this order."""
    words = tuple(supported)
    return [] if value in words else [not_among(field, value, words)]


def not_negative(field: str, value: Any) -> list[Cause]:
    """The number must not be negative."""
    if isinstance(value, int) and value < 0:
        return [invalid(field, value, "must be greater than or equal to 0")]
    return []


def label_name(field: str, value: str) -> list[Cause]:
    """The value must be a DNS label."""
    return [invalid(field, value, fault) for fault in label_faults(value)]


_WITH_UNDERSCORES = re.compile(r"[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*")
_UNDERSCORE_FAULT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', '_' or '.', and "
    "must start and end with an alphanumeric character or an underscore (e.g. 'example.com', regex used for "
    "validation is '[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*')"
)


def subdomain_name(field: str, value: str, *, underscores: bool = False) -> list[Cause]:
    """The value must be a DNS subdomain."""
    if not underscores:
        return [invalid(field, value, fault) for fault in subdomain_faults(value)]
    if len(value) <= 253 and _WITH_UNDERSCORES.fullmatch(value):
        return []
    return [invalid(field, value, _UNDERSCORE_FAULT)]


_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_FAULT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_LONGEST_KEY = 253


def config_key(field: str, key: str) -> list[Cause]:
    """The value must be a key of a config map or a secret."""
    faults = [f"must be no more than {_LONGEST_KEY} characters"] if len(key) > _LONGEST_KEY else []
    if not _KEY.fullmatch(key):
        faults.append(_KEY_FAULT)
    if key in (".", ".."):
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return [invalid(field, key, fault) for fault in faults]


def port_number(field: str, number: int) -> list[Cause]:
    """The value must be the number of a port."""
    return [] if 0 < number < 65536 else [invalid(field, number, "must be between 1 and 65535, inclusive")]


IMMUTABLE = "field is immutable"


def immutable(field: str, new: Any, old: Any) -> list[Cause]:
    """The field must not change."""
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def label_selector(selector: Obj | None, at: str) -> list[Cause]:
    """Faults of a ``metav1.LabelSelector``."""
    causes = label_causes((selector or {}).get("matchLabels"), f"{at}.matchLabels")
    for index, one in enumerate((selector or {}).get("matchExpressions") or []):
        here = f"{at}.matchExpressions[{index}]"
        operator, values = one.get("operator", ""), one.get("values") or []
        if operator not in _OPERATORS:
            causes.append(invalid(f"{here}.operator", operator, "not a valid selector operator"))
        elif operator in ("In", "NotIn") and not values:
            causes.append(required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist") and values:
            causes.append(
                forbidden(
                    f"{here}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
            )
        causes += [
            invalid(f"{here}.key", one.get("key", ""), fault)
            for fault in qualified_name_faults(one.get("key", ""))
        ]
        causes += [
            invalid(f"{here}.values[{number}]", value, fault)
            for number, value in enumerate(values)
            for fault in label_value_faults(value)
        ]
    return causes


def selects(selector: Obj, labels: dict[str, str]) -> bool:
    """Whether a label selector matches labels."""
    requirements = selector_requirements(selector)
    return requirements is not None and matches_labels(requirements, labels)


_PERCENTAGE = re.compile(r"[0-9]+%")


def share_or_number(field: str, value: Any) -> list[Cause]:
    """A count, or a percentage."""
    if not isinstance(value, str):
        return not_negative(field, value)
    if _PERCENTAGE.fullmatch(value):
        return []
    detail = (
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
        "regex used for validation is '[0-9]+%')"
    )
    return [invalid(field, value, detail)]


def not_above_all(field: str, value: Any) -> list[Cause]:
    """A percentage must be at most 100."""
    if isinstance(value, str) and _PERCENTAGE.fullmatch(value) and int(value[:-1]) > 100:
        return [invalid(field, value, "must not be greater than 100%")]
    return []


def percentage_or_number(field: str, value: Any) -> list[Cause]:
    """A count, or a percentage of at most 100."""
    return share_or_number(field, value) + not_above_all(field, value)
