"""Judges SchedulingPolicies by the conditions in their status."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from plimsoll.api.schema.conditions import ACCEPTED, DEGRADED, READY, Condition, ConditionStatus
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.policies.conditions import scheduler_name_of, written_conditions
from plimsoll.policies.scheduler_names import Claims
from plimsoll.preflight.findings import Area, Finding, Level, Unread, unchecked

Document = Mapping[str, Any]

_SUSPENDED = "spec.suspend is true"


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
            policy if isinstance(policy, str) else _SUSPENDED if policy.spec.suspend else _refusal(document)
        )
        found[name] = name_of(document), problem
    return found


def reason_not_to_adopt(document: Document) -> str:
    """Why admission adopts no pods for a policy that asks for it, by its status; "" if it does."""
    ready = _condition(document, READY)
    if (document.get("spec") or {}).get("suspend"):
        return _SUSPENDED
    if ready is None:
        return "no operator has looked at the policy"
    return "" if ready.status is ConditionStatus.TRUE else ready.message


def _age(document: Document) -> tuple[str, str]:
    metadata = document.get("metadata") or {}
    return str(metadata.get("creationTimestamp", "")), str(metadata.get("name", ""))


def _refusal(document: Document) -> str:
    accepted = _condition(document, ACCEPTED)
    return accepted.message if accepted is not None and accepted.status is ConditionStatus.FALSE else ""


def _condition(document: Document, kind: str) -> Condition | None:
    return next((each for each in written_conditions(document) if each.type == kind), None)


def judged_policies(documents: Sequence[Document] | Unread, *, leads: bool) -> Iterator[Finding]:
    """Findings about policies, one for each problem; if no operator leads, statuses are stale."""
    if isinstance(documents, Unread):
        yield unchecked(Area.POLICIES, "schedulingpolicies", documents)
        return
    if not documents:
        message = "no policy exists: the operator neither places nor moves pods"
        yield Finding(Area.POLICIES, Level.OK, "policies", message, "examples/ has some to begin with")
    for document in documents:
        yield from _judged(document, leads=leads)


def _judged(document: Document, *, leads: bool) -> Iterator[Finding]:
    subject, age = f"policy {name_of(document)}", "" if leads else " (an old status: no operator leads)"
    generation = (document.get("metadata") or {}).get("generation")
    problems: list[Condition] = []
    policy = parsed(document)
    for kind, bad, level in (
        (ACCEPTED, ConditionStatus.FALSE, Level.ERROR),
        (READY, ConditionStatus.FALSE, Level.ERROR),
        (DEGRADED, ConditionStatus.TRUE, Level.WARNING),
    ):
        found = _condition(document, kind)
        if (
            found is None
            or found.status is not bad
            or any(found.message == each.message for each in problems)
        ):
            continue
        if found.observed_generation is not None and generation and found.observed_generation < generation:
            continue  # it is about an earlier spec
        if kind == READY and not isinstance(policy, str) and policy.spec.suspend:
            continue  # it is as the spec requests
        problems.append(found)
        message = f"{kind} is {found.status}, {found.reason}: {found.message}{age}"
        yield Finding(Area.POLICIES, level, subject, message, f"kubectl describe spol {name_of(document)}")
    if problems:
        return
    if isinstance(policy, str):
        yield Finding(
            Area.POLICIES, Level.ERROR, subject, f"its spec is not accepted: {policy}", "correct the field"
        )
        return
    accepted = _condition(document, ACCEPTED)
    observed = None if accepted is None else accepted.observed_generation
    if accepted is None or (generation and observed is not None and observed < generation):
        message = "no operator has looked at it" + ("" if accepted is None else " since it was changed")
        yield Finding(
            Area.POLICIES,
            Level.WARNING,
            subject,
            message,
            "let the operator run; plimsoll validate says now whether it will be accepted",
        )
        return
    ready = _condition(document, READY)
    message = ready.message if ready is not None else accepted.message
    if policy.spec.suspend:
        message = f"suspended: {message}"
    yield Finding(Area.POLICIES, Level.OK, subject, message + age)
