"""Evaluates ValidatingAdmissionPolicies: refusals, warnings, and audits, which are dropped.

Source: apiserver v1.36 ``pkg/admission/plugin/policy/validating``. Costs are not estimated (docs/adr/0004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roadstead.admission.expressions import Evaluation, FailedError
from roadstead.admission.matching import (
    GROUP,
    ParamsError,
    details_of,
    is_excluded,
    known_of,
    namespace_of,
    parameters,
    seen,
)
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.store.admission import Attempt
    from roadstead.store.api import Api
    from roadstead.values.resources import Obj

_POLICIES = f"validatingadmissionpolicies.{GROUP}"
_BINDINGS = f"validatingadmissionpolicybindings.{GROUP}"
_CODES = {"Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}


@dataclass(frozen=True, slots=True)
class Broken:
    """A validation that does not hold: its message, and the reason of the refusal."""

    message: str
    reason: str = "Invalid"


@dataclass(slots=True)
class ValidatingPolicies:
    """The validating policies of a cluster.

    Args:
        api: where policies, bindings and parameters are.
    """

    api: Api

    def validated(self, attempt: Attempt) -> None:
        """Judge a write, and warn.

        Raises:
            StatusError: a policy denies it.
        """
        if not self.api.store.collection(_BINDINGS).entries or is_excluded(attempt):
            return
        namespace = namespace_of(self.api, attempt)
        for binding in self.api.list(_BINDINGS):
            policy = self.api.find(_POLICIES, None, binding["spec"].get("policyName", ""))
            if policy is None:
                continue
            judged = seen(self.api, policy["spec"].get("matchConstraints"), attempt, namespace)
            bound = seen(self.api, binding["spec"].get("matchResources"), attempt, namespace)
            if judged is None or bound is None:
                continue
            actions = binding["spec"].get("validationActions") or ()
            named = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
            for broken in self._broken(policy, binding, judged, namespace):
                if "Deny" in actions:
                    raise _denied(
                        attempt, f"ValidatingAdmissionPolicy {named} denied request: {broken.message}", broken
                    )
                if "Warn" in actions:
                    head = f"Validation failed for ValidatingAdmissionPolicy {named}: "
                    attempt.warnings.append(head + broken.message)

    def _broken(self, policy: Obj, binding: Obj, attempt: Attempt, namespace: Obj | None) -> list[Broken]:
        try:
            found = parameters(self.api, policy, binding, attempt)
        except ParamsError as error:
            if policy["spec"].get("failurePolicy") == "Ignore":
                return []
            return [Broken(f"failed to configure binding: {error}")]
        known = known_of(self.api, attempt, namespace)
        return [one for params in found for one in broken_validations(policy, {**known, "params": params})]


def broken_validations(policy: Obj, known: Obj) -> list[Broken]:
    """The validations of a policy that do not hold.

    Args:
        policy: the policy.
        known: the values of ``object``, ``oldObject``, ``request`` and so on.
    """
    spec = policy["spec"]
    evaluation = Evaluation(known, spec.get("variables") or ())
    ignores = spec.get("failurePolicy") == "Ignore"
    try:
        if not evaluation.meets(spec):
            return []
    except FailedError as error:
        return [] if ignores else [Broken(str(error))]
    found = []
    for each in spec.get("validations") or ():
        try:
            if evaluation.value(each["expression"]) is not True:
                found.append(Broken(_message(each, evaluation), each.get("reason") or "Invalid"))
        except FailedError as error:
            if not ignores:
                found.append(Broken(str(error)))
    return found


def _message(validation: Obj, evaluation: Evaluation) -> str:
    plain = str(validation.get("message") or f"failed expression: {validation['expression'].strip()}")
    if not validation.get("messageExpression"):
        return plain
    try:
        text: Any = evaluation.value(validation["messageExpression"])
    except FailedError:
        return plain
    return text.strip() if isinstance(text, str) and text.strip() and "\n" not in text else plain


def _denied(attempt: Attempt, why: str, broken: Broken) -> StatusError:
    name = {"name": attempt.name} if attempt.name else {}
    message = f'{attempt.resource.key} "{attempt.name}" is forbidden: {why}'
    details = {**name, **details_of(attempt, why)}
    return StatusError(_CODES.get(broken.reason, 422), broken.reason, message, details)
