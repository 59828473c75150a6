"""Checks that several kinds share, each giving the causes of its refusal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plimsoll.devcluster.kinds.metadata import label_value_faults, qualified_name_faults
from plimsoll.devcluster.selectors import matches_labels, selector_requirements
from plimsoll.devcluster.statuses import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.devcluster.resources import Obj


def told(value: Any) -> str:
    """A value as messages have it."""
    return json.dumps(value, separators=(",", ":"))


def required(field: str, detail: str = "") -> Cause:
    """The field must be given."""
    return Cause(field, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def invalid(field: str, value: Any, detail: str) -> Cause:
    """The value is not as it must be."""
    return Cause(field, f"Invalid value: {told(value)}: {detail}")


def forbidden(field: str, detail: str) -> Cause:
    """The field may not be set, or not be changed."""
    return Cause(field, f"Forbidden: {detail}", "FieldValueForbidden")


def duplicate(field: str, value: Any) -> Cause:
    """The value occurs twice."""
    return Cause(field, f"Duplicate value: {told(value)}", "FieldValueDuplicate")


def missing(field: str, value: Any) -> Cause:
    """What the value names is not there."""
    return Cause(field, f"Not found: {told(value)}", "FieldValueNotFound")


def one_of(field: str, value: Any, supported: Iterable[str]) -> list[Cause]:
    """The value must be one of some words."""
    words = tuple(supported)
    if value in words:
        return []
    listed = ", ".join(f'"{word}"' for word in sorted(words))
    message = f"Unsupported value: {told(value)}: supported values: {listed}"
    return [Cause(field, message, "FieldValueNotSupported")]


def not_negative(field: str, value: Any) -> list[Cause]:
    """The number must not be below zero."""
    if isinstance(value, int) and value < 0:
        return [invalid(field, value, "must be greater than or equal to 0")]
    return []


IMMUTABLE = "field is immutable"


def immutable(field: str, new: Any, old: Any) -> list[Cause]:
    """The field must not change."""
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def label_selector(selector: Obj | None, at: str) -> list[Cause]:
    """What is wrong with a ``metav1.LabelSelector``."""
    causes: list[Cause] = []
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        causes += [invalid(f"{at}.matchLabels", key, fault) for fault in qualified_name_faults(key)]
        causes += [invalid(f"{at}.matchLabels", value, fault) for fault in label_value_faults(value)]
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
    return causes


def selects(selector: Obj, labels: dict[str, str]) -> bool:
    """Whether a label selector chooses labels."""
    requirements = selector_requirements(selector)
    return requirements is not None and matches_labels(requirements, labels)


def percentage_or_number(field: str, value: Any) -> list[Cause]:
    """A count, or a percentage of at most 100."""
    if isinstance(value, str):
        number = value.removesuffix("%")
        if not value.endswith("%") or not number.isdigit():
            detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%')"
            return [invalid(field, value, detail)]
        if int(number) > 100:
            return [invalid(field, value, "must not be greater than 100%")]
        return []
    return not_negative(field, value)
