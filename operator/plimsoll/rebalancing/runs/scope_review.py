"""Reviews the scopes of policies: those that match no pod, name unknown objects, or overlap."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework import PodInfo, PodTemplate
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.selectors import Selector
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.scope import PolicyScope
from plimsoll.policies.conditions import near
from plimsoll.ports.clock import Clock, ComputationLost
from plimsoll.rebalancing.runs.plan_parcel import PlanParcel
from plimsoll.rebalancing.runs.plan_runner import PlanCalledOff, PlanRunner

#: Seconds between two reviews of one scope, and for which it must match nothing before that is reported.
REVIEW_S, EMPTY_S = 60.0, 60.0

#: Maximum seconds of a review.
LIMIT_S = 60.0

#: Reasons of the condition Degraded.
EMPTY, UNKNOWN_NAME = "ScopeEmpty", "ScopeNameUnknown"

#: Condition and reason of policies whose pods another policy moves as well.
OVERLAPPING, SAME_PODS = "Overlapping", "SamePods"

#: Number of example pods.
EXAMPLES = 3


class Scoped(msgspec.Struct, frozen=True):
    """A policy's scope as plain values."""

    policy: str
    scope: PolicyScope
    nodes: Selector

    @classmethod
    def of(cls, policy: str, rebalancing: RebalancingConfig) -> "Scoped | None":
        """The scope among the evictors of a policy."""
        scope = next((each for each in rebalancing.evictors if isinstance(each, PolicyScope)), None)
        return None if scope is None else cls(policy, scope, rebalancing.nodes)


class ScopeReview(msgspec.Struct, frozen=True):
    """The pods that one scope matches.

    Attributes:
        pods: Number of pods.
        shared: Number of pods that another policy moves as well, by its name.
        examples: Some of the shared pods, as ``namespace/name``.
    """

    pods: int
    shared: Mapping[str, int]
    examples: tuple[str, ...] = ()


class _Matching:
    """Whether pods are in a scope; caches templates and nodes."""

    def __init__(self, scoped: Scoped, cluster: Cluster) -> None:
        self.policy = scoped.policy
        self._scoped = scoped
        self._cluster = cluster
        self._templates: dict[PodTemplate, bool] = {}

    def has_node(self, node: Node) -> bool:
        return self._scoped.nodes.matches(node.labels)

    def has_pod(self, pod: PodInfo) -> bool:
        found = self._templates.get(pod.template)
        if found is None:
            found = self._scoped.scope.excludes(pod, self._cluster.objects) is None
            self._templates[pod.template] = found
        return found


def review(mine: Scoped, others: Iterable[Scoped], cluster: Cluster) -> ScopeReview:
    """Count the placed pods of a scope, and those that are in other scopes too."""
    own = _Matching(mine, cluster)
    rest = [_Matching(each, cluster) for each in others]
    pods, shared = 0, dict.fromkeys((each.policy for each in rest), 0)
    examples: list[str] = []
    for row, node in enumerate(cluster.nodes):
        if not own.has_node(node):
            continue
        here = [each for each in rest if each.has_node(node)]
        for pod in cluster.pods_on(row):
            if pod.stands_in_for is not None or not own.has_pod(pod):
                continue
            pods += 1
            sharing = [each.policy for each in here if each.has_pod(pod)]
            for policy in sharing:
                shared[policy] += 1
            if sharing and len(examples) < EXAMPLES:
                examples.append(pod.key)
    return ScopeReview(pods, {name: count for name, count in shared.items() if count}, tuple(examples))


@dataclass(eq=False)
class ScopeReviews:
    """The reviews of all policies."""

    policies: Mapping[str, SchedulingPolicy]  #: policies that rebalance, keyed by name
    planning: PlanRunner  #: makes reviews off the event loop
    clock: Clock
    _scopes: dict[str, Scoped] = field(default_factory=dict, init=False)
    _reviews: dict[str, tuple[float, SchedulingPolicy, ScopeReview]] = field(default_factory=dict, init=False)
    _empty_since: dict[str, float] = field(default_factory=dict, init=False)
    _unknown: dict[str, str] = field(default_factory=dict, init=False)

    async def look(self, policy: SchedulingPolicy, rebalancing: RebalancingConfig, cluster: Cluster) -> None:
        """Review a scope in a run of its policy, unless that was done lately."""
        name = policy.metadata.name
        scoped = Scoped.of(name, rebalancing)
        self._unknown[name] = unknown_names(policy, cluster)
        if scoped is not None:
            self._scopes[name] = scoped
            if self._is_due(policy):
                others = self._others(policy)
                parcel = PlanParcel("review", cluster)
                # Reported as Hanging, or not at all; the run itself has succeeded.
                with contextlib.suppress(TimeoutError, PlanCalledOff, ComputationLost):
                    self._keep(
                        policy,
                        await self.planning.make_apart(
                            policy, lambda: review(scoped, others, cluster), parcel, LIMIT_S
                        ),
                    )

    def _is_due(self, policy: SchedulingPolicy) -> bool:
        known = self._reviews.get(policy.metadata.name)
        return known is None or known[1] is not policy or self.clock.monotonic() - known[0] >= REVIEW_S

    def _others(self, policy: SchedulingPolicy) -> list[Scoped]:
        """The scopes of other policies that may move pods, if this one may."""
        return [
            self._scopes[name]
            for name, other in self.policies.items()
            if name != policy.metadata.name and _acts(policy) and _acts(other) and name in self._scopes
        ]

    def _keep(self, policy: SchedulingPolicy, found: ScopeReview) -> None:
        name, now = policy.metadata.name, self.clock.monotonic()
        self._reviews[name] = (now, policy, found)
        if found.pods:
            self._empty_since.pop(name, None)
        else:
            self._empty_since.setdefault(name, now)

    def forget(self, name: str) -> None:
        """Forget a policy that no longer rebalances, or has another spec."""
        for kept in (self._scopes, self._reviews, self._empty_since, self._unknown):
            kept.pop(name, None)

    # -- sentences -----------------------------------------------------------------------------------

    def troubles(self, name: str) -> dict[str, str]:
        """Problems of a scope: sentences by reason."""
        found = {}
        since = self._empty_since.get(name)
        if since is not None and self.clock.monotonic() - since >= EMPTY_S:
            found[EMPTY] = "spec.scope matches no pod that has a node, so nothing will ever be moved"
        if self._unknown.get(name):
            found[UNKNOWN_NAME] = self._unknown[name]
        return found

    def advice(self, name: str) -> dict[str, tuple[str, str]]:
        """Further conditions that hold: reason and sentence by type."""
        overlap = self._overlap(name)
        return {OVERLAPPING: (SAME_PODS, overlap)} if overlap else {}

    def _overlap(self, name: str) -> str:
        """A sentence about the other policies that move pods of this one; "" for none."""
        known = self._reviews.get(name)
        if known is None:
            return ""
        found = known[2]
        shared = {other: count for other, count in found.shared.items() if other in self.policies}
        if not shared:
            return ""
        counts = ", ".join(f"{count} by policy {other}" for other, count in sorted(shared.items()))
        return (
            f"of the {found.pods} pods in scope, others may be moved as well: {counts}, such as"
            f" {', '.join(found.examples)}; no pod is moved by two policies at the same time, but one may"
            " undo what another has done"
        )


def unknown_names(policy: SchedulingPolicy, cluster: Cluster) -> str:
    """A sentence about unknown names in a scope; "" if all exist."""
    scope, objects = policy.spec.scope, cluster.objects
    parts = [
        f'namespace "{name}" does not exist{near(name, objects.namespaces)}'
        for name in (*scope.namespaces.include, *scope.namespaces.exclude)
        if name not in objects.namespaces
    ]
    threshold = scope.priority_threshold
    if threshold is not None and threshold.name and threshold.name not in objects.priority_classes:
        guess = near(threshold.name, objects.priority_classes)
        parts.append(f'PriorityClass "{threshold.name}" does not exist{guess}, so every pod is protected')
    return f"spec.scope: {'; '.join(parts)}" if parts else ""


def _acts(policy: SchedulingPolicy) -> bool:
    spec = policy.spec.rebalancing
    return spec is not None and spec.mode is not Mode.DRY_RUN
