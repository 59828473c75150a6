"""Usage of each node by requests, the metrics API, or Prometheus queries.

Units: billionths, so that sums of odd quantities stay exact; rounded up to milli-cpu and whole units where
upstream rounds. A query's pseudo-resource is in percent of 100. Percentages are floats. Edges: capacity is
``status.allocatable`` when it has any entry, else ``status.capacity``; a capacity of 0 is used to 0 %; a
resource that a node does not have has no percentage. Source: descheduler v0.36,
``pkg/framework/plugins/nodeutilization/usageclients.go``. Differs: the Proven planner leaves out and reports
a node without a valid measurement, or with two that contradict each other; upstream then does nothing at all,
or takes the last one. If no node has a resource, the Proven planner stops the strategy with a message.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.measurements import Measurements, Sample
from plimsoll.framework.errors import CannotJudgeError
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.requests import exact
from plimsoll.model.quantity import nanos, scaled
from plimsoll.toolkit.descheduling.starting_nodes import started_nodes_told

METRIC_RESOURCE = "MetricResource"
"""The pseudo-resource that a Prometheus query measures."""

BASIC = ("cpu", "memory", "pods")

BILLION = 10**9

#: Maximum number of nodes that a sentence names.
SHOWN = 5


@dataclass(slots=True)
class NodeUsage:
    """The capacity of a node and its usage.

    Attributes:
        node: The node.
        used: Billionths by resource; the eviction loop lowers them with each eviction.
        capacity: Billionths by resource; resources that the node does not have are missing. Equal nodes share
            the mapping.
        percent: Usage as percentages by resource at the start.
    """

    node: Node
    used: dict[str, int]
    capacity: dict[str, int]
    percent: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.percent = {}
        for name, amount in self.used.items():
            if name in self.capacity:
                # Amounts that do not fit 64 bits read as 0, as upstream.
                room = rounded(name, self.capacity[name])
                self.percent[name] = rounded(name, amount) / room * 100 if room > 0 else 0.0

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def bulk(self) -> int:
        """The plain sum of all amounts, milli-cores and bytes alike: upstream's sort key of nodes."""
        return sum(rounded(name, amount) for name, amount in self.used.items())


class UsageError(CannotJudgeError):
    """Usage is unknown; the strategy does nothing in this run and reports the reason."""


class UsageSource(Protocol):
    """Provides the usage of nodes and pods."""

    resources: tuple[str, ...]

    def nodes(self, context: StrategyContext) -> list[NodeUsage]:
        """The nodes under consideration, sorted by name.

        Raises:
            UsageError: The source is unavailable, or in exact mode lacks a node.
        """

    def some(self, names: Iterable[str], context: StrategyContext) -> list[NodeUsage]:
        """The named nodes that the source knows.

        Raises:
            UsageError: The source is unavailable.
        """

    def pod(self, pod: PodInfo, context: StrategyContext) -> Mapping[str, int] | None:
        """The usage of a pod in billionths; None when the source does not measure pods.

        Raises:
            UsageError: The source measures pods, but not this one.
        """


class RequestedUsage:
    """Usage as the sum of the pods' requests."""

    def __init__(self, resources: Iterable[str]) -> None:
        self._asked = tuple(resources)
        self.resources = tuple(dict.fromkeys((*self._asked, *BASIC)))

    def nodes(self, context: StrategyContext) -> list[NodeUsage]:
        """The requests on the nodes under consideration."""
        found = self.some(context.nodes, context)
        known = {name for each in found for name in each.capacity} - {METRIC_RESOURCE}
        unknown = ", ".join(name for name in self._asked if name not in known)
        if unknown and found and not context.is_exact:
            raise UsageError(f"no node has {unknown}; correct or remove it in the thresholds")
        return found

    def some(self, names: Iterable[str], context: StrategyContext) -> list[NodeUsage]:
        """The requests on the named nodes."""
        nodes = list(map(context.node, names))
        rooms: dict[tuple[object, ...], dict[str, int]] = {}  # most nodes are equal
        found = []
        for node, used in zip(nodes, requested_of(nodes, self.resources, context), strict=True):
            amounts = node.status.allocatable or node.status.capacity
            alike = tuple(map(amounts.get, self.resources))
            if alike not in rooms:
                rooms[alike] = capacity_of(node, self.resources)
            found.append(NodeUsage(node, used, rooms[alike]))
        return found

    def pod(self, pod: PodInfo, context: StrategyContext) -> Mapping[str, int] | None:
        """The pod's requests."""
        return {**exact_requests(pod), "pods": BILLION}


class RequestedMeans:
    """Mean shares of requests over the nodes under consideration, to be recomputed after each move.

    Nodes and capacities are those at its creation.
    """

    def __init__(self, resources: Iterable[str], context: StrategyContext) -> None:
        self._rooms = []
        for name in resources:
            axis = context.cluster.axis_of(name)
            known = [
                (context.cluster.rows[node], rounded(name, capacity[name]))
                for node in context.nodes
                if name in (capacity := capacity_of(context.node(node), (name,)))
            ]
            table = np.array(known, dtype=np.int64).reshape(-1, 2)
            self._rooms.append((name, axis, table[:, 0], table[:, 1]))

    def means(self, cluster: Cluster) -> dict[str, float]:
        """Percent by resource, 0 where no node has it; rounded as in :class:`NodeUsage`."""
        found = {}
        for name, axis, rows, room in self._rooms:
            used = np.zeros(len(rows)) if axis is None else cluster.requested[rows, axis]
            shares = np.divide(used, room, out=np.zeros(len(rows)), where=room > 0)
            found[name] = float(shares.mean()) * 100 if len(rows) else 0.0
        return found


class QueriedUsage:
    """Usage from a Prometheus query: one value from 0 to 1 for each node, labelled ``instance``."""

    resources: tuple[str, ...] = (METRIC_RESOURCE,)

    def __init__(self, query: str = "") -> None:
        self._query = query

    def nodes(self, context: StrategyContext) -> list[NodeUsage]:
        """The usage of the nodes under consideration, in whole percent, truncated."""
        names = started_nodes_told(context)
        found = self.some(names, context)
        if not found and names:
            raise UsageError(_of_no_node((context.measurements.samples or {}).get(self._query, ())))
        tell_left_out("the Prometheus query returned no single value from 0 to 1", found, names, context)
        return found

    def some(self, names: Iterable[str], context: StrategyContext) -> list[NodeUsage]:
        """The usage of the named nodes, in whole percent, truncated."""
        shares = _shares(context.measurements, self._query, exact=context.is_exact)
        found = []
        for name in names:
            if name not in shares:
                if context.is_exact:
                    raise UsageError(f"the Prometheus query returned no sample for node {name}")
                continue
            used = {METRIC_RESOURCE: int(shares[name] * 100) * BILLION}
            node = context.node(name)
            found.append(NodeUsage(node, used, capacity_of(node, self.resources)))
        return found

    def pod(self, pod: PodInfo, context: StrategyContext) -> Mapping[str, int] | None:
        """None: the query does not measure pods."""
        return None


class NoUsage:
    """An unknown source: every call raises an error."""

    resources: tuple[str, ...] = ()

    def __init__(self, source: str) -> None:
        self._source = source

    def nodes(self, context: StrategyContext) -> list[NodeUsage]:
        """Raise an error."""
        known = "use KubernetesMetrics or Prometheus"
        if not self._source:
            raise UsageError(f"metricsUtilization names no source; {known}")
        raise UsageError(f'there is no metrics source "{self._source}"; {known}')

    def some(self, names: Iterable[str], context: StrategyContext) -> list[NodeUsage]:
        """Raise an error."""
        return self.nodes(context)

    def pod(self, pod: PodInfo, context: StrategyContext) -> Mapping[str, int] | None:
        """Raise an error."""
        return None


def _shares(measurements: Measurements, query: str, *, exact: bool) -> dict[str, float]:
    samples = (measurements.samples or {}).get(query)
    if samples is None:
        why = f": {measurements.problem}" if measurements.problem else ""
        raise UsageError(f"there is no answer to the Prometheus query{why}")
    shares: dict[str, float] = {}
    contradicted = set()
    for sample in samples:
        instance = sample.labels.get("instance")
        sound = 0 <= sample.value <= 1
        if instance is None or not sound:
            if exact:
                raise UsageError(
                    "the Prometheus query must return values from 0 to 1 labelled instance,"
                    f" not {'a value' if sound else 'one outside'} {_labelled(sample)}"
                )
            continue
        if shares.setdefault(instance, sample.value) != sample.value:
            contradicted.add(instance)
            shares[instance] = sample.value
    return shares if exact else {name: shares[name] for name in shares.keys() - contradicted}


def _of_no_node(samples: Sequence[Sample]) -> str:
    """Why a result of the query contains no node."""
    wanted = "one value from 0 to 1 for each node, in the label instance the node's name"
    if not samples:
        return f"the Prometheus query returned nothing; it must return {wanted}"
    return (
        f"the Prometheus query says nothing about any node; it must return {wanted}, and the first of its"
        f" {len(samples)} samples is {_labelled(samples[0])}"
    )


def _labelled(sample: Sample) -> str:
    """The names of a sample's labels; their values may be confidential to authors of policies."""
    return f"labelled {', '.join(sorted(sample.labels)[:SHOWN]) or 'nothing'}"


def tell_left_out(
    lacking: str, found: Iterable[NodeUsage], names: Sequence[str], context: StrategyContext
) -> None:
    """Report those of the nodes without known usage: they are neither emptied nor filled in this run."""
    left_out = sorted(set(names) - {each.name for each in found})
    if left_out:
        named = ", ".join(left_out[:SHOWN]) + (", ..." if len(left_out) > SHOWN else "")
        context.remarks.append(
            f"{lacking} for {len(left_out)} of {len(names)} nodes, which are left out: {named}"
        )


def because(sentence: str, context: StrategyContext) -> str:
    """A sentence, followed by the problem of the source."""
    problem = context.measurements.problem
    return f"{sentence}: {problem}" if problem else sentence


def capacity_of(node: Node, resources: Iterable[str]) -> dict[str, int]:
    """The node's capacity of those of the resources that it has, in billionths; 100 % for a query's."""
    amounts = {**(node.status.allocatable or node.status.capacity), METRIC_RESOURCE: "100"}
    return {name: nanos(amounts[name]) for name in resources if name in amounts}


def exact_requests(pod: PodInfo) -> Mapping[str, int]:
    """The pod's requests in billionths."""
    return pod.template.memo("exact requests", lambda: exact(pod.template.sample))


def requested(node: str, resources: Iterable[str], context: StrategyContext) -> dict[str, int]:
    """The requests of a node's pods in billionths; the resource ``pods`` is counted.

    In exact mode, which reproduces upstream's decisions, the sum is exact; else it comes from the scheduler's
    columns, in which each pod is rounded up.
    """
    if context.is_exact:
        pods = [pod for pod in context.placed(node) if not pod.pod.is_terminal]
        wanted = [exact_requests(pod) for pod in pods]
        used = {name: sum(each.get(name, 0) for each in wanted) for name in resources}
        return used | ({"pods": len(pods) * BILLION} if "pods" in used else {})
    (used,) = _columns([node], resources, context.cluster)
    return used


def requested_of(
    nodes: Sequence[Node], resources: Iterable[str], context: StrategyContext
) -> list[dict[str, int]]:
    """The requests on several nodes."""
    if context.is_exact:
        return [requested(node.name, resources, context) for node in nodes]
    return _columns([node.name for node in nodes], resources, context.cluster)


def _columns(nodes: Sequence[str], resources: Iterable[str], cluster: Cluster) -> list[dict[str, int]]:
    axes = [(name, cluster.axis_of(name), unit_of(name)) for name in resources]
    amounts = cluster.requested[[cluster.rows[node] for node in nodes]].tolist()
    return [{name: 0 if axis is None else row[axis] * unit for name, axis, unit in axes} for row in amounts]


def unit_of(resource: str) -> int:
    """Billionths in the resource's unit: milli for cpu, else one."""
    return 10**6 if resource == "cpu" else BILLION


@lru_cache(maxsize=8_192)
def rounded(resource: str, billionths: int) -> int:
    """The amount in the resource's unit, rounded up."""
    return scaled(billionths, unit_of(resource))
