"""Checks node selectors, affinity, tolerations, topology spread constraints and scheduling gates.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``ValidateNodeSelector``,
``validateAffinity``, ``ValidateTolerations``, ``validateTopologySpreadConstraints``,
``validateSchedulingGates``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    duplicate,
    forbidden,
    invalid,
    label_selector,
    not_among,
    one_of,
    required,
)
from roadstead.kinds.checks.metadata import (
    label_faults,
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
)

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_UNKNOWN_OPERATOR = "not a valid selector operator"


def toleration_causes(tolerations: list[Obj], at: str) -> list[Cause]:
    """Faults of tolerations."""
    causes: list[Cause] = []
    for index, one in enumerate(tolerations):
        here = f"{at}[{index}]"
        key, operator, value = one.get("key", ""), one.get("operator", ""), one.get("value", "")
        if key:
            causes += [invalid(f"{here}.key", key, fault) for fault in qualified_name_faults(key)]
        elif operator != "Exists":
            message = (
                'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            )
            causes.append(invalid(f"{here}.operator", operator, message))
        if "tolerationSeconds" in one and one.get("effect") != "NoExecute":
            message = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid(f"{here}.effect", one.get("effect", ""), message))
        if operator in ("", "Equal"):
            if faults := label_value_faults(value):
                causes.append(invalid(f"{here}.operator", value, ";".join(faults)))
        elif operator == "Exists":
            if value:
                message = "value must be empty when `operator` is 'Exists'"
                causes.append(invalid(f"{here}.operator", value, message))
        else:
            words = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            causes.append(not_among(f"{here}.operator", operator, words))
        if one.get("effect"):
            causes += one_of(f"{here}.effect", one["effect"], EFFECTS)
    return causes


def spread_causes(constraints: list[Obj], at: str) -> list[Cause]:
    """Faults of topology spread constraints."""
    causes: list[Cause] = []
    for index, one in enumerate(constraints):
        here = f"{at}[{index}]"
        skew, key, action = (
            one.get("maxSkew", 0),
            one.get("topologyKey", ""),
            one.get("whenUnsatisfiable", ""),
        )
        if skew <= 0:
            causes.append(invalid(f"{here}.maxSkew", skew, "must be greater than zero"))
        if not key:
            causes.append(required(f"{here}.topologyKey", "can not be empty"))
        causes += one_of(f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if any(
            (key, action) == (other.get("topologyKey", ""), other.get("whenUnsatisfiable", ""))
            for other in constraints[index + 1 :]
        ):
            causes.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        domains = one.get("minDomains")
        if domains is not None:
            if domains <= 0:
                causes.append(invalid(f"{here}.minDomains", domains, "must be greater than zero"))
            if action != "DoNotSchedule":
                message = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                causes.append(invalid(f"{here}.minDomains", domains, message))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if field in one:
                causes += one_of(f"{here}.{field}", one[field], ("Honor", "Ignore"))
        causes += _label_key_causes(one, here)
        causes += label_selector(one.get("labelSelector"), f"{here}.labelSelector")
    return causes


def node_selector_causes(selector: Obj, at: str) -> list[Cause]:
    """Faults of a required node selector."""
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        return [required(f"{at}.nodeSelectorTerms", "must have at least one node selector term")]
    return [
        cause
        for index, term in enumerate(terms)
        for cause in _term_causes(term, f"{at}.nodeSelectorTerms[{index}]", checks_values=True)
    ]


def _term_causes(term: Obj, at: str, *, checks_values: bool) -> list[Cause]:
    causes: list[Cause] = []
    for index, one in enumerate(term.get("matchExpressions") or ()):
        causes += _expression_causes(one, f"{at}.matchExpressions[{index}]", checks_values=checks_values)
    for index, one in enumerate(term.get("matchFields") or ()):
        causes += _field_causes(one, f"{at}.matchFields[{index}]")
    return causes


def _expression_causes(one: Obj, at: str, *, checks_values: bool) -> list[Cause]:
    causes: list[Cause] = []
    operator, values, key = one.get("operator", ""), one.get("values") or [], one.get("key", "")
    if operator in ("In", "NotIn"):
        if not values:
            causes.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            message = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(forbidden(f"{at}.values", message))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            message = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            causes.append(required(f"{at}.values", message))
    else:
        causes.append(invalid(f"{at}.operator", operator, _UNKNOWN_OPERATOR))
    causes += [invalid(f"{at}.key", key, fault) for fault in qualified_name_faults(key)]
    if checks_values:
        causes += [
            invalid(f"{at}.values[{index}]", value, fault)
            for index, value in enumerate(values)
            for fault in label_value_faults(value)
        ]
    return causes


def _field_causes(one: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    operator, values, key = one.get("operator", ""), one.get("values") or [], one.get("key", "")
    if operator not in ("In", "NotIn"):
        causes.append(invalid(f"{at}.operator", operator, _UNKNOWN_OPERATOR))
    elif len(values) != 1:
        message = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.append(required(f"{at}.values", message))
    if key != "metadata.name":
        return [*causes, invalid(f"{at}.key", key, "not a valid field selector key")]
    return causes + [
        invalid(f"{at}.values[{index}]", value, fault)
        for index, value in enumerate(values)
        for fault in subdomain_faults(value)
    ]


def affinity_causes(affinity: Obj, at: str) -> list[Cause]:
    """Faults of affinity to nodes and pods."""
    causes: list[Cause] = []
    node, here = affinity.get("nodeAffinity") or {}, f"{at}.nodeAffinity"
    if node.get(_REQUIRED) is not None:
        causes += node_selector_causes(node[_REQUIRED], f"{here}.{_REQUIRED}")
    for index, one in enumerate(node.get(_PREFERRED) or ()):
        inner = f"{here}.{_PREFERRED}[{index}]"
        causes += _weight_causes(one, inner)
        causes += _term_causes(one.get("preference") or {}, f"{inner}.preference", checks_values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods, here = affinity.get(kind) or {}, f"{at}.{kind}"
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            causes += _pod_term_causes(term, f"{here}.{_REQUIRED}[{index}]")
        for index, one in enumerate(pods.get(_PREFERRED) or ()):
            inner = f"{here}.{_PREFERRED}[{index}]"
            causes += _weight_causes(one, inner)
            causes += _pod_term_causes(one.get("podAffinityTerm") or {}, f"{inner}.podAffinityTerm")
    return causes


def _weight_causes(term: Obj, at: str) -> list[Cause]:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{at}.weight", weight, "must be in the range 1-100")]


def _pod_term_causes(term: Obj, at: str) -> list[Cause]:
    causes = label_selector(term.get("labelSelector"), f"{at}.labelSelector")
    causes += label_selector(term.get("namespaceSelector"), f"{at}.namespaceSelector")
    for name in term.get("namespaces") or ():
        causes += [invalid(f"{at}.namespace", name, fault) for fault in label_faults(name)]
    causes += _label_key_causes(term, at)
    key = term.get("topologyKey", "")
    if not key:
        causes.append(required(f"{at}.topologyKey", "can not be empty"))
    return causes + [invalid(f"{at}.topologyKey", key, fault) for fault in qualified_name_faults(key)]


def _label_key_causes(term: Obj, at: str) -> list[Cause]:
    """Faults of ``matchLabelKeys`` and ``mismatchLabelKeys`` next to a label selector."""
    causes: list[Cause] = []
    selector = term.get("labelSelector")
    matched, mismatched = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            causes.append(forbidden(f"{at}.{field}", "must not be specified when labelSelector is not set"))
        elif keys:
            causes += [
                invalid(f"{at}.{field}[{index}]", key, fault)
                for index, key in enumerate(keys)
                for fault in qualified_name_faults(key)
            ]
    named = set((selector or {}).get("matchLabels") or ())
    for one in (selector or {}).get("matchExpressions") or ():
        key = one.get("key", "")
        if key in matched and key in named:
            message = "exists in both matchLabelKeys and labelSelector"
            causes.append(invalid(f"{at}[{_last(matched, key)}]", key, message))
        named.add(key)
    return causes + [
        invalid(f"{at}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
        for index, key in enumerate(matched)
        if key in mismatched
    ]


def _last(keys: list[str], key: str) -> int:
    return len(keys) - 1 - keys[::-1].index(key)


def merge_label_keys(spec: Obj, labels: Obj) -> None:
    """Add what ``matchLabelKeys`` and ``mismatchLabelKeys`` mean for a new pod to its label selectors.

    Source: ``pkg/registry/core/pod/strategy.go``, ``mutatePodAffinity``, ``mutateTopologySpreadConstraints``.
    """
    affinity = spec.get("affinity") or {}
    holders: list[Obj] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        given = affinity.get(kind) or {}
        holders += [each.get("podAffinityTerm") or {} for each in given.get(_PREFERRED) or ()]
        holders += given.get(_REQUIRED) or ()
    for each in (*holders, *(spec.get("topologySpreadConstraints") or ())):
        selector = each.get("labelSelector")
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in each.get(field) or ():
                if selector is not None and key in labels:
                    expression = {"key": key, "operator": operator, "values": [labels[key]]}
                    selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), expression]


def gate_causes(gates: list[Obj], at: str) -> list[Cause]:
    """Faults of scheduling gates."""
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        here, name = f"{at}[{index}]", gate.get("name", "")
        causes += [invalid(here, name, fault) for fault in qualified_name_faults(name)]
        if name in seen:
            causes.append(duplicate(here, name))
        seen.add(name)
    return causes
