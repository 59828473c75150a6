"""HighNodeUtilization: evict pods from under-used nodes, so that an autoscaler can remove these.

Formula, per node over the thresholds' resources::

    source:      used% <= thresholds[r] for all r (cordoned nodes too)
    destination: not a source, and schedulable
    room[r]      = sum over destinations of capacity[r] - used[r]

Pods leave the sources while there is room in every resource (cpu, memory and pods included).

Units: percent of a node's allocatable; cpu in milli; of requests, or of usage with ``metricsUtilization``.
Edges: nothing happens if no node, all nodes, or at most ``numberOfNodes`` nodes are under-used; sources are
sorted by the plain sum of their amounts, the fewest bytes first; nodes may be emptied in part.
Source: descheduler v0.36, ``nodeutilization/highnodeutilization.go``.
Differs: under the Proven planner the proof checks taints of the destinations. A pod goes to the fullest
feasible destination, never to an under-used or empty node, and otherwise stays. ``metricsUtilization`` is our
own. A node with an annotation or label that forbids autoscalers to remove it
(``docs/reference/signals.md``) is no source; one that is starting is neither source nor destination. With
``metricsUtilization``, a destination's usage exceeds the threshold of some resource by at least five points,
so that a node with a nearly constant load does not alternate between destination and under-used. The
destination, its pods and the source must be measured. A destination stays five points below the thresholds of
the policy's other strategies, and below 95 % at its peak.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, StrictInt, model_validator

from plimsoll.framework import PluginArgs, PodInfo
from plimsoll.framework.descheduling import NodeClasses, Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Vicinity, nodes_near
from plimsoll.framework.descheduling.proposals import Candidates, Destinations
from plimsoll.toolkit.descheduling.measured_usage import MeasuredUsage
from plimsoll.toolkit.descheduling.node_usage import (
    NodeUsage,
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
from plimsoll.toolkit.descheduling.starting_nodes import is_starting, kept

#: Percentage points of usage between under-used nodes and destinations, if both are measured.
APART = 5.0


class MeasuredByArg(PluginArgs):
    """The source of actual usage; our own."""

    source: Literal["KubernetesMetrics"] = Field(description="The metrics API.")


#: Maximum number of nodes that remarks name.
REMARKS = 3


class HighNodeUtilizationArgs(PluginArgs):
    """Arguments, as in descheduler v1alpha2, and ``metricsUtilization``, which is our own."""

    thresholds: Percentages = Field(
        default={}, description="Percent by resource, up to which a node counts as under-used."
    )
    number_of_nodes: StrictInt = Field(
        default=0, description="Do something only when more nodes than this are under-used."
    )
    eviction_modes: tuple[Literal["OnlyThresholdingResources"], ...] = Field(
        default=(), description="OnlyThresholdingResources: only pods that request one of the resources."
    )
    evictable_namespaces: EvictableNamespacesArg | None = Field(
        default=None, description="Namespaces whose pods stay; left out, none."
    )

    metrics_utilization: MeasuredByArg | None = Field(
        default=None,
        description="Where actual usage comes from; left out, requests count. descheduler has it for"
        " LowNodeUtilization only.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_evictable_namespaces(self.evictable_namespaces)
        check_thresholds(self.thresholds)
        return self


class HighNodeUtilization(Strategy):
    """Empty under-used nodes."""

    name: ClassVar = "HighNodeUtilization"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = HighNodeUtilizationArgs

    def __init__(self, args: HighNodeUtilizationArgs) -> None:
        self.args = args
        source = RequestedUsage if args.metrics_utilization is None else MeasuredUsage
        self._usage: UsageSource = source(args.thresholds)

    @property
    def moves_by_load(self) -> bool:
        """True if usage is read from the metrics API."""
        return self.args.metrics_utilization is not None

    def load_lines(self, context: StrategyContext) -> Mapping[str, float]:
        """Empty: this strategy has no upper threshold."""
        return {}

    def candidates(self, context: StrategyContext) -> Candidates:
        """Pods of under-used nodes, one node after another."""
        nodes = self._usage.nodes(context)
        sources, destinations = self._classified(nodes, context)
        context.classes.append(
            NodeClasses(tuple(each.name for each in sources), tuple(each.name for each in destinations))
        )
        if not context.is_exact:
            context.remarks += [
                f"node {each.name} is not emptied: {why}"
                for each in nodes
                if self._is_under(each) and (why := kept(each.node, context))
            ][:REMARKS]
        idle = why_idle(sources, nodes, self.args.number_of_nodes)
        if idle or not destinations:
            context.remarks.append(idle or "no node is available to schedule the pods, nothing to do here")
            return
        yield from self._draining(sources, destinations, context).candidates(context)

    def surplus(self, context: StrategyContext) -> Candidates:
        """The same, as if there were room for all pods of under-used nodes."""
        sources, _ = self._classified(self._usage.nodes(context), context)
        if len(sources) > self.args.number_of_nodes:
            yield from self._draining(sources, (), context).surplus(context)

    def _classified(
        self, nodes: Sequence[NodeUsage], context: StrategyContext
    ) -> tuple[list[NodeUsage], list[NodeUsage]]:
        """The under-used nodes, and the destinations of their pods."""
        sources = [each for each in nodes if self._is_source(each, context)]
        known = {each.name for each in sources}
        destinations = [
            each
            for each in nodes
            if each.name not in known
            and not each.node.spec.unschedulable
            and not is_starting(each.node, context)
        ]
        if self.moves_by_load:
            destinations = [
                each
                for each in destinations
                if not self._is_under(each, APART) and context.prospects.too_hot(each.name) is None
            ]
        return sources, destinations

    def _draining(
        self, sources: Sequence[NodeUsage], destinations: Sequence[NodeUsage], context: StrategyContext
    ) -> NodeEviction:
        args = self.args
        room = {
            name: sum(self._cap(each, name) - each.used[name] for each in destinations)
            for name in self._usage.resources
        }
        return NodeEviction(
            usage=self._usage,
            sources=sorted(sources, key=lambda each: (each.bulk, each.name)),
            destinations=destinations,
            room=room,
            may_go_on=lambda _: True,
            removable=self._is_removable,
            reason=self._reason,
            targets=self._targets(destinations, context),
            excluded=args.evictable_namespaces.exclude if args.evictable_namespaces else (),
        )

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Pods on under-used nodes that could leave, by node."""
        excluded = self.args.evictable_namespaces.exclude if self.args.evictable_namespaces else ()
        found = {}
        for each in self._usage.some(nodes_near(context, near), context):
            if self._is_source(each, context):
                pods = sum(
                    pod.namespace not in excluded and self._is_removable(pod) and context.is_evictable(pod)
                    for pod in context.pods(each.name)
                )
                if pods:
                    found[Complaint(f"node {each.name} is under-used and not empty")] = float(pods)
        return found

    def _targets(self, destinations: Sequence[NodeUsage], context: StrategyContext) -> Destinations:
        """The fullest destination first, since the scheduler's score may prefer the emptiest."""
        admitted = frozenset(each.name for each in destinations)
        cluster = context.cluster
        axes = [axis for name in self.args.thresholds if (axis := cluster.axis_of(name)) is not None]

        def fullness(name: str) -> float:
            row = cluster.rows[name]
            if self.moves_by_load:
                (usage,) = self._usage.some((name,), context)
                return max(usage.percent.get(each, 0.0) for each in self.args.thresholds)
            used, room = cluster.requested[row, axes], cluster.allocatable[row, axes]
            return float((used / np.maximum(room, 1)).max(initial=0.0))

        return Destinations.among(admitted, fullness)

    def _cap(self, usage: NodeUsage, resource: str) -> int:
        """The room of a destination, in whole units for the thresholds' resources."""
        capacity = usage.capacity.get(resource, 0)
        if resource in self.args.thresholds:
            return rounded(resource, capacity) * unit_of(resource)
        return capacity

    def _is_source(self, usage: NodeUsage, context: StrategyContext) -> bool:
        """Whether the node is under-used and may be emptied; for planner Upstream every node may."""
        return self._is_under(usage) and (context.is_exact or not kept(usage.node, context))

    def _is_under(self, usage: NodeUsage, margin: float = 0.0) -> bool:
        lines = self.args.thresholds
        return all(usage.percent.get(name, 0.0) <= line + margin for name, line in lines.items())

    def _is_removable(self, pod: PodInfo) -> bool:
        if not self.args.eviction_modes:
            return True
        spec = pod.pod.spec
        named = {
            name
            for container in (*spec.containers, *spec.init_containers)
            for name in container.resources.requests
        }
        return not named.isdisjoint(self.args.thresholds)

    def _reason(self, usage: NodeUsage) -> str:
        return "its node is under-used: " + ", ".join(
            f"{name} {usage.percent.get(name, 0.0):.1f}% (threshold {line:.1f}%)"
            for name, line in self.args.thresholds.items()
        )
