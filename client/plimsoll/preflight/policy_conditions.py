"""Reads what SchedulingPolicies are in effect from their specs and the conditions in their status."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from plimsoll.api.schema.conditions import ACCEPTED, READY, Condition, ConditionStatus
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.policies.conditions import scheduler_name_of, written_conditions
from plimsoll.policies.scheduler_names import Claims

Document = Mapping[str, Any]

#: Why a suspended policy serves no scheduler name.
SUSPENDED = "spec.suspend is true"


def name_of(document: Document) -> str:
    """The name of an object."""
    return str((document.get("metadata") or {}).get("name", ""))


def at_work(documents: Sequence[Document]) -> tuple[SchedulingPolicy, ...]:
    """The policies that an operator would put into effect, the oldest first."""
    found = []
    for document in sorted(documents, key=_age):
        policy = parsed(document)
        if isinstance(policy, SchedulingPolicy) and not policy.spec.suspend:
            found.append(policy)
    return tuple(found)


def parsed(document: Document) -> SchedulingPolicy | str:
    """The policy, or the error in its spec."""
    try:
        return SchedulingPolicy.model_validate({key: document[key] for key in document if key != "status"})
    except ValidationError as exc:
        return summary(field_errors(exc, model=SchedulingPolicy))


def claims_of(documents: Sequence[Document]) -> Claims:
    """By scheduler name: the oldest policy that has it, and why it does not serve it, "" when it does."""
    found: dict[str, tuple[str, str]] = {}
    for document in sorted(documents, key=_age):
        policy = parsed(document)
        name = scheduler_name_of(policy if isinstance(policy, SchedulingPolicy) else None, document)
        if not name or name in found:
            continue
        problem = (
            policy if isinstance(policy, str) else SUSPENDED if policy.spec.suspend else _refusal(document)
        )
        found[name] = name_of(document), problem
    return found


def reason_not_to_adopt(document: Document) -> str:
    """Why admission adopts no pods for a policy that asks for it, by its status; "" if it does."""
    ready = condition_of(document, READY)
    if (document.get("spec") or {}).get("suspend"):
        return SUSPENDED
    if ready is None:
        return "no operator has looked at the policy"
    return "" if ready.status is ConditionStatus.TRUE else ready.message


def _age(document: Document) -> tuple[str, str]:
    metadata = document.get("metadata") or {}
    return str(metadata.get("creationTimestamp", "")), str(metadata.get("name", ""))


def _refusal(document: Document) -> str:
    accepted = condition_of(document, ACCEPTED)
    return accepted.message if accepted is not None and accepted.status is ConditionStatus.FALSE else ""


def condition_of(document: Document, kind: str) -> Condition | None:
    """The condition of a type in a status."""
    return next((each for each in written_conditions(document) if each.type == kind), None)
