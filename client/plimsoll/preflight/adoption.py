"""Judges what adopts pods: admission objects against policies, and the parameter against the leader."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from plimsoll.adoption.admission_objects import PARAMETER, PREFIX, admission_objects, adopt_of
from plimsoll.adoption.drift import Document, drift
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.preflight.findings import Area, Finding, Level, Unread, unchecked


class AdoptionState(Struct, frozen=True):
    """What of adoption is on the server.

    Attributes:
        version: The version that the server has of the kinds; "" for none.
        documents: Admission objects with our prefix.
        served: For each namespace with the parameter: scheduler names by policy.
    """

    version: str = ""
    documents: Sequence[Document] = ()
    served: Mapping[str, Mapping[str, str]] = {}


def judged_adoption(
    found: AdoptionState | Unread,
    policies: Sequence[SchedulingPolicy],
    namespaces: Sequence[str],
    *,
    leads: bool,
) -> Iterator[Finding]:
    """Findings about policies that adopt pods, and about what is left of those that did.

    Args:
        found: What is on the server.
        policies: The policies at work.
        namespaces: Those of the operator's leases.
        leads: Whether an operator leads.
    """
    adopting = [policy for policy in policies if adopt_of(policy) is not None]
    if isinstance(found, Unread):
        if adopting:
            yield unchecked(Area.POLICIES, "adoption", found)
        return
    for policy in adopting:
        yield _judged(policy, found, namespaces[0] if len(namespaces) == 1 else "")
    known = {PREFIX + policy.metadata.name for policy in adopting}
    for name in sorted({each["metadata"]["name"] for each in found.documents} - known):
        message = "it is left of a policy that adopts no pods any more, and changes none"
        remedy = f"plimsoll adopt {name.removeprefix(PREFIX)} --remove"
        yield Finding(Area.POLICIES, Level.WARNING, f"admission policy {name}", message, remedy)
    for namespace, served in found.served.items():
        if served and not leads:
            names = ", ".join(sorted(set(served.values())))
            yield Finding(
                Area.POLICIES,
                Level.ERROR,
                f"ConfigMap {namespace}/{PARAMETER}",
                f"no operator leads, and new pods still get schedulerName {names}: they wait",
                f"kubectl delete configmap -n {namespace} {PARAMETER}; then see why the watchdog has not",
            )


def _judged(policy: SchedulingPolicy, found: AdoptionState, namespace: str) -> Finding:
    name = policy.metadata.name
    subject, remedy = f"adoption of policy {name}", f"plimsoll adopt {name} --apply"
    if not found.version:
        message = "the server has no MutatingAdmissionPolicy: what adopts pods was not compared"
        return Finding(Area.POLICIES, Level.WARNING, subject, message, f"plimsoll adopt {name} prints it")
    if not namespace:
        message = "not checked: the operator's namespace is not known"
        return Finding(Area.POLICIES, Level.WARNING, subject, message, "install one operator")
    by_key = {(each["kind"], each["metadata"]["name"]): each for each in found.documents}
    wanted = admission_objects(policy, namespace, found.version)
    said = drift(wanted, [by_key.get((each["kind"], each["metadata"]["name"])) for each in wanted])
    if said:
        return Finding(Area.POLICIES, Level.WARNING, subject, said, remedy)
    if name not in found.served.get(namespace, {}):
        message = f"new pods keep default-scheduler: ConfigMap {namespace}/{PARAMETER} does not name it"
        return Finding(
            Area.POLICIES,
            Level.WARNING,
            subject,
            message,
            "let an operator lead that may place the policy's pods, with deploy/components/adoption",
        )
    message = f"new pods get schedulerName {found.served[namespace][name]}"
    return Finding(Area.POLICIES, Level.OK, subject, message)
