"""Implements the kinds by which users configure admission: policies, bindings.

Source: Kubernetes v1.36 ``pkg/apis/admissionregistration/{v1,validation}``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from roadstead.kinds.kind import Kind, StatusKind
from roadstead.values.status_errors import Cause

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

_ACTIONS = ("Audit", "Deny", "Warn")
#: Why an expression is rejected that must have a type ("bool", "string", "Object", "JSONPatch", ""); "" for
#: a valid one.
PolicyFault = Callable[[str, str], str]


def _required(field: str, message: str = "") -> Cause:
    return Cause(field, f"Required value: {message}" if message else "Required value", "FieldValueRequired")


def _choice(obj: Obj, field: str, path: str, *allowed: str) -> list[Cause]:
    """Faults of a required field that has one of some values."""
    value = obj.get(field)
    if not value:
        return [_required(f"{path}.{field}")]
    if value in allowed:
        return []
    known = ", ".join(f'"{one}"' for one in allowed)
    return [
        Cause(
            f"{path}.{field}",
            f'Unsupported value: "{value}": supported values: {known}',
            "FieldValueNotSupported",
        )
    ]


def _default_match(match: Obj | None) -> None:
    if match is None:
        return
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rules in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(rules) or ():
            rule.setdefault("scope", "*")


class _Policies:
    """What both kinds of policies have in common."""

    def __init__(self, fault: PolicyFault) -> None:
        self._fault = fault

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        _default_match(spec.get("matchConstraints"))

    def _common_causes(self, spec: Obj) -> list[Cause]:
        causes = _choice(spec, "failurePolicy", "spec", "Fail", "Ignore")
        if spec.get("matchConstraints") is None:
            causes.append(_required("spec.matchConstraints"))
        elif not spec["matchConstraints"].get("resourceRules"):
            causes.append(_required("spec.matchConstraints.resourceRules"))
        for field, kind in (("matchConditions", "bool"), ("variables", "")):
            for index, each in enumerate(spec.get(field) or ()):
                causes += self._expression(each, f"spec.{field}[{index}].expression", kind)
        return causes

    def _expression(self, holder: Obj, path: str, kind: str) -> list[Cause]:
        expression = holder.get("expression") or ""
        if not expression.strip():
            return [_required(path, "" if kind in ("Object", "JSONPatch") else "expression is not specified")]
        fault = self._fault(expression, kind)
        return [Cause(path, f"Invalid value: {_quoted(expression)}: {fault}")] if fault else []


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class MutatingAdmissionPolicies(_Policies, Kind):
    """MutatingAdmissionPolicies.

    Args:
        fault: of expressions.
    """

    counts_generation = True

    def validate_create(self, obj: Obj) -> list[Cause]:
        """As in ``Kind``."""
        spec = obj["spec"]
        causes = self._common_causes(spec)
        if not spec.get("mutations"):
            causes.append(_required("spec.mutations", "mutations must contain at least one item"))
        for index, each in enumerate(spec.get("mutations") or ()):
            causes += self._mutation_causes(each, f"spec.mutations[{index}]")
        return causes + _choice(spec, "reinvocationPolicy", "spec", "Never", "IfNeeded")

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As in ``Kind``."""
        del old
        return self.validate_create(new)

    def _mutation_causes(self, mutation: Obj, path: str) -> list[Cause]:
        causes = _choice(mutation, "patchType", path, "ApplyConfiguration", "JSONPatch")
        if causes:
            return causes
        is_patch = mutation["patchType"] == "JSONPatch"
        field = "jsonPatch" if is_patch else "applyConfiguration"
        if mutation.get(field) is None:
            return [
                _required(f"{path}.{field}", f"must be specified when patchType is {mutation['patchType']}")
            ]
        return self._expression(
            mutation[field], f"{path}.{field}.expression", "JSONPatch" if is_patch else "Object"
        )


class ValidatingAdmissionPolicies(_Policies, StatusKind):
    """ValidatingAdmissionPolicies.

    Args:
        fault: of expressions.
    """

    def validate_create(self, obj: Obj) -> list[Cause]:
        """As in ``Kind``."""
        spec = obj["spec"]
        causes = self._common_causes(spec)
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            both = "validations or auditAnnotations must contain at least one item"
            causes += [_required("spec.validations", both), _required("spec.auditAnnotations", both)]
        for index, each in enumerate(spec.get("validations") or ()):
            path = f"spec.validations[{index}]"
            causes += self._expression(each, f"{path}.expression", "bool")
            if each.get("reason"):
                causes += _choice(each, "reason", path, "Forbidden", "Invalid", "RequestEntityTooLarge")
            if each.get("messageExpression"):
                message = {"expression": each["messageExpression"]}
                causes += self._expression(message, f"{path}.messageExpression", "string")
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As in ``Kind``."""
        del old
        return self.validate_create(new)


class PolicyBindings(Kind):
    """Bindings of either kind of policy.

    Args:
        validating: whether they have ``validationActions``.
    """

    counts_generation = True

    def __init__(self, *, validating: bool) -> None:
        self._validating = validating

    def default(self, obj: Obj) -> None:
        """As in ``Kind``."""
        _default_match(obj.setdefault("spec", {}).get("matchResources"))

    def validate_create(self, obj: Obj) -> list[Cause]:
        """As in ``Kind``."""
        spec = obj["spec"]
        causes = [] if spec.get("policyName") else [_required("spec.policyName")]
        ref = spec.get("paramRef")
        if ref is not None:
            if not ref.get("name") and ref.get("selector") is None:
                causes.append(_required("spec.paramRef", "one of name or selector must be specified"))
            elif ref.get("name") and ref.get("selector") is not None:
                both = "Forbidden: name and selector are mutually exclusive"
                fields = ("spec.paramRef.name", "spec.paramRef.selector")
                causes += [Cause(field, both, "FieldValueForbidden") for field in fields]
            causes += _choice(ref, "parameterNotFoundAction", "spec.paramRef", "Deny", "Allow")
        if self._validating:
            causes += _action_causes(spec.get("validationActions") or [])
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As in ``Kind``."""
        del old
        return self.validate_create(new)


def _action_causes(actions: list[str]) -> list[Cause]:
    path = "spec.validationActions"
    if not actions:
        return [_required(path, "at least one validation action is required")]
    causes = []
    for index, one in enumerate(actions):
        if one not in _ACTIONS:
            known = ", ".join(f'"{each}"' for each in _ACTIONS)
            message = f'Unsupported value: "{one}": supported values: {known}'
            causes.append(Cause(f"{path}[{index}]", message, "FieldValueNotSupported"))
        elif one in actions[:index]:
            causes.append(Cause(f"{path}[{index}]", f'Duplicate value: "{one}"', "FieldValueDuplicate"))
    if {"Deny", "Warn"} <= set(actions):
        shown = orjson.dumps(actions).decode()
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the "
            "API response and headers serves no purpose)"
        )
        causes.append(Cause(path, f"Invalid value: {shown}: {why}"))
    return causes
