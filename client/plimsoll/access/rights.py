"""Decides the rights that each policy needs, and reviews those of the running operator.

Rights are reviewed at the start, every hour, and after each rejected request. A missing right is not used:
the policies that need it report it together with the manifest that grants it, and requests that would be
refused are not sent. Rights are reviewed for all namespaces; where that is denied, also for the namespaces in
which they are needed, because RoleBindings may grant them there. A review without a response changes nothing;
a right that was never reviewed counts as allowed.
"""

import asyncio
import math
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple, Protocol

from msgspec import Struct

from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.model.kinds.owned_group import OWNERS
from plimsoll.model.kinds.pod_group import CORE
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: Seconds between two reviews of all rights, and of the missing ones.
REVIEW_S, MISSING_S = 3_600.0, 15.0

#: Seconds between a refused request and the review that it triggers, and minimum seconds between two of
#: these.
PROMPT_S, SPACING_S = 1.0, 30.0

#: Maximum number of namespaces in which one right is reviewed individually.
NAMESPACES = 100

#: Maximum number of rights that a sentence lists individually.
MOST_LISTED = 4

#: The reason of conditions.
NOT_ALLOWED = "NotAllowed"

PLIMSOLL = "plimsoll.dev"


class Right(NamedTuple):
    """One verb on one resource; a subresource follows its resource after a slash."""

    verb: str
    group: str
    resource: str

    @property
    def text(self) -> str:
        """Such as ``create pods/binding`` or ``patch deployments.apps``."""
        resource, slash, subresource = self.resource.partition("/")
        qualified = f"{resource}.{self.group}" if self.group else resource
        return f"{self.verb} {qualified}{slash}{subresource}"


BIND = Right("create", "", "pods/binding")
EVICT = Right("create", "", "pods/eviction")
POD_STATUS = Right("patch", "", "pods/status")
PREEMPT = Right("delete", "", "pods")
READ_POD = Right("get", "", "pods")
VOLUMES = (Right("patch", "", "persistentvolumes"), Right("patch", "", "persistentvolumeclaims"))
TAINT = (Right("get", "", "nodes"), Right("patch", "", "nodes"))
GANGS = Right("patch", PLIMSOLL, "podgroups/status")
RECORD = (Right("create", PLIMSOLL, "evictions"), Right("patch", PLIMSOLL, "evictions/status"))
DROP = Right("delete", PLIMSOLL, "evictions")
STATUS = Right("patch", PLIMSOLL, "schedulingpolicies/status")
EVENTS = Right("create", "events.k8s.io", "events")
LOOK_AT_DEPLOYMENTS = (Right("get", "apps", "deployments"), Right("list", "apps", "deployments"))
SURGE = Right("patch", "apps", "deployments")
READ_SCALERS = Right("list", "autoscaling", "horizontalpodautoscalers")
SCALE = Right("patch", "apps", "deployments/scale")
#: Those to surge pods of other kinds, where the API server serves these.
SCALE_OTHERS = tuple(
    Right(verb, group, resource)
    for group, plural in (("argoproj.io", "rollouts"), ("apps.kruise.io", "clonesets"))
    for verb, resource in (("get", plural), ("list", plural), ("patch", f"{plural}/scale"))
)
DRA = "resource.k8s.io"
READ_DEVICES = tuple(
    Right(verb, DRA, resource)
    for resource in ("deviceclasses", "resourceclaims", "resourceslices")
    for verb in ("list", "watch")
)
ALLOCATE = (
    *(Right(verb, DRA, "resourceclaims") for verb in ("get", "create", "patch", "delete")),
    Right("patch", DRA, "resourceclaims/status"),
    Right("patch", DRA, "resourceclaims/binding"),
)

READ_POD_GROUPS = tuple(Right(verb, CORE, "podgroups") for verb in ("list", "watch"))
POD_GROUP_STATUS = Right("patch", CORE, "podgroups/status")
READ_COMPOSITES = tuple(Right(verb, CORE, "compositepodgroups") for verb in ("list", "watch"))
COMPOSITE_STATUS = Right("patch", CORE, "compositepodgroups/status")

#: The rights to carry NodeMaintenances out, but for those of their moves.
MAINTENANCE_STATUS = Right("patch", PLIMSOLL, "nodemaintenances/status")
READ_MAINTENANCES = tuple(Right(verb, PLIMSOLL, "nodemaintenances") for verb in ("list", "watch"))

#: The right to say in the status of a RebalancingRule what it holds back.
RULE_STATUS = Right("patch", PLIMSOLL, "rebalancingrules/status")

READ_AUTOSCALERS = tuple(
    Right(verb, "autoscaling.k8s.io", "verticalpodautoscalers") for verb in ("list", "watch")
)

#: The rights to read the owners that stand in the place of PodGroups, by resource.
READ_OWNERS = {
    each.resource: tuple(
        Right(verb, each.api_version.partition("/")[0], each.resource.partition(".")[0])
        for verb in ("list", "watch")
    )
    for each in OWNERS
}

#: The rights to compare what adopts pods with what policies say.
ADMISSION = "admissionregistration.k8s.io"
READ_ADMISSION = tuple(
    Right("get", ADMISSION, f"mutatingadmission{each}") for each in ("policies", "policybindings")
)

#: For each manifest: its path, the value of the chart, and the rights that it grants.
Grants = tuple[tuple[str, str, frozenset[Right]], ...]

GRANTS: Grants = (
    ("deploy/dry-run", "rbac.create: true", frozenset({*RECORD, DROP, STATUS, EVENTS})),
    (
        "deploy/enforce",
        "mode: Enforce",
        frozenset({BIND, EVICT, POD_STATUS, READ_POD, *VOLUMES, *TAINT, GANGS}),
    ),
    (
        "deploy/enforce/preempting.yaml, or set preemption.viaEviction in the policy",
        "preemption.byDeletion: true",
        frozenset({PREEMPT}),
    ),
    (
        "deploy/components/surge",
        "surge.enabled: true",
        frozenset({*LOOK_AT_DEPLOYMENTS, READ_SCALERS, SURGE, SCALE}),
    ),
)

#: Grants of rights that are reviewed only where the API server serves their group.
OPTIONAL_GRANTS: Grants = (
    ("deploy/components/devices", "devices: true", frozenset({*READ_DEVICES, *ALLOCATE})),
    (
        "deploy/components/vertical-pod-autoscalers",
        "verticalPodAutoscalers: true",
        frozenset(READ_AUTOSCALERS),
    ),
    (
        "deploy/base",
        "rbac.create: true",
        frozenset((*READ_POD_GROUPS, *READ_MAINTENANCES, MAINTENANCE_STATUS, RULE_STATUS)),
    ),
    (
        "deploy/components/automatic-groups",
        "automaticGroups: true",
        frozenset(right for each in READ_OWNERS.values() for right in each),
    ),
    ("deploy/enforce", "mode: Enforce", frozenset({POD_GROUP_STATUS, COMPOSITE_STATUS})),
    ("deploy/components/surge", "surge.enabled: true", frozenset(SCALE_OTHERS)),
    ("deploy/components/adoption", "adoption.enabled: true", frozenset(READ_ADMISSION)),
)

#: All rights that are reviewed.
REVIEWED = frozenset().union(*(rights for _, _, rights in GRANTS))

#: Cluster-scoped resources.
_CLUSTER_WIDE = frozenset(
    {"nodes", "nodemaintenances/status", "persistentvolumes", "schedulingpolicies/status"}
)


class AccessReviewer(Protocol):
    """Reviews the rights of this process with the API server."""

    async def review(self, right: Right, namespace: str) -> bool | None:
        """Whether a right is granted, in all namespaces if none is given; None without a response."""


class Part(Enum):
    """The parts of a policy."""

    SCHEDULING = "pods are not placed"
    REBALANCING = "no pod is moved"


class Need(Struct, frozen=True):
    """Rights that a part of a policy needs.

    Attributes:
        namespaces: The namespaces in which they are needed; empty for all.
        is_essential: Whether the part cannot work without them.
    """

    part: Part
    rights: tuple[Right, ...]
    namespaces: tuple[str, ...] = ()
    is_essential: bool = False


def needs_of(policy: SchedulingPolicy, *, places_pods: bool = False) -> Iterator[Need]:
    """The rights that a policy's spec needs; ``places_pods`` as in :class:`Access`."""
    spec = policy.spec.rebalancing
    if policy.spec.scheduling is not None:
        yield from _scheduling(policy.spec.scheduling)
    if spec is not None:
        yield from _rebalancing(spec, _namespaces(policy))
    if places_pods and spec is not None and spec.mode is not Mode.DRY_RUN:
        yield Need(Part.REBALANCING, (BIND,), _namespaces(policy), is_essential=True)


def _namespaces(policy: SchedulingPolicy) -> tuple[str, ...]:
    """The only namespaces in which pods are moved; empty for all."""
    return tuple(policy.spec.scope.namespaces.include)


def _scheduling(spec: SchedulingSpec) -> Iterator[Need]:
    part = Part.SCHEDULING
    yield Need(part, (BIND,), is_essential=True)
    removal = (EVICT, *RECORD) if spec.preemption.via_eviction else (PREEMPT,)
    yield Need(part, (POD_STATUS, *removal, *VOLUMES, GANGS, *((READ_POD,) if spec.extenders else ())))
    yield Need(part, (EVENTS, STATUS))


#: Strategies for which nodes get a taint.
TAINTING = frozenset(("ConsolidateNodes", "DrainNodes", "RemovePodsFromUnhealthyNodes"))


def _rebalancing(spec: RebalancingSpec, namespaces: tuple[str, ...]) -> Iterator[Need]:
    part, acts = Part.REBALANCING, spec.mode is not Mode.DRY_RUN
    yield Need(part, RECORD, namespaces, is_essential=True)
    if acts:
        yield Need(part, (EVICT,), namespaces, is_essential=True)
    if acts and any(each.name in TAINTING for each in spec.strategies):
        yield Need(part, TAINT)
    if acts and spec.deletion_costs:
        yield Need(part, (POD_STATUS,), namespaces)
    if spec.surge:
        looks = (*LOOK_AT_DEPLOYMENTS, READ_SCALERS)
        yield Need(part, (*looks, *((SURGE, SCALE) if acts else ())), namespaces)
    yield Need(part, (DROP, EVENTS, STATUS))


class Access(Observer):
    """The granted rights, as of the last review.

    Attributes:
        changed: Notified when a right was newly granted or denied.
        granted: When a missing right was last found granted, in seconds since the epoch.
        is_pending: Whether the first review is under way; no status is written before it ends.
        places_pods: Whether a policy serves a scheduler name; if so, nothing is evicted while pods cannot be
            bound.
    """

    def __init__(self, reviewer: AccessReviewer, clock: Clock, observer: Observer) -> None:
        self.changed = Signal()
        self.places_pods = False
        self.granted = 0.0
        self.is_pending = False
        self._reviewer = reviewer
        self._clock = clock
        self._observer = observer
        self._denied: set[Right] = set()
        self._answers: dict[tuple[Right, str], bool] = {}  #: for single namespaces
        self._wanted: dict[Right, dict[str, None]] = {}  #: the namespaces in which each right is needed
        #: When all rights were last reviewed, and when all of them and the missing ones are due.
        self._reviewed, self._all_due, self._missing_due = -math.inf, -math.inf, math.inf
        self._sooner = asyncio.Event()

    # -- granted rights ------------------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether no right is missing."""
        return not self._denied

    def allows(self, right: Right, namespace: str = "") -> bool:
        """Whether a right may be used in a namespace; "" for all."""
        if right not in self._denied:
            return True
        if not namespace or right.resource in _CLUSTER_WIDE:
            return False
        known = self._answers.get((right, namespace))
        if known is None:
            wanted = self._wanted.setdefault(right, {})
            if namespace not in wanted and len(wanted) < NAMESPACES:
                wanted[namespace] = None
                self._hasten(self._clock.monotonic())
        return bool(known)

    def denial(self, right: Right, namespace: str = "") -> str:
        """Why a right cannot be used in a namespace, "" when it can be."""
        return "" if self.allows(right, namespace) else told([right])

    def obstacle(self, policy: SchedulingPolicy, part: Part) -> str:
        """Why a part of a policy does not work, "" when it does."""
        needs = [need for need in self._needs_of(policy) if need.part is part and need.is_essential]
        missing = self._missing(needs)
        return f"{part.value}: {told(missing)}" if missing else ""

    def trouble(self, policy: SchedulingPolicy) -> str:
        """The rights that a policy lacks, in a sentence; "" when none is missing."""
        missing = self._missing(self._needs_of(policy))
        if not missing:
            return ""
        stopped = [part.value for part in Part if self.obstacle(policy, part)]
        return "; ".join([told(missing), *stopped])

    def _needs_of(self, policy: SchedulingPolicy) -> list[Need]:
        return list(needs_of(policy, places_pods=self.places_pods))

    def _missing(self, needs: Sequence[Need]) -> list[Right]:
        found = {
            right: None
            for need in needs
            for right in need.rights
            if right in self._denied and not self._holds_in(right, need.namespaces)
        }
        return list(found)

    def _holds_in(self, right: Right, namespaces: tuple[str, ...]) -> bool:
        answers = [self.allows(right, each) for each in namespaces]  # no shortcut, so that all are reviewed
        return bool(answers) and all(answers)

    async def missing(self, rights: Iterable[Right]) -> list[Right]:
        """The given rights that the server denies now; the result is not stored."""
        asked = list(rights)
        answers = await asyncio.gather(*(self._reviewer.review(each, "") for each in asked))
        return [right for right, answer in zip(asked, answers, strict=True) if answer is False]

    # -- reviewing -----------------------------------------------------------------------------------

    def request_answered(self, method: str, status: int, seconds: float) -> None:  # noqa: ARG002 - the hook's shape
        """Schedule a review after a refused request; later if the last review is recent."""
        if status == HTTPStatus.FORBIDDEN:
            self._hasten(max(self._clock.monotonic() + PROMPT_S, self._reviewed + SPACING_S))

    def look_again(self) -> None:
        """Schedule a review: rights may have changed, or a policy needs others."""
        self._hasten(self._clock.monotonic() + PROMPT_S)

    def _hasten(self, moment: float) -> None:
        if moment < self._all_due:
            self._all_due = moment
            self._sooner.set()

    async def review(self, *, only_missing: bool = False) -> None:
        """Review the rights with the server; notify when a result has changed."""
        if not only_missing:
            self._all_due = math.inf  # one that is asked for meanwhile follows: answers may be older
        try:
            await self._review(only_missing=only_missing)
        except Exception:
            self._all_due = self._missing_due = self._clock.monotonic() + MISSING_S
            raise

    async def _review(self, *, only_missing: bool) -> None:
        rights = sorted(self._denied if only_missing else REVIEWED)
        answers = await asyncio.gather(*(self._reviewer.review(right, "") for right in rights))
        denied = self._denied & REVIEWED
        for right, answer in zip(rights, answers, strict=True):
            if answer is not None:
                (denied.discard if answer else denied.add)(right)
        now = self._clock.monotonic()
        if not only_missing:
            self._reviewed = now
        self._missing_due = now + MISSING_S if denied else math.inf
        # Without an answer all of them are repeated soon.
        self._all_due = min(self._all_due, now + MISSING_S if None in answers else self._reviewed + REVIEW_S)
        narrow = await self._review_namespaces(denied, only_new=only_missing)
        if (denied, narrow) != (self._denied, self._answers):
            if self._denied - denied or any(narrow.get(key) and not self._answers.get(key) for key in narrow):
                self.granted = self._clock.now()
            self._denied, self._answers = denied, narrow
            self.changed.notify()

    async def _review_namespaces(
        self, denied: set[Right], *, only_new: bool
    ) -> dict[tuple[Right, str], bool]:
        """The results for single namespaces, for rights that are denied for all."""
        known = {key: answer for key, answer in self._answers.items() if key[0] in denied}
        asked = [
            (right, namespace)
            for right in sorted(denied)
            for namespace in self._wanted.get(right, ())
            if not only_new or not known.get((right, namespace))
        ]
        answers = await asyncio.gather(*(self._reviewer.review(*each) for each in asked))
        return known | {key: answer for key, answer in zip(asked, answers, strict=True) if answer is not None}

    async def begin(self) -> None:
        """Do the first review; whatever its outcome, the operator then begins its work."""
        try:
            await self.review()
        except Exception as exc:  # noqa: BLE001 - a right that was never reviewed counts as allowed
            self._observer.failed("reviewing the operator's rights", repr(exc))
        finally:
            self.is_pending = False

    async def run(self) -> None:
        """Review until cancelled."""
        while True:
            now = self._clock.monotonic()
            left = min(self._all_due, self._missing_due) - now
            if left > 0:
                await self._wait(left)
                continue
            try:
                await self.review(only_missing=now < self._all_due)
            except Exception as exc:  # noqa: BLE001 - a failed review must not prevent later ones
                self._observer.failed("reviewing the operator's rights", repr(exc))

    async def _wait(self, seconds: float) -> None:
        """Sleep, unless a review becomes due sooner."""
        await first_of(self._clock.sleep(seconds), self._sooner.wait())
        self._sooner.clear()


def remedies(missing: Iterable[Right], grants: Grants = GRANTS) -> Iterator[tuple[Sequence[Right], str]]:
    """The remedies for missing rights: the rights, and the manifest to apply for them."""
    left = dict.fromkeys(missing)
    for manifest, value, rights in grants:
        found = [right for right in left if right in rights]
        if found:
            yield found, f"apply {manifest} (chart: {value})"


def told(missing: Iterable[Right]) -> str:
    """A sentence about the missing rights and their manifests."""
    found = remedies(missing, GRANTS + OPTIONAL_GRANTS)
    return "; ".join(f"the operator may not {listed(rights)}; {remedy}" for rights, remedy in found)


def listed(rights: Sequence[Right]) -> str:
    """Rights in a sentence, after "may not"; if many, by resource: ``use pods (get, list)``."""
    verbs: dict[str, list[str]] = {}
    for right in rights:
        verbs.setdefault(right.text.removeprefix(f"{right.verb} "), []).append(right.verb)
    if MOST_LISTED < len(rights) > len(verbs):
        grouped = [f"{resource} ({', '.join(each)})" for resource, each in verbs.items()]
        return f"use {_either(grouped)}"
    return _either([right.text for right in rights])


def _either(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
