"""PodTopologySpread: keep the pods of a selector evenly spread over zones, hosts or any other node label.

Formula, filter, per hard constraint with counts[d] of matching pods in each topology domain d::

    skew[n] = counts[domain[n]] + (1 if the selector matches the pod itself) - least
    refused where skew[n] > maxSkew
    least   = 0 if there are fewer than minDomains domains, else min(counts)

Formula, score, over the soft constraints c whose key the node has, F feasible nodes::

    raw[n]   = round(sum_c(counts_c[n] * ln(domains_c + 2) + (maxSkew_c - 1)))
    score[n] = 100 * (max(raw) + min(raw) - raw[n]) // max(raw)

``counts_c[n]`` is the node's own count for ``kubernetes.io/hostname``, its domain's otherwise.

Units: pods, int64; points out, int64, 0..100, higher is better.
Edges: terminating pods and pods of another namespace are not counted; an empty selector counts every pod.
Domains come from nodes that have all keys of the hard (or soft) constraints and pass the inclusion policies.
A pod without constraints of its own gets the defaults if a Service or its controller selects it; with the
built-in defaults a node without a zone is scored by the other constraint. If max(raw) is 0, all score 100.
Source: kube-scheduler v1.36, ``podtopologyspread/filtering.go`` and ``scoring.go``; for empty selectors, by
which v1.36 counts no pod, v1.38; KEP-895, KEP-3022, KEP-3094.
Differs: counts by (selector, domain) are updated on every pod event instead of summed at each attempt.
Longer than 400 lines because filter, score and hints read the same constraints.
"""

from collections.abc import Hashable, Sequence
from math import log
from typing import ClassVar, Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from plimsoll import framework as fwk
from plimsoll.framework.columns import DomainSums, PodCounts, is_on_all_nodes
from plimsoll.framework.node_classes import NodeAxis
from plimsoll.framework.selectors import TopologySpreadConstraint, is_label_key
from plimsoll.toolkit.scheduling.topology_spread import (
    HOSTNAME,
    NONE,
    Constraint,
    Constraints,
    compiled,
    default_selector,
    own_constraints,
)

SKEWED = fwk.unschedulable("node(s) didn't match pod topology spread constraints")
LABEL_MISSING = fwk.unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)

#: Maximum number of domains compared one by one to detect changed verdicts.
FEW_DOMAINS = 256

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)


class DefaultConstraint(fwk.PluginArgs):
    """A constraint for pods without any; its selector is built from the pod's owner."""

    max_skew: PositiveInt = Field(description="How many more matching pods a domain may hold than another.")
    topology_key: str = Field(description="The node label whose values are the domains.")
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        description="Whether the constraint refuses nodes or only scores them."
    )
    min_domains: PositiveInt | None = Field(
        default=None, description="With fewer domains the least is taken to be 0; DoNotSchedule only."
    )
    node_affinity_policy: Literal["Honor", "Ignore"] = Field(
        default="Honor", description="Whether only nodes that the pod selects make domains."
    )
    node_taints_policy: Literal["Honor", "Ignore"] = Field(
        default="Ignore", description="Whether only nodes that the pod tolerates make domains."
    )

    @model_validator(mode="after")
    def _key(self) -> "DefaultConstraint":
        if not is_label_key(self.topology_key):
            raise ValueError(f'topologyKey: "{self.topology_key}" is not a label key')
        return self


class PodTopologySpreadArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    defaulting_type: Literal["System", "List"] = Field(
        default="System",
        description="System: spread softly over hosts and zones. List: as defaultConstraints says.",
    )
    default_constraints: tuple[DefaultConstraint, ...] = Field(
        default=(), description="For pods without constraints of their own; only with List."
    )

    @model_validator(mode="after")
    def _consistent(self) -> "PodTopologySpreadArgs":
        if self.defaulting_type == "System" and self.default_constraints:
            raise ValueError("defaultConstraints: must be empty unless defaultingType is List")
        pairs = [(each.topology_key, each.when_unsatisfiable) for each in self.default_constraints]
        if len(set(pairs)) < len(pairs):
            raise ValueError("defaultConstraints: two have the same topologyKey and whenUnsatisfiable")
        return self


class HardState(Struct):
    """Input of Filter: the constraints, and simulated pods that the stored counts leave out.

    Attributes:
        constraints: The hard ones.
        extra: For each, pods by domain that a simulation added (negative: removed) and the stored counts
            leave out: only there does upstream count terminating pods.
    """

    constraints: tuple[Constraint, ...]
    extra: list[dict[int, int]] = field(default_factory=list)

    def clone(self) -> "HardState":
        """An independent copy."""
        return HardState(self.constraints, [dict(each) for each in self.extra])


class SoftState(Struct, frozen=True, eq=False):
    """Input of Score and NormalizeScore.

    Attributes:
        constraints: All constraints of the template.
        weights: ln(domains + 2) of each soft constraint.
        ignored: Shape (F,): feasible nodes that lack a required key; None without such nodes.
    """

    constraints: Constraints
    weights: tuple[float, ...]
    ignored: fwk.BoolArray | None


class PodTopologySpread(
    fwk.PreFilterPlugin,
    fwk.PreFilterExtensions,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.NormalizingPlugin,
    fwk.EnqueueExtensions,
):
    """Spread the pods of a selector evenly."""

    name: ClassVar = "PodTopologySpread"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.CLUSTER, counts_domains=True, own_namespace=True)
    args_model: ClassVar = PodTopologySpreadArgs

    def __init__(self, args: PodTopologySpreadArgs) -> None:
        self.args = args
        self._is_system = args.defaulting_type == "System"
        self._defaults = (
            SYSTEM_DEFAULTS
            if self._is_system
            else tuple(TopologySpreadConstraint(**each.model_dump()) for each in args.default_constraints)
        )

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Find the hard constraints; SKIP without any."""
        constraints = self._constraints(pod.template, snapshot.objects)
        if constraints.problem:
            return fwk.error(constraints.problem)
        if not constraints.hard:
            return fwk.SKIP
        state.write(HardState(constraints.hard))
        return fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where a key is missing, 2 where the skew would be too large, shape (N,)."""
        hard = state.read(HardState)
        codes = fwk.all_feasible(snapshot)
        for position, constraint in enumerate(hard.constraints):
            domains = constraint.counts(snapshot)
            if len(domains.sums) == 1:
                codes[codes == 0] = 1  # no node has the key; hundreds may follow
                break
            counts = domains.sums
            if hard.extra and hard.extra[position]:
                counts = counts.copy()
                for domain, amount in hard.extra[position].items():
                    counts[domain] += amount
            ids = snapshot.label_ids(constraint.topology_key)
            verdicts = np.zeros(len(counts), dtype=np.int64)
            verdicts[counts > _most(constraint, domains, counts)] = 2
            verdicts[-1] = 1
            here = verdicts[ids]
            codes = np.where(codes == 0, here, codes) if position else here
        return codes

    def result_version(self, template: fwk.PodTemplate, snapshot: fwk.Snapshot) -> fwk.ResultVersion | None:
        """Domains with too many pods; where each domain is a node, the limit instead."""
        marks: list[Hashable] = []
        by_row = False
        for constraint in self._constraints(template, snapshot.objects).hard:
            domains = constraint.counts(snapshot)
            most = _most(constraint, domains, domains.sums)
            if len(domains.sums) <= FEW_DOMAINS:
                marks.append((domains.sums > most).tobytes())
            elif domains.is_single:
                marks.append(most)
                by_row = True
            else:
                return None
        return fwk.ResultVersion(tuple(marks), by_row) if marks else fwk.INDIFFERENT

    @property
    def gives_constraints(self) -> bool:
        """Whether the profile names default constraints."""
        return bool(self._defaults) and not self._is_system

    def constraints(self, template: fwk.PodTemplate, objects: fwk.ClusterObjects) -> Constraints:
        """The pod's own constraints, or else those that the profile names; none that are built in."""
        has_own = bool(template.sample.spec.topology_spread_constraints)
        return self._constraints(template, objects) if has_own or self.gives_constraints else NONE

    def eased(self, template: fwk.PodTemplate) -> bool:
        """True: a domain that loses a pod approaches the minimum, or stays the minimum."""
        return True

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The missing label, or the skew."""
        return LABEL_MISSING if code == 1 else SKEWED

    def add_pod(
        self, state: fwk.CycleState, pod: fwk.PodInfo, added: fwk.PodInfo, node: int, snapshot: fwk.Snapshot
    ) -> fwk.Status:
        """Add a simulated pod that the stored counts leave out; they have all others already."""
        _simulate(state.read(HardState), added, node, snapshot, 1)
        return fwk.SUCCESS

    def remove_pod(
        self, state: fwk.CycleState, pod: fwk.PodInfo, removed: fwk.PodInfo, node: int, snapshot: fwk.Snapshot
    ) -> fwk.Status:
        """Remove such a pod."""
        _simulate(state.read(HardState), removed, node, snapshot, -1)
        return fwk.SUCCESS

    def pre_score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Weight the soft constraints by the number of domains among the feasible nodes."""
        constraints = self._constraints(pod.template, snapshot.objects)
        if not constraints.soft:
            return fwk.SKIP
        ignored: fwk.BoolArray | None = None
        if constraints.all_keys_required:
            for key in constraints.soft_keys:
                missing = snapshot.label_ids(key) == fwk.ABSENT
                if missing.any():
                    ignored = missing if ignored is None else ignored | missing
                    if ignored.all():
                        state.write(SoftState(NONE, (), ignored))
                        return fwk.SUCCESS
        weights = []
        for constraint in constraints.soft:
            if constraint.topology_key == HOSTNAME:
                size = len(snapshot) - (0 if ignored is None else int(ignored.sum()))
            else:
                ids = snapshot.label_ids(constraint.topology_key)
                if ignored is not None:
                    ids = ids[~ignored]
                values = snapshot.label(constraint.topology_key).values
                seen = np.zeros(len(values) + 1, dtype=np.bool_)
                seen[ids] = True
                if seen[-1] and "" in values:
                    # Upstream treats a missing zone and an empty one as the same domain.
                    seen[values.index("")] = True
                    seen[-1] = False
                size = int(np.count_nonzero(seen))
            weights.append(_weight(size))
        state.write(SoftState(constraints, tuple(weights), ignored))
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Weighted matching pods in each node's domains; shape (F,), lower is better."""
        soft = state.read(SoftState)
        points = np.zeros(len(snapshot), dtype=np.float64)
        for constraint, weight in zip(soft.constraints.soft, soft.weights, strict=True):
            if constraint.topology_key == HOSTNAME:
                column = snapshot.index(PodCounts).of(constraint.pods).column
                here = _by_pods(constraint, weight, snapshot.cut(column))
                if not soft.constraints.all_keys_required:
                    here[snapshot.label_ids(HOSTNAME) == fwk.ABSENT] = 0
            else:
                here = _by_domain(constraint, weight, soft.constraints, snapshot)[
                    snapshot.label_ids(constraint.topology_key)
                ]
            points += here
        raw = _rounded(points)
        if soft.ignored is not None:
            raw[soft.ignored] = 0
        return raw

    def normalize(self, state: fwk.CycleState, pod: fwk.PodInfo, scores: fwk.IntArray) -> fwk.IntArray:
        """The fewest matching pods score 100; nodes that lack a required key score 0."""
        ignored = state.read(SoftState).ignored
        judged = scores if ignored is None else scores[~ignored]
        if not len(judged):
            return np.zeros_like(scores)
        normal = _normalized(scores, judged)
        if ignored is not None:
            normal[ignored] = 0
        return normal

    def node_axes(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> Sequence[NodeAxis] | None:
        """The domain of the only soft key, and a node's own pods; None for more keys, or nodes without."""
        constraints = self._constraints(pod.template, snapshot.objects)
        keys = constraints.soft_keys - {HOSTNAME}
        counted = {each.pods for each in constraints.soft if each.topology_key == HOSTNAME}
        if len(keys) > 1 or len(counted) > 1:
            return None
        needed = constraints.soft_keys if constraints.all_keys_required else constraints.soft_keys - keys
        if not all(is_on_all_nodes(key, snapshot) for key in needed):
            return None
        axes = []
        for key in keys:
            values = snapshot.label(key).values
            if "" in values and not constraints.all_keys_required:
                return None
            axes.append(
                NodeAxis(snapshot.label_column(key), len(values) + (not is_on_all_nodes(key, snapshot)))
            )
        return axes + [NodeAxis(snapshot.index(PodCounts).of(pods).column, None) for pods in counted]

    def class_points(
        self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot, feasible: fwk.IntArray
    ) -> fwk.IntArray:
        """The same points for each domain and number of a node's own pods."""
        constraints = self._constraints(pod.template, snapshot.objects)
        some = feasible > 0
        points = np.zeros(feasible.shape, dtype=np.float64)
        for constraint in constraints.soft:
            if constraint.topology_key == HOSTNAME:
                here = _by_pods(constraint, _weight(int(feasible.sum())), np.arange(feasible.shape[-1]))
            else:
                domains = some.reshape(len(some), -1).any(axis=1)
                weight = _weight(int(np.count_nonzero(domains)))
                here = _by_domain(constraint, weight, constraints, snapshot)[: len(some)]
                here = here.reshape(-1, *[1] * (feasible.ndim - 1))
            points += here
        raw = _rounded(points)
        return _normalized(raw, raw[some])

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Counted pods, nodes that form domains, and the pod's own labels and tolerations."""
        comes_or_goes = fwk.ActionType.ADD | fwk.ActionType.DELETE
        label, toleration = fwk.ActionType.UPDATE_POD_LABEL, fwk.ActionType.UPDATE_POD_TOLERATION
        node = comes_or_goes | fwk.ActionType.UPDATE_NODE_LABEL | fwk.ActionType.UPDATE_NODE_TAINT
        assigned, own = fwk.EventResource.ASSIGNED_POD, fwk.EventResource.UNSCHEDULABLE_POD
        return (
            fwk.EventWithHint(assigned, comes_or_goes, self._after_pod, by_template=True),
            fwk.EventWithHint(fwk.EventResource.POD, label, self._after_relabelled, by_template=True),
            fwk.EventWithHint(own, toleration, self._after_toleration, by_template=True),
            fwk.EventWithHint(fwk.EventResource.NODE, node, self._after_node, by_template=True),
        )

    def _after_pod(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
        """A constraint of the waiting pod counts the pod of the event."""
        other = change.old if change.new is None else change.new
        return fwk.QueueingHint.of(any(each.means(other) for each in self._hard(pod, change)))

    def _after_relabelled(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
        """A constraint of the waiting pod starts or stops counting the pod of the event."""
        return fwk.QueueingHint.of(
            any(each.means(change.old) != each.means(change.new) for each in self._hard(pod, change))
        )

    def _after_toleration(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
        """A constraint of the pod excludes nodes whose taints are not tolerated."""
        spec = pod.pod.spec
        return fwk.QueueingHint.of(
            any(
                each.node_taints_policy == "Honor" and each.when_unsatisfiable == "DoNotSchedule"
                for each in spec.topology_spread_constraints
            )
        )

    def _after_node(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
        """A node with all topology keys was added or deleted, or one of these or its taints changed."""
        keys = {each.topology_key for each in self._hard(pod, change)}
        old: fwk.Node | None = change.old
        new: fwk.Node | None = change.new
        had = old is not None and keys <= old.labels.keys()
        has = new is not None and keys <= new.labels.keys()
        if old is None or new is None:
            return fwk.QueueingHint.of(had or has)
        if had != has:
            return fwk.QueueingHint.QUEUE
        moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
        return fwk.QueueingHint.of(has and (moved or old.spec.taints != new.spec.taints))

    def _hard(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> tuple[Constraint, ...]:
        return self._constraints(pod.template, change.objects).hard

    def _constraints(self, template: fwk.PodTemplate, objects: fwk.ClusterObjects) -> Constraints:
        """The pod's own constraints, or else the defaults with a selector built for it."""
        own = template.sample.spec.topology_spread_constraints
        if own:
            return template.memo(PodTopologySpread.name, lambda: own_constraints(template, own))
        if not self._defaults:
            return NONE
        return objects.derived_of(template, self, lambda: self._default_constraints(template, objects))

    def _default_constraints(self, template: fwk.PodTemplate, objects: fwk.ClusterObjects) -> Constraints:
        selector = default_selector(template, objects)
        if selector.is_empty:
            return NONE
        return compiled(
            template,
            [(each, selector) for each in self._defaults],
            all_keys_required=not self._is_system,
        )


def _weight(domains: int) -> float:
    return log(domains + 2)


def _by_pods(constraint: Constraint, weight: float, counts: fwk.IntArray) -> NDArray[np.float64]:
    """A constraint's part of the points of nodes with so many matching pods."""
    points: NDArray[np.float64] = (counts * weight + (constraint.max_skew - 1)).astype(np.float64, copy=False)
    return points


def _by_domain(
    constraint: Constraint, weight: float, constraints: Constraints, snapshot: fwk.Snapshot
) -> NDArray[np.float64]:
    """The same of each domain, shape (D + 1,); the last is of nodes without the key."""
    counts = constraint.counts(snapshot).sums
    if not constraints.all_keys_required:
        values = snapshot.label(constraint.topology_key).values
        if "" in values:
            counts = counts.copy()
            counts[values.index("")] += constraint.without_key(snapshot)
    worth = _by_pods(constraint, weight, counts)
    worth[-1] = 0
    return worth


def _rounded(points: NDArray[np.float64]) -> fwk.IntArray:
    raw: fwk.IntArray = np.floor(points + 0.5).astype(np.int64)
    return raw


def _normalized(raw: fwk.IntArray, judged: fwk.IntArray) -> fwk.IntArray:
    """The points of raw scores, where ``judged`` are those of all nodes that count."""
    lowest, highest = int(judged.min()), int(judged.max())
    if highest == 0:
        return np.full_like(raw, fwk.MAX_SCORE)
    points: fwk.IntArray = fwk.MAX_SCORE * (highest + lowest - raw) // highest
    return points


def _most(constraint: Constraint, domains: DomainSums, counts: fwk.IntArray) -> int:
    """The number of matching pods up to which a domain accepts this pod."""
    least = 0
    if domains.size and domains.size >= constraint.min_domains:
        whole = domains.size == len(counts) - 1
        least = int((counts[:-1] if whole else counts[domains.exists]).min())
    return constraint.max_skew + least - constraint.selects_itself


def _simulate(hard: HardState, other: fwk.PodInfo, node: int, snapshot: fwk.Snapshot, amount: int) -> None:
    """Record a pod that the stored counts leave out, though upstream counts it in a simulation."""
    for position, constraint in enumerate(hard.constraints):
        if other.is_terminating and constraint.means(other):
            domain = int(constraint.counts(snapshot).domain_of_row[node])
            if domain != fwk.ABSENT:
                hard.extra = hard.extra or [{} for _ in hard.constraints]
                extra = hard.extra[position]
                extra[domain] = extra.get(domain, 0) + amount
