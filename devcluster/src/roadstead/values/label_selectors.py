"""Matches LabelSelectors with labels, and node selectors with nodes.

Source: apimachinery v1.36 ``apis/meta/v1/helpers.go``; component-helpers v1.36
``scheduling/corev1/nodeaffinity``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.values.resources import Obj

    Labels = Mapping[str, str]


def selects(selector: Obj | None, labels: Labels | None) -> bool:
    """Whether a LabelSelector selects an object of these labels: absent none, empty all."""
    if selector is None:
        return False
    labels = labels or {}
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_meets(one, labels) for one in selector.get("matchExpressions") or ())


def is_empty(selector: Obj | None) -> bool:
    """Whether a LabelSelector has no requirement."""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def node_fits(spec: Obj, node: Obj) -> bool:
    """Whether a pod's node selector and required node affinity allow a node."""
    labels: Labels = node["metadata"].get("labels") or {}
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or matches_node(required, node)


def matches_node(selector: Obj, node: Obj) -> bool:
    """Whether one of a node selector's terms matches a node."""
    labels: Labels = node["metadata"].get("labels") or {}
    fields: Labels = {"metadata.name": node["metadata"]["name"]}
    return any(_term_fits(term, labels, fields) for term in selector.get("nodeSelectorTerms") or ())


def tolerates(tolerations: list[Obj] | None, taint: Obj) -> Obj | None:
    """The first toleration that tolerates a taint."""
    return next((one for one in tolerations or () if _covers(one, taint)), None)


def _term_fits(term: Obj, labels: Labels, fields: Labels) -> bool:
    expressions = term.get("matchExpressions") or []
    on_fields = term.get("matchFields") or []
    if not expressions and not on_fields:
        return False
    return all(_meets(one, labels) for one in expressions) and all(_meets(one, fields) for one in on_fields)


def _meets(requirement: Obj, labels: Labels) -> bool:
    """Whether labels meet one requirement."""
    value = labels.get(requirement["key"])
    values = requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case ("Gt" | "Lt") as operator:
            try:
                has, bound = int(value or ""), int(values[0])
            except (ValueError, IndexError):
                return False
            return has > bound if operator == "Gt" else has < bound
    return False


def _covers(toleration: Obj, taint: Obj) -> bool:
    """Whether one toleration tolerates a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
