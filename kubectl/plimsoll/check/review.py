"""Finds the operator's account and reviews its rights."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct, field

from plimsoll.check.installations import Installation
from plimsoll.check.leaders import our_leases
from plimsoll.check.survey import Survey
from plimsoll.kube.access_reviews import AccessReviews, SubjectReviews
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.policies.operators import operator_of
from plimsoll.preflight.definition_reader import unread_of
from plimsoll.preflight.findings import Unread
from plimsoll.preflight.leases import Leases, pod_of
from plimsoll.preflight.policy_conditions import at_work
from plimsoll.preflight.rights import (
    Account,
    Answers,
    NeededRight,
    ReviewedRight,
    service_account,
    service_account_of,
    wanted_rights,
)

#: Maximum number of concurrent reviews.
REVIEWS = 20


class Choice(Struct, frozen=True):
    """The account whose rights are reviewed.

    Attributes:
        account: Namespace and name of a ServiceAccount; None to look for the operator's.
        is_self: Whether to review our own rights.
    """

    account: tuple[str, str] | None = None
    is_self: bool = False


class Review(Struct, frozen=True):
    """The reviewed rights of an account.

    Attributes:
        refused: Why they were not reviewed; None when they were.
        keeps_records: Whether it writes Eviction records; an operator with a name does not.
    """

    account: Account
    wanted: tuple[NeededRight, ...] = ()
    answers: Answers = field(default_factory=dict)
    refused: Unread | None = None
    keeps_records: bool = True

    @property
    def missing(self) -> tuple[ReviewedRight, ...]:
        """The rights that the account lacks, of those that the cluster has a use for."""
        used = (each for each in self.wanted if not each.is_unused)
        return tuple(one for each in used for one in each.asked if self.answers.get(one) is False)


class _Reviewed(Struct, frozen=True):
    """An account, with what it runs.

    Attributes:
        leases: Namespace and name of each that it takes.
        operators: The names by which it knows its policies; None for all policies.
    """

    account: Account
    leases: Sequence[tuple[str, str]]
    operators: frozenset[str] | None = None

    @property
    def keeps_records(self) -> bool:
        """Whether one of its operators does."""
        return self.operators is None or "" in self.operators


async def review(session: Session, found: Survey, choice: Choice, user: str) -> tuple[Review, ...]:
    """Review the rights of each operator's account, or of the chosen one; ``user`` is our own user name."""
    accounts = await _accounts(session, found, choice, user)
    return tuple(
        [
            await _review(session, found, each, own=choice.is_self or each.account.user == user)
            for each in accounts
        ]
    )


async def _review(session: Session, found: Survey, whose: _Reviewed, *, own: bool) -> Review:
    account = whose.account
    policies = [
        each
        for each in (() if isinstance(found.policies, Unread) else at_work(found.policies))
        if whose.operators is None or operator_of(each.metadata.labels) in whose.operators
    ]
    wanted = tuple(
        wanted_rights(
            policies,
            whose.leases,
            found.devices,
            has_autoscalers=found.has_autoscalers,
            serves_pod_groups=found.serves_pod_groups,
            serves_composites=found.serves_composites,
        )
    )
    reviews = AccessReviews(session) if own else SubjectReviews(session, account.user, account.groups)
    asked = list(dict.fromkeys(one for each in wanted for one in each.asked))
    places = asyncio.Semaphore(REVIEWS)

    async def ask(one: ReviewedRight) -> bool | None:
        async with places:
            try:
                return await reviews.answer(*one)
            except APIError as exc:
                if exc.status == 403:
                    raise
                return None

    try:
        first = await ask(asked[0])  # if the server refuses the review itself, all of them fail the same way
        answers = await asyncio.gather(*map(ask, asked[1:]))
    except APIError as exc:
        return Review(account, wanted, {}, unread_of(exc), whose.keeps_records)
    given = dict(zip(asked, (first, *answers), strict=True))
    return Review(account, wanted, given, None, whose.keeps_records)


async def _accounts(session: Session, found: Survey, choice: Choice, user: str) -> list[_Reviewed]:
    leases: Leases = {} if isinstance(found.leases, Unread) else found.leases
    installed = () if isinstance(found.installed, Unread) else found.installed
    known = our_leases(leases, installed)
    if choice.is_self:
        return [_Reviewed(Account(user or "this user", "", "those of this user, --self"), known)]
    if choice.account is not None:
        return [_Reviewed(service_account(*choice.account, "--as-service-account"), known)]
    running: dict[tuple[str, str], list[Installation]] = {}
    for each in installed:
        running.setdefault(each.account, []).append(each)
    if running:
        return [
            _Reviewed(
                service_account(
                    *account, f"the account of {' and '.join(each.workload.text for each in those)}"
                ),
                our_leases({}, those) if len(running) > 1 else known,
                frozenset(each.operator for each in those),
            )
            for account, those in running.items()
        ]
    namespace, name = service_account_of(user)
    if namespace and isinstance(found.installed, Unread):  # for the operator, which may not read Deployments
        return [_Reviewed(service_account(namespace, name, "the account that this runs as"), known)]
    for namespace, name in known:
        pod = pod_of(leases[namespace, name].holder)
        try:
            held = await session.object("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}")
        except APIError:
            continue
        account = str((held.get("spec") or {}).get("serviceAccountName") or "default")
        return [
            _Reviewed(service_account(namespace, account, f"the account of pod {namespace}/{pod}"), known)
        ]
    return []
