"""Judges whether an admission policy lets only the operator write Eviction records."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from plimsoll.api.schema.resource import GROUP
from plimsoll.api.v1alpha1.eviction import Eviction
from plimsoll.preflight.findings import Area, Finding, Level, Unread, unchecked
from plimsoll.preflight.rights import Account

Document = Mapping[str, Any]

SUBJECT = "Eviction records"
INSTALL = "kubectl apply -f deploy/base/own_records.yaml, or rbac.guardRecords=true of the chart"


class AdmissionPolicies(Struct, frozen=True):
    """The cluster's ValidatingAdmissionPolicies and their bindings."""

    policies: Sequence[Document] = ()
    bindings: Sequence[Document] = ()


def judged_record_guard(found: AdmissionPolicies | Unread, account: Account) -> Iterator[Finding]:
    """The finding about who may write records."""
    if isinstance(found, Unread):
        yield unchecked(Area.RIGHTS, SUBJECT, found)
        return
    denying = {
        spec.get("policyName")
        for spec in map(_spec, found.bindings)
        if "Deny" in (spec.get("validationActions") or ()) and "matchResources" not in spec
    }
    guards = [each for each in found.policies if _name(each) in denying and _guards_records(each)]
    if not guards:
        message = (
            "no admission policy denies them to others than the operator: who may write them can forge moves"
        )
        yield Finding(Area.RIGHTS, Level.WARNING, SUBJECT, message, f"install it: {INSTALL}")
        return
    strangers = [_name(each) for each in guards if f"'{account.user}'" not in _conditions(each)]
    if strangers:
        message = f"admission policy {strangers[0]} denies {account.user} to write them: no pod is moved"
        yield Finding(Area.RIGHTS, Level.ERROR, SUBJECT, message, "put this account into its matchConditions")
        return
    message = f"admission policy {_name(guards[0])} lets only {account.user} write them"
    yield Finding(Area.RIGHTS, Level.OK, SUBJECT, message)


def _guards_records(policy: Document) -> bool:
    """Whether it judges each creation and update of a record and of its status, for certain users."""
    spec, plural = _spec(policy), Eviction.definition.plural
    if spec.get("failurePolicy", "Fail") != "Fail" or not _conditions(policy):
        return False
    judged: set[str] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        if GROUP not in rule.get("apiGroups", ()) or not {"CREATE", "UPDATE"} <= {
            *rule.get("operations", ())
        }:
            continue
        judged |= {*rule.get("resources", ())}
    return plural in judged and not judged.isdisjoint({f"{plural}/*", f"{plural}/status"})


def _conditions(policy: Document) -> str:
    """The expressions of its conditions about users."""
    found = [str(each.get("expression", "")) for each in _spec(policy).get("matchConditions") or ()]
    return " ".join(each for each in found if "request.userInfo.username" in each)


def _spec(document: Document) -> Document:
    found = document.get("spec")
    return found if isinstance(found, Mapping) else {}


def _name(document: Document) -> str:
    return str((document.get("metadata") or {}).get("name", ""))
