"""Judges what adopts pods: admission objects against policies, and policies against the leader."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from plimsoll.adoption.admission_objects import PREFIX, admission_objects, adopt_of
from plimsoll.adoption.drift import Document, drift
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.preflight.findings import Area, Finding, Level, Unread, unchecked
from plimsoll.preflight.policy_conditions import name_of, parsed, reason_not_to_adopt


class AdoptionState(Struct, frozen=True):
    """The admission objects of ours.

    Attributes:
        version: The version that the server has of the kinds; "" for none.
        documents: Admission objects with our prefix.
    """

    version: str = ""
    documents: Sequence[Document] = ()


def judged_adoption(
    found: AdoptionState | Unread, policies: Sequence[Document], namespaces: Sequence[str], *, leads: bool
) -> Iterator[Finding]:
    """Findings about policies that adopt pods, and about what is left of those that did.

    Args:
        found: What is on the server.
        policies: All policies, as documents.
        namespaces: Those of the operator's leases.
        leads: Whether an operator leads.
    """
    read = [each for each in map(parsed, policies) if isinstance(each, SchedulingPolicy)]
    adopting = [each for each in read if adopt_of(each) is not None]
    if isinstance(found, Unread):
        if adopting:
            yield unchecked(Area.POLICIES, "adoption", found)
        return
    documents = {name_of(each): each for each in policies}
    for policy in adopting:
        obstacle = reason_not_to_adopt(documents[policy.metadata.name])
        where = namespaces[0] if len(namespaces) == 1 else ""
        yield _stuck(policy) if not (obstacle or leads) else _judged(policy, found, where, obstacle)
    asked = {PREFIX + policy.metadata.name for policy in adopting}
    for name in sorted({name_of(each) for each in found.documents} - asked):
        message = "it is left of a policy that adopts no pods any more, and changes none"
        remedy = f"plimsoll adopt {name.removeprefix(PREFIX)} --remove"
        yield Finding(Area.POLICIES, Level.WARNING, f"admission policy {name}", message, remedy)


def _stuck(policy: SchedulingPolicy) -> Finding:
    name = policy.metadata.name
    return Finding(
        Area.POLICIES,
        Level.ERROR,
        f"adoption of policy {name}",
        "no operator leads, and new pods are still adopted: they wait",
        f"plimsoll pause {name}; then see why the watchdog has not withdrawn it",
    )


def _judged(policy: SchedulingPolicy, found: AdoptionState, namespace: str, obstacle: str) -> Finding:
    name = policy.metadata.name
    subject, level = f"adoption of policy {name}", Level.WARNING
    if not found.version:
        message = "the server has no MutatingAdmissionPolicy: what adopts pods was not compared"
        return Finding(Area.POLICIES, level, subject, message, f"plimsoll adopt {name} prints it")
    if not namespace:
        message = "not checked: the operator's namespace is not known"
        return Finding(Area.POLICIES, level, subject, message, "install one operator")
    by_key = {(each["kind"], name_of(each)): each for each in found.documents}
    wanted = admission_objects(policy, namespace, found.version)
    if said := drift(wanted, [by_key.get((each["kind"], name_of(each))) for each in wanted]):
        return Finding(Area.POLICIES, level, subject, said, f"plimsoll adopt {name} --apply")
    message = effect_of(policy, obstacle)
    if obstacle and not policy.spec.suspend:
        return Finding(Area.POLICIES, level, subject, message, f"kubectl describe spol {name}")
    return Finding(Area.POLICIES, Level.OK, subject, message)


def effect_of(policy: SchedulingPolicy, obstacle: str) -> str:
    """Which scheduler new pods get by a policy that adopts, whose objects are on the server."""
    if obstacle:
        return f"new pods keep default-scheduler: {obstacle}"
    assert policy.spec.scheduling is not None
    return f"new pods get schedulerName {policy.spec.scheduling.scheduler_name}"
