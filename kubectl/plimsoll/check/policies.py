"""Judges SchedulingPolicies by the conditions in their status."""

from collections.abc import Iterator, Sequence

from plimsoll.api.schema.conditions import ACCEPTED, DEGRADED, PAUSED, READY, Condition, ConditionStatus
from plimsoll.policies.operators import operator_of
from plimsoll.preflight.findings import Area, Certainty, Finding, Level, Unread, unchecked
from plimsoll.preflight.policy_conditions import (
    SUSPENDED,
    Document,
    at_work,
    claims_of,
    condition_of,
    name_of,
    parsed,
)


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


def judged_forecasts(documents: Sequence[Document]) -> Iterator[Finding]:
    """Findings about other schedulers whose pods policies move: where their profile is known from."""
    claims = claims_of(documents)
    moving = [each for each in at_work(documents) if each.spec.rebalancing is not None]
    for name in sorted({name for each in moving for name in each.spec.scope.other_schedulers}):
        policy, problem = claims.get(name, ("", ""))
        subject = f"forecasts for {name}"
        if problem == SUSPENDED:
            message = f"its pods are expected where the profile of suspended policy {policy} puts them"
            yield Finding(Area.POLICIES, Level.OK, subject, message)
        elif not policy:
            yield Finding(
                Area.POLICIES,
                Level.OK,
                subject,
                "its profile is assumed, not known: that of kube-scheduler without a configuration",
                "if it has one: plimsoll convert FILE --suspended, and apply the policy",
                Certainty.LIKELY,
            )


def _judged(document: Document, *, leads: bool) -> Iterator[Finding]:
    subject, age = f"policy {name_of(document)}", "" if leads else " (an old status: no operator leads)"
    generation = (document.get("metadata") or {}).get("generation")
    problems: list[Condition] = []
    policy = parsed(document)
    for kind, bad, level in (
        (ACCEPTED, ConditionStatus.FALSE, Level.ERROR),
        (READY, ConditionStatus.FALSE, Level.ERROR),
        (DEGRADED, ConditionStatus.TRUE, Level.WARNING),
        (PAUSED, ConditionStatus.TRUE, Level.WARNING),
    ):
        found = condition_of(document, kind)
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
    accepted = condition_of(document, ACCEPTED)
    observed = None if accepted is None else accepted.observed_generation
    if accepted is None or (generation and observed is not None and observed < generation):
        owner = operator_of(policy.metadata.labels)
        who = f"operator {owner} has not" if owner else "no operator has"
        message = f"{who} looked at it" + ("" if accepted is None else " since it was changed")
        yield Finding(
            Area.POLICIES,
            Level.WARNING,
            subject,
            message,
            "let the operator run; plimsoll validate says now whether it will be accepted",
        )
        return
    ready = condition_of(document, READY)
    message = ready.message if ready is not None else accepted.message
    if policy.spec.suspend:
        message = f"suspended: {message}"
    yield Finding(Area.POLICIES, Level.OK, subject, message + age)
