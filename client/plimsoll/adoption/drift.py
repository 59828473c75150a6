"""Compares the admission objects on a server with those that a policy needs."""

from collections.abc import Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]


def drift(wanted: Sequence[Document], found: Sequence[Document | None]) -> str:
    """What is wrong with the objects that were found, in the order of those wanted; "" for nothing."""
    for one, other in zip(wanted, found, strict=True):
        subject = f"{one['kind']} {one['metadata']['name']}"
        if other is None:
            return f"{subject} does not exist"
        field = _first_difference(one["spec"], other.get("spec"), "spec")
        if field:
            return f"{subject} has another {field} than the policy needs"
    return ""


def _first_difference(wanted: Any, found: Any, path: str) -> str:
    """The path of a field that differs, "" for none; an empty value equals an absent one."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key in sorted({*wanted, *found}):
            one, other = wanted.get(key), found.get(key)
            if (one or other) and (differs := _first_difference(one, other, f"{path}.{key}")):
                return differs
        return ""
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        each = (
            _first_difference(*pair, f"{path}[{place}]")
            for place, pair in enumerate(zip(wanted, found, strict=True))
        )
        return next(filter(None, each), "")
    return "" if wanted == found or not (wanted or found) else path
