"""Evaluates admission policies that are bound with ``validationActions: [Warn]``, and returns the warnings.

Policies that deny are stored and not evaluated, because the only user of this cluster may do everything. Of a
policy's constraints, resource rules and match conditions are evaluated, selectors are not. As in an API
server, variables are evaluated in order, and a failing expression counts as true if the ``failurePolicy`` is
Ignore.

Source: apiserver v1.36 ``pkg/admission/plugin/policy/validating``. Costs are not estimated (docs/adr/0004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cel_expr_python import cel

from roadstead.definitions import cel_library
from roadstead.definitions.rules import EXTENSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.store.api import Api
    from roadstead.values.resources import Obj, Resource

_POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
_BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"


class _FailedError(Exception):
    """An expression could not be evaluated."""


@dataclass(slots=True)
class AdmissionWarnings:
    """The warnings of all policies; caches compiled expressions.

    Args:
        user: the sender of every request.
    """

    user: Obj
    _programs: dict[str, cel.Expression]
    _environment: cel.Env | None

    def __init__(self, user: Obj) -> None:
        self.user = user
        self._programs = {}
        self._environment = None

    def of_write(self, api: Api, resource: Resource, new: Obj, old: Obj | None) -> list[str]:
        """The policies' warnings about a write of an object; ``old`` is None for a creation."""
        found: list[str] = []
        for binding in api.list(_BINDINGS, None):
            spec = binding["spec"]
            policy = api.find(_POLICIES, None, spec.get("policyName", ""))
            if policy is None or "Warn" not in spec.get("validationActions", ()):
                continue
            if not _matches(policy["spec"], resource, "CREATE" if old is None else "UPDATE"):
                continue
            head = (
                f"Validation failed for ValidatingAdmissionPolicy '{policy['metadata']['name']}' "
                f"with binding '{binding['metadata']['name']}': "
            )
            found += [head + message for message in self.broken(policy, new, old)]
        return found

    def broken(self, policy: Obj, new: Obj, old: Obj | None) -> list[str]:
        """The messages of a policy's validations that do not hold."""
        spec = policy["spec"]
        known: dict[str, Any] = {"object": new, "oldObject": old, "request": {"userInfo": self.user}}
        try:
            if not all(self._value(each["expression"], known) for each in spec.get("matchConditions", ())):
                return []
            variables: dict[str, Any] = {}
            known["variables"] = variables
            for each in spec.get("variables", ()):
                variables[each["name"]] = self._value(each["expression"], known)
            broken = [each for each in spec["validations"] if not self._value(each["expression"], known)]
        except _FailedError as error:
            return [] if spec.get("failurePolicy") == "Ignore" else [str(error)]
        return [self._message(each, known) for each in broken]

    def _message(self, validation: Obj, known: Mapping[str, Any]) -> str:
        plain = str(validation.get("message") or f"failed expression: {validation['expression']}")
        if "messageExpression" not in validation:
            return plain
        try:
            text = self._value(validation["messageExpression"], known)
        except _FailedError:
            return plain
        return text.strip() if isinstance(text, str) and text.strip() and "\n" not in text else plain

    def _value(self, expression: str, known: Mapping[str, Any]) -> Any:
        """The value of an expression.

        Raises:
            _FailedError: it cannot be compiled or evaluated.
        """
        if self._environment is None:
            names = ("object", "oldObject", "request", "variables")
            self._environment = cel.NewEnv(
                variables=dict.fromkeys(names, cel.Type.DYN),
                functions=cel_library.evaluated(),
                extensions=list(EXTENSIONS),
            )
        try:
            if expression not in self._programs:
                self._programs[expression] = self._environment.compile(expression)
            answer = self._programs[expression].eval(data={"variables": {}, **known})
        except RuntimeError as error:
            raise _FailedError(f"compilation error: {error}") from error
        if answer.type() == cel.Type.ERROR:
            raise _FailedError(f"expression '{expression}' resulted in error: {answer.value()}")
        return answer.plain_value()


def _matches(spec: Obj, resource: Resource, operation: str) -> bool:
    """Whether a policy's resource rules match a write."""
    return any(
        _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and _has(rule.get("operations"), operation)
        and _has(rule.get("resources"), resource.plural)
        for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ()
    )


def _has(allowed: list[str] | None, value: str) -> bool:
    return "*" in (allowed or ()) or value in (allowed or ())
