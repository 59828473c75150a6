"""LowNodeUtilization: evict pods from over-used nodes while under-used ones have room.

Formula, per node over the thresholds' resources::

    underutilized: schedulable, and used% <= low[r] for all r
    overutilized:  used% > high[r] for any r
    low, high = thresholds, targetThresholds, or with useDeviationThresholds
                clamp(mean[r] - thresholds[r]), clamp(mean[r] + targetThresholds[r])
    cap[r]    = int(high[r] * 0.01 * capacity[r]) for r with a threshold, else capacity[r]

Pods leave an over-used node while it is above its cap in any resource (cpu, memory and pods included)
and the under-used nodes together have room below their caps in every one.

Units: percent of a node's allocatable; cpu in milli.
Edges: nothing happens if no node, all nodes, or at most ``numberOfNodes`` nodes are under-used; over-used
nodes are sorted by the plain sum of their amounts, the most bytes first.
Source: descheduler v0.36, ``nodeutilization/lownodeutilization.go``.
Differs: the Proven planner skips unmeasured nodes, and sorts nodes by their excess; a pod goes to an
under-used node, or stays. A node that is starting is not under-used, and what it uses does not count. A node
that a pod was moved off or to is skipped until its next measurement. By the load book (with the metrics API,
or if queries of the policy measure cpu and memory of nodes and of pods, and no other resource has a
threshold), pods leave in the order of
:mod:`plimsoll.toolkit.descheduling.fewest_moves`; if a node is still over-used then, pods are exchanged
(:mod:`plimsoll.toolkit.descheduling.pod_exchange`) unless ``evictionLimits`` is given. Nothing is proposed if
all nodes together use more than ``min(high, 95) - 5`` percent.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from plimsoll.framework import PluginArgs, PodInfo
from plimsoll.framework.descheduling import NodeClasses, Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Vicinity, nodes_near
from plimsoll.framework.descheduling.proposals import Candidates, Destinations
from plimsoll.toolkit.descheduling.fewest_moves import FewestMoves
from plimsoll.toolkit.descheduling.measured_usage import BY_QUERIES, MEASURED, MeasuredUsage, no_room
from plimsoll.toolkit.descheduling.node_usage import (
    METRIC_RESOURCE,
    NodeUsage,
    NoUsage,
    QueriedUsage,
    RequestedMeans,
    RequestedUsage,
    UsageSource,
    rounded,
    unit_of,
)
from plimsoll.toolkit.descheduling.node_utilization import (
    EvictableNamespacesArg,
    NodeEviction,
    Percentages,
    check_evictable_namespaces,
    check_thresholds,
    why_idle,
)
from plimsoll.toolkit.descheduling.pod_exchange import PodExchange
from plimsoll.toolkit.descheduling.queried_resources import QueriedResources
from plimsoll.toolkit.descheduling.starting_nodes import is_starting, started_nodes

KUBERNETES_METRICS = "KubernetesMetrics"
PROMETHEUS = "Prometheus"


class QueryArg(PluginArgs):
    """A Prometheus query that returns a share from 0 to 1 for each node, labelled ``instance``."""

    query: StrictStr = Field(default="", description="The query, in PromQL.")


class MetricsUtilizationArg(PluginArgs):
    """The source of actual usage."""

    metrics_server: StrictBool = Field(default=False, description="Deprecated spelling of KubernetesMetrics.")
    source: StrictStr = Field(default="", description=f"{KUBERNETES_METRICS} or {PROMETHEUS}.")
    prometheus: QueryArg | None = Field(default=None, description="What to ask Prometheus.")


class PerNodeLimitArg(PluginArgs):
    """The number of pods that this strategy evicts from one node in one cycle."""

    node: StrictInt | None = Field(default=None, ge=0, description="Pods, at most; left out, any number.")


class LowNodeUtilizationArgs(PluginArgs):
    """Arguments, as in descheduler v1alpha2."""

    use_deviation_thresholds: StrictBool = Field(
        default=False, description="Whether thresholds are distances from the mean of all nodes."
    )
    thresholds: Percentages = Field(
        default={}, description="Percent by resource, up to which a node counts as under-used."
    )
    target_thresholds: Percentages = Field(
        default={}, description="Percent by resource, above which a node counts as over-used."
    )
    number_of_nodes: StrictInt = Field(
        default=0, description="Do something only when more nodes than this are under-used."
    )
    metrics_utilization: MetricsUtilizationArg | None = Field(
        default=None, description="Where actual usage comes from; left out, requests count."
    )
    evictable_namespaces: EvictableNamespacesArg | None = Field(
        default=None, description="Namespaces whose pods stay; left out, none."
    )
    eviction_limits: PerNodeLimitArg | None = Field(
        default=None, description="How much this strategy takes from one node."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_evictable_namespaces(self.evictable_namespaces)
        metrics = self.metrics_utilization
        if metrics is not None and metrics.source == KUBERNETES_METRICS:
            if metrics.metrics_server:
                raise ValueError("metricsServer cannot be set together with source KubernetesMetrics")
            if metrics.prometheus is not None:
                raise ValueError("prometheus configuration is not allowed with source KubernetesMetrics")
        if metrics is not None and metrics.source == PROMETHEUS:
            own = metrics.prometheus is not None and bool(metrics.prometheus.query)
            if not own and (not self.thresholds or METRIC_RESOURCE in self.thresholds):
                raise ValueError("prometheus query is required with source Prometheus")
            if own and METRIC_RESOURCE not in self.thresholds:
                raise ValueError(
                    f"a query of the strategy measures {METRIC_RESOURCE}, which thresholds do not have; put"
                    " queries of resources under metricsProviders"
                )
        check_thresholds(self.thresholds)
        check_thresholds(self.target_thresholds)
        if set(self.thresholds) != set(self.target_thresholds):
            raise ValueError("thresholds and targetThresholds configured different resources")
        if not self.use_deviation_thresholds:
            for name, percent in self.thresholds.items():
                if percent > self.target_thresholds[name]:
                    raise ValueError(f"thresholds' {name} percentage is greater than targetThresholds'")
        return self


class LowNodeUtilization(Strategy):
    """Move pods from over-used to under-used nodes."""

    name: ClassVar = "LowNodeUtilization"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = LowNodeUtilizationArgs

    def __init__(self, args: LowNodeUtilizationArgs, usage: UsageSource | None = None) -> None:
        self.args = args
        self._usage = usage or _source(args)

    def candidates(self, context: StrategyContext) -> Candidates:
        """Pods of over-used nodes, one node after another."""
        nodes = self._usage.nodes(context)
        high, under, over = self._classified(nodes, context)
        context.classes.append(
            NodeClasses(tuple(each.name for each in under), tuple(each.name for each in over))
        )
        idle = why_idle(under, nodes, self.args.number_of_nodes)
        if over and not idle and context.load_book is not None and self.moves_by_load:
            idle = no_room(nodes, high)
        if idle or not over:
            context.remarks.append(idle or "all nodes are under target utilization, nothing to do here")
            return
        limits = self.args.eviction_limits
        draining = self._draining(
            high, under, over, context, node_limit=None if limits is None else limits.node
        )
        yield from draining.candidates(context)
        if draining.fewest is not None and limits is None:
            yield from PodExchange(draining, draining.fewest).candidates(context)

    def surplus(self, context: StrategyContext) -> Candidates:
        """The same, as if there were room for all surplus pods of over-used nodes."""
        high, _, over = self._classified(self._usage.nodes(context), context)
        yield from self._draining(high, (), over, context).surplus(context)

    def _classified(
        self, nodes: Sequence[NodeUsage], context: StrategyContext
    ) -> tuple[Mapping[str, float], list[NodeUsage], list[NodeUsage]]:
        """The upper threshold by resource, the under-used nodes, and the over-used ones."""
        low, high = self._lines(nodes)
        under = [
            each
            for each in nodes
            if not each.node.spec.unschedulable
            and not is_starting(each.node, context)
            and all(each.percent.get(name, 0.0) <= percent for name, percent in low.items())
        ]
        known = {each.name for each in under}
        over = [
            each
            for each in nodes
            if each.name not in known
            and any(each.percent.get(name, 0.0) > percent for name, percent in high.items())
        ]
        return high, under, over

    def _draining(
        self,
        high: Mapping[str, float],
        under: Sequence[NodeUsage],
        over: list[NodeUsage],
        context: StrategyContext,
        node_limit: int | None = None,
    ) -> NodeEviction:
        caps = {each.name: _caps(each, high, self._usage.resources) for each in (*under, *over)}
        room = {
            name: sum(caps[each.name][name] - each.used[name] for each in under)
            for name in self._usage.resources
        }

        def above(source: NodeUsage) -> bool:
            return any(source.used[name] > cap for name, cap in caps[source.name].items())

        def reason(source: NodeUsage) -> str:
            return "its node is over-used: " + _excess(source.percent, high)

        def excess(source: NodeUsage) -> float:
            return max(source.percent.get(name, 0.0) - percent for name, percent in high.items())

        if context.is_exact:
            over.sort(key=lambda each: (-each.bulk, each.name))
        else:
            over.sort(key=lambda each: (-excess(each), each.name))
        namespaces = self.args.evictable_namespaces
        return NodeEviction(
            usage=self._usage,
            sources=over,
            destinations=under,
            room=room,
            may_go_on=above,
            removable=lambda _: True,
            reason=reason,
            targets=Destinations.among(frozenset(each.name for each in under)),
            excluded=namespaces.exclude if namespaces else (),
            node_limit=node_limit,
            fewest=self._fewest(high, under, caps, context),
        )

    def _fewest(
        self,
        high: Mapping[str, float],
        under: Sequence[NodeUsage],
        caps: Mapping[str, Mapping[str, int]],
        context: StrategyContext,
    ) -> FewestMoves | None:
        """The order in which pods are moved by the load book."""
        if context.load_book is None or not self.moves_by_load:
            return None
        return FewestMoves(
            self._usage,
            lambda source: {name: source.used[name] - caps[source.name][name] for name in high},
            [
                {name: caps[each.name][name] - each.used[name] for name in high if name in each.capacity}
                for each in under
            ],
        )

    @property
    def moves_by_load(self) -> bool:
        """True if usage comes from the metrics API, or from queries that fill the load book."""
        return isinstance(self._usage, MeasuredUsage)

    def by_load_book(self) -> Strategy:
        """A strategy by the load book, if queries measure cpu and memory, and only these have thresholds."""
        if not isinstance(self._usage, QueriedResources) or not set(self.args.thresholds) <= MEASURED:
            return self
        return LowNodeUtilization(self.args, MeasuredUsage(self.args.thresholds, BY_QUERIES))

    def load_lines(self, context: StrategyContext) -> Mapping[str, float]:
        """The upper thresholds."""
        return self._lines(self._usage.some(started_nodes(context), context))[1]

    def spares(self, pod: PodInfo) -> bool:
        """True for pods in namespaces whose pods stay."""
        namespaces = self.args.evictable_namespaces
        return namespaces is not None and pod.namespace in namespaces.exclude

    @property
    def complains_of_crowding(self) -> bool:
        """True with fixed thresholds on requests."""
        return isinstance(self._usage, RequestedUsage) and not self.args.use_deviation_thresholds

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Percentage points above the target, by node and resource, regardless of room on other nodes."""
        high = self._high(context)
        return {
            Complaint(f"node {each.name} is above its target in {name}"): each.percent[name] - line
            for each in self._usage.some(nodes_near(context, near), context)
            for name, line in high.items()
            if each.percent.get(name, 0.0) > line
        }

    def _high(self, context: StrategyContext) -> Mapping[str, float]:
        """The upper threshold by resource now; for measured nodes, at the start of the run."""
        if not self.args.use_deviation_thresholds:
            return self.args.target_thresholds
        key = (self.name, "lines")
        if isinstance(self._usage, RequestedUsage):
            if key not in context.kept:
                context.kept[key] = RequestedMeans(self.args.thresholds, context)
            return self._deviating(context.kept[key].means(context.cluster))[1]
        if key not in context.kept:
            context.kept[key] = self._lines(self._usage.some(started_nodes(context), context))
        high: Mapping[str, float] = context.kept[key][1]
        return high

    def _lines(self, nodes: Sequence[NodeUsage]) -> tuple[Mapping[str, float], Mapping[str, float]]:
        low, high = self.args.thresholds, self.args.target_thresholds
        if not self.args.use_deviation_thresholds:
            return low, high
        means = {}
        for name in low:
            shares = [each.percent[name] for each in nodes if name in each.percent]
            means[name] = sum(shares) / len(shares) if shares else 0.0
        return self._deviating(means)

    def _deviating(self, means: Mapping[str, float]) -> tuple[Mapping[str, float], Mapping[str, float]]:
        low, high = self.args.thresholds, self.args.target_thresholds
        return (
            {name: _clamped(means[name] - percent) for name, percent in low.items()},
            {name: _clamped(means[name] + percent) for name, percent in high.items()},
        )


def _source(args: LowNodeUtilizationArgs) -> UsageSource:
    metrics = args.metrics_utilization
    if metrics is not None and (metrics.source == KUBERNETES_METRICS or metrics.metrics_server):
        return MeasuredUsage(args.thresholds)
    if metrics is not None and metrics.source == PROMETHEUS:
        if METRIC_RESOURCE not in args.thresholds:
            return QueriedResources(args.thresholds)
        if len(args.thresholds) > 1:
            raise ValueError(f"thresholds with {METRIC_RESOURCE} have no other key")
        return QueriedUsage(metrics.prometheus.query if metrics.prometheus is not None else "")
    if metrics is not None:
        return NoUsage(metrics.source)
    return RequestedUsage(args.thresholds)


def _clamped(percent: float) -> float:
    return min(max(percent, 0.0), 100.0)


def _caps(usage: NodeUsage, high: Mapping[str, float], resources: tuple[str, ...]) -> dict[str, int]:
    return {
        name: 0
        if name not in usage.capacity
        else int(high[name] * 0.01 * rounded(name, usage.capacity[name])) * unit_of(name)
        if name in high
        else usage.capacity[name]
        for name in resources
    }


def _excess(percent: Mapping[str, float], high: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name} {percent[name]:.1f}% (target {line:.1f}%)"
        for name, line in high.items()
        if percent.get(name, 0.0) > line
    )
