"""Finds the operator's account and reviews its rights."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct, field

from plimsoll.check.leaders import our_leases
from plimsoll.check.survey import Survey
from plimsoll.kube.access_reviews import AccessReviews, SubjectReviews
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
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
        account: The account; None if the operator's is unknown.
        refused: Why they were not reviewed; None when they were.
    """

    account: Account | None = None
    wanted: tuple[NeededRight, ...] = ()
    answers: Answers = field(default_factory=dict)
    refused: Unread | None = None

    @property
    def missing(self) -> tuple[ReviewedRight, ...]:
        """The rights that the account lacks, of those that the cluster has a use for."""
        used = (each for each in self.wanted if not each.is_unused)
        return tuple(one for each in used for one in each.asked if self.answers.get(one) is False)


async def review(session: Session, found: Survey, choice: Choice, user: str) -> Review:
    """Review the rights of the operator's account, or of the chosen one; ``user`` is our own user name."""
    account = await _account(session, found, choice, user)
    if account is None:
        return Review()
    leases: Sequence[tuple[str, str]] = ()
    if not isinstance(found.leases, Unread):
        known = () if isinstance(found.installed, Unread) else found.installed
        leases = our_leases(found.leases, known)
    policies = () if isinstance(found.policies, Unread) else at_work(found.policies)
    wanted = tuple(
        wanted_rights(
            policies,
            leases,
            found.devices,
            has_autoscalers=found.has_autoscalers,
            serves_pod_groups=found.serves_pod_groups,
            serves_composites=found.serves_composites,
        )
    )
    is_self = choice.is_self or account.user == user
    reviews = AccessReviews(session) if is_self else SubjectReviews(session, account.user, account.groups)
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
        return Review(account, wanted, {}, unread_of(exc))
    return Review(account, wanted, dict(zip(asked, (first, *answers), strict=True)))


async def _account(session: Session, found: Survey, choice: Choice, user: str) -> Account | None:
    if choice.is_self:
        return Account(user or "this user", "", "those of this user, --self")
    if choice.account is not None:
        return service_account(*choice.account, "--as-service-account")
    leases: Leases = {} if isinstance(found.leases, Unread) else found.leases
    installed = () if isinstance(found.installed, Unread) else found.installed
    leading = sorted(installed, key=lambda each: each.lease not in leases)
    if leading:
        return service_account(*leading[0].account, f"the account of {leading[0].workload.text}")
    namespace, name = service_account_of(user)
    if namespace and isinstance(found.installed, Unread):  # for the operator, which may not read Deployments
        return service_account(namespace, name, "the account that this runs as")
    for namespace, name in our_leases(leases, ()):
        pod = pod_of(leases[namespace, name].holder)
        try:
            held = await session.object("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}")
        except APIError:
            continue
        account = str((held.get("spec") or {}).get("serviceAccountName") or "default")
        return service_account(namespace, account, f"the account of pod {namespace}/{pod}")
    return None
