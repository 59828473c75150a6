"""Judges the rights of the operator's account, for ``plimsoll check`` and the operator's start."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from plimsoll.access.rights import (
    ALLOCATE,
    COMPOSITE_STATUS,
    GRANTS,
    OPTIONAL_GRANTS,
    PLIMSOLL,
    POD_GROUP_STATUS,
    READ_ADMISSION,
    READ_AUTOSCALERS,
    READ_COMPOSITES,
    READ_DEVICES,
    READ_OWNERS,
    READ_POD_GROUPS,
    Grants,
    Part,
    Right,
    listed,
    needs_of,
    remedies,
)
from plimsoll.adoption.admission_objects import adopt_of
from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watched_resources import WATCHED
from plimsoll.kube.access_reviews import right_of
from plimsoll.model.counted import agreeing
from plimsoll.policies.extensions import declared_here
from plimsoll.preflight.findings import Area, Finding, Level

LEASES = "leases"
COORDINATION = "coordination.k8s.io"

#: The rights to read that the operator needs whatever its policies are.
READING = frozenset(
    Right(verb, right.group, right.resource)
    for verb in ("list", "watch")
    for right in (
        *(right_of("GET", resource.path)[0] for resource in WATCHED),
        Right("list", PLIMSOLL, "schedulingpolicies"),
        Right("list", PLIMSOLL, "evictions"),
        Right("list", "apiextensions.k8s.io", "customresourcedefinitions"),
    )
)

#: The rights that the election needs; ``create`` cannot be limited to a name.
ELECTING = (
    Right("create", COORDINATION, LEASES),
    Right("get", COORDINATION, LEASES),
    Right("update", COORDINATION, LEASES),
)

#: The rights that policies with metrics of metrics.k8s.io need.
MEASURING = (Right("list", "metrics.k8s.io", "nodes"), Right("list", "metrics.k8s.io", "pods"))

#: The manifest that grants these.
_BASE: Grants = (("deploy/dry-run", "rbac.create: true", READING | {*ELECTING, *MEASURING}),)

#: The consequence of missing rights on devices.
WAITING = "pods with resource claims wait, all others are served"

#: The consequence of missing rights on autoscalers.
LEARNT = "moves are proven with what an owner's newest pods request, not with what is recommended"

#: The consequence of missing rights on what plugins and strategies declare, and the remedy.
UNREAD = "plugins and strategies that read these fail"
GRANT_IT = "grant them (chart: rbac.extraRules)"

#: The consequence of missing rights on admission policies.
NOT_COMPARED = "what adopts pods is not compared with policies"

#: The prefix of a ServiceAccount's user name.
_SERVICE_ACCOUNT = "system:serviceaccount:"


class ReviewedRight(NamedTuple):
    """A right in a namespace ("" for all), for one object name ("" for any)."""

    right: Right
    namespace: str = ""
    name: str = ""


class Account(Struct, frozen=True):
    """The account whose rights are judged.

    Attributes:
        user: The user name in the API server.
        namespace: The namespace of the ServiceAccount; "" for another kind of user.
        found_by: How the check found the account.
    """

    user: str
    namespace: str
    found_by: str

    @property
    def name(self) -> str:
        """The name of the ServiceAccount, or of the user."""
        return self.user.rpartition(":")[2] if self.namespace else self.user

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of every ServiceAccount in the namespace."""
        if not self.namespace:
            return ()
        return ("system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated")


def service_account(namespace: str, name: str, found_by: str) -> Account:
    """A ServiceAccount."""
    return Account(f"{_SERVICE_ACCOUNT}{namespace}:{name}", namespace, found_by)


def service_account_of(user: str) -> tuple[str, str]:
    """Namespace and name of the ServiceAccount behind a user name; empty for another user."""
    prefix, _, rest = user.partition(_SERVICE_ACCOUNT)
    namespace, colon, name = rest.partition(":")
    return (namespace, name) if not prefix and colon else ("", "")


class NeededRight(Struct, frozen=True):
    """Rights that one purpose needs.

    Attributes:
        subject: The policy, or the operator itself.
        asked: Each right, for every place where it is needed.
        stops: By right, the part of a policy that does not work without it; other rights are less essential.
        is_base: Whether every operator needs them.
        otherwise: The consequence of a missing right, if no part of a policy stops.
        is_unused: Whether nothing in the cluster needs them yet.
    """

    subject: str
    asked: tuple[ReviewedRight, ...]
    stops: Mapping[Right, Part]
    is_base: bool = False
    otherwise: str = ""
    is_unused: bool = False


class DevicePresence(Enum):
    """The cluster's support and use of dynamic resource allocation."""

    NOT_SERVED = "the API server does not serve it"
    UNUSED = "there are neither devices nor claims"
    USED = "there are, or may be"


def wanted_rights(
    policies: Sequence[SchedulingPolicy],
    leases: Iterable[tuple[str, str]],
    devices: DevicePresence = DevicePresence.NOT_SERVED,
    *,
    has_autoscalers: bool = False,
    serves_pod_groups: bool = False,
    serves_composites: bool = False,
) -> Iterator[NeededRight]:
    """The rights that the operator needs for itself, for each policy, for devices and for autoscalers.

    Args:
        policies: The policies in effect.
        leases: Namespace and name of its leases.
        devices: Whether the cluster has devices.
        has_autoscalers: Whether the cluster has VerticalPodAutoscalers.
        serves_pod_groups: Whether the API server serves PodGroups of scheduling.k8s.io.
        serves_composites: Whether it serves CompositePodGroups.
    """
    own = [ReviewedRight(right) for right in sorted(READING)]
    for namespace, name in leases:
        own += (ReviewedRight(right, namespace, "" if right.verb == "create" else name) for right in ELECTING)
    if any(map(_is_measuring, policies)):
        own += map(ReviewedRight, MEASURING)
    yield NeededRight("the operator", tuple(own), {}, is_base=True)
    places_pods = any(policy.spec.scheduling is not None for policy in policies)
    for policy in policies:
        needs = list(needs_of(policy, places_pods=places_pods))
        asked = (
            ReviewedRight(right, namespace)
            for need in needs
            for right in need.rights
            for namespace in need.namespaces or ("",)
        )
        stops = {right: need.part for need in needs if need.is_essential for right in need.rights}
        yield NeededRight(f"policy {policy.metadata.name}", tuple(dict.fromkeys(asked)), stops)
    if any(adopt_of(policy) is not None for policy in policies):
        yield NeededRight("adoption", tuple(map(ReviewedRight, READ_ADMISSION)), {}, otherwise=NOT_COMPARED)
    if devices is not DevicePresence.NOT_SERVED:
        needed = (*READ_DEVICES, *(ALLOCATE if places_pods else ()))
        is_unused = devices is DevicePresence.UNUSED
        yield NeededRight(
            "devices", tuple(map(ReviewedRight, needed)), {}, otherwise=WAITING, is_unused=is_unused
        )
    if serves_pod_groups:
        needed = (*READ_POD_GROUPS, *((POD_GROUP_STATUS,) if places_pods else ()))
        yield NeededRight(
            "PodGroups", tuple(map(ReviewedRight, needed)), {}, otherwise="their pods are not placed"
        )
    if serves_composites:
        needed = (*READ_COMPOSITES, *((COMPOSITE_STATUS,) if places_pods else ()))
        yield NeededRight(
            "CompositePodGroups",
            tuple(map(ReviewedRight, needed)),
            {},
            otherwise="the pods of their groups are not placed",
        )
    if any(_is_deriving(policy) for policy in policies):
        owners = tuple(ReviewedRight(right) for each in READ_OWNERS.values() for right in each)
        yield NeededRight("owners of groups", owners, {}, otherwise="their pods wait for them to be read")
    declared = tuple(
        ReviewedRight(Right(verb, each.kind.group(), each.kind.plural), each.kind.in_namespace)
        for each in declared_here()
        for verb in ("list", "watch")
    )
    if declared:
        yield NeededRight("what plugins read", declared, {}, otherwise=UNREAD)
    if has_autoscalers and any(policy.spec.rebalancing is not None for policy in policies):
        yield NeededRight(
            "recommended requests", tuple(map(ReviewedRight, READ_AUTOSCALERS)), {}, otherwise=LEARNT
        )


def _is_deriving(policy: SchedulingPolicy) -> bool:
    spec = policy.spec.scheduling
    return spec is not None and spec.groups.derive == "Automatic"


def _is_measuring(policy: SchedulingPolicy) -> bool:
    spec = policy.spec.rebalancing
    return spec is not None and any(each.source == KUBERNETES_METRICS for each in spec.metrics_providers)


#: Results of the authorizer; None without a response.
Answers = Mapping[ReviewedRight, bool | None]


def judged_rights(account: Account, wanted: Iterable[NeededRight], answers: Answers) -> Iterator[Finding]:
    """Findings about the rights of an account, one for each purpose."""
    for each in wanted:
        missing = [one for one in each.asked if answers.get(one) is False]
        open_ = [one for one in each.asked if answers.get(one) is None]
        if missing:
            yield _missing(account, each, missing)
        elif open_:
            message = (
                f"{len(open_)} of {len(each.asked)} rights of {account.user} were not reviewed: no answer"
            )
            yield Finding(Area.RIGHTS, Level.WARNING, each.subject, message, "run it again")
        else:
            message = f"{account.user} has the {len(each.asked)} rights that are needed ({account.found_by})"
            yield Finding(Area.RIGHTS, Level.OK, each.subject, message)


def _missing(account: Account, wanted: NeededRight, missing: Sequence[ReviewedRight]) -> Finding:
    rights = list(dict.fromkeys(one.right for one in missing))
    stopped = [part.value for part in Part if any(wanted.stops.get(right) is part for right in rights)]
    namespaces = sorted({one.namespace for one in missing if one.namespace})
    message = f"{account.user} may not {listed(rights)}"
    if namespaces:
        message += f" in {agreeing(len(namespaces), 'namespace', 'namespaces')} {', '.join(namespaces)}"
    if stopped or wanted.otherwise:
        message += f": {', '.join(stopped) or wanted.otherwise}"
    if wanted.is_unused:
        message += "; the cluster has neither devices nor claims"
    remedy = "; ".join(
        text for _, text in remedies(rights, _BASE if wanted.is_base else GRANTS + OPTIONAL_GRANTS)
    )
    remedy = remedy or GRANT_IT
    level = Level.ERROR if wanted.is_base or stopped else Level.WARNING
    if wanted.is_unused:
        level, remedy = Level.OK, f"before it has some, {remedy}"
    return Finding(Area.RIGHTS, level, wanted.subject, message, remedy)
