"""Checks an installation: reads from the server, judges the results."""

import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.check.adoption import judged_adoption
from plimsoll.check.clouds import judged_cloud
from plimsoll.check.contact import contact
from plimsoll.check.grants import granting
from plimsoll.check.leaders import judged_leases, our_leases
from plimsoll.check.our_keys import judged_keys
from plimsoll.check.policies import judged_forecasts, judged_policies
from plimsoll.check.record_guard import judged_record_guard
from plimsoll.check.review import Choice, Review, review
from plimsoll.check.server import judged_contact
from plimsoll.check.survey import Survey, survey
from plimsoll.kube.session.session import Session
from plimsoll.preflight.definitions import judged_definitions, judged_names
from plimsoll.preflight.findings import Area, Finding, Level, Unread, in_order, unchecked
from plimsoll.preflight.leases import is_renewed
from plimsoll.preflight.other_schedulers import ProgramActivity, judged_programs, seen_programs
from plimsoll.preflight.policy_conditions import at_work, claims_of
from plimsoll.preflight.rights import judged_rights, service_account_of
from plimsoll.preflight.unserved_pods import judged_pods


class Checked(Struct, frozen=True):
    """The result of a check.

    Attributes:
        is_reachable: Whether the server responded, so that more than the connection was checked.
        grants: The manifest that grants the missing rights; None if no right is missing.
    """

    findings: tuple[Finding, ...]
    is_reachable: bool
    server: str = ""
    version: str = ""
    user: str = ""
    accounts: tuple[str, ...] = ()
    grants: Mapping[str, Any] | None = None


async def check(session: Session, choice: Choice) -> Checked:
    """Check the installation in a server's cluster."""
    made = await contact(session)
    first = tuple(judged_contact(made))
    if not made.is_usable:
        return Checked(first, is_reachable=False, server=made.address)
    namespace, _ = service_account_of(made.user)
    found = await survey(session, time.time(), namespace)
    reviewed = await review(session, found, choice, made.user)
    return Checked(
        in_order((*first, *judged(found), *judged_review(found, reviewed))),
        is_reachable=True,
        server=made.address,
        version=made.version,
        user=made.user,
        accounts=tuple(each.account.user for each in reviewed),
        grants=granting((each.account, each.missing) for each in reviewed),
    )


def judged(found: Survey) -> Iterator[Finding]:
    """All findings of a survey."""
    leads = _leads(found)
    yield from judged_definitions(found.definitions)
    yield from judged_names(found.shadow)
    yield from judged_leases(found.leases, found.installed, found.now)
    policies = found.policies
    is_defined = not isinstance(policies, Unread) or policies.status != HTTPStatus.NOT_FOUND
    if is_defined:
        yield from judged_policies(policies, leads=leads)
    documents = () if isinstance(policies, Unread) else policies
    leases = {} if isinstance(found.leases, Unread) else found.leases
    ours = () if isinstance(found.installed, Unread) else found.installed
    namespaces = sorted({namespace for namespace, _ in our_leases(leases, ours)})
    yield from judged_forecasts(documents)
    yield from judged_adoption(found.adoption, documents, namespaces, leads=leads)
    seen = tuple(seen_programs(found.workloads, leases, found.reporters, found.now))
    doing = ProgramActivity.of(at_work(documents))
    yield from judged_programs(seen, doing, found.unread)
    yield from judged_cloud(found.keys, seen, doing)
    yield from judged_pods(found.waiting, claims_of(documents), found.placed, leads=leads)
    yield from judged_keys(found.keys, found.workloads, documents)


def judged_review(found: Survey, reviewed: Sequence[Review]) -> Iterator[Finding]:
    """All findings about rights."""
    if not reviewed:
        is_hidden = isinstance(found.leases, Unread) or isinstance(found.installed, Unread)
        why = "leases and Deployments could not be read" if is_hidden else "no operator was found"
        yield Finding(
            Area.RIGHTS,
            Level.WARNING,
            "the operator",
            f"not checked: its ServiceAccount is not known, because {why}",
            "name it with --as-service-account NAMESPACE/NAME, or check your own rights with --self",
        )
    for each in reviewed:
        if each.refused is not None:
            finding = unchecked(Area.RIGHTS, each.account.user, each.refused)
            yield replace(finding, remedy=f"{finding.remedy}, or run it with --self in the operator's place")
        else:
            yield from judged_rights(each.account, each.wanted, each.answers)
        if each.keeps_records:
            yield from judged_record_guard(found.guards, each.account)


def _leads(found: Survey) -> bool:
    """Whether an operator leads; True also where that cannot be read."""
    if isinstance(found.leases, Unread) or isinstance(found.installed, Unread):
        return True
    leases = our_leases(found.leases, found.installed)
    return any(key in found.leases and is_renewed(found.leases[key], found.now) for key in leases) or any(
        not each.elects and each.workload.ready for each in found.installed
    )
