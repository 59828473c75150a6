"""Label selectors, as written in objects."""

from __future__ import annotations

from collections.abc import Mapping

from promises.commits import Obj


def selects(selector: Obj | None, labels: Mapping[str, str] | None) -> bool:
    """Whether a selector matches; one that is empty or left out matches everything."""
    given, wanted = labels or {}, selector or {}
    exact = (wanted.get("matchLabels") or {}).items()
    return all(given.get(key) == value for key, value in exact) and all(
        _meets(each, given) for each in wanted.get("matchExpressions") or ()
    )


def _meets(condition: Obj, labels: Mapping[str, str]) -> bool:
    key, values = condition["key"], condition.get("values") or ()
    match condition["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case other:
            raise ValueError(f"no operator: {other}")
