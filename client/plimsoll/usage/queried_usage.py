"""Reads usage of nodes and pods from the results of a policy's Prometheus queries.

An invalid value (not a number, negative, more than twice the node's room, from the future, of an unknown
node) is left out. Two different values of one node contradict each other, and both are left out. A share may
exceed 1 by a tenth, as rates of short windows do, and then counts as 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from plimsoll.api.v1alpha1.prometheus import NodeQuerySpec, PodQueries
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.load.readings import AHEAD_S, LoadReading, LoadReadings
from plimsoll.model.kinds.node import Node
from plimsoll.model.quantity import BILLION, QuantityError, nanos
from plimsoll.ports.usage import MEASURED, UsageReading, is_possible_amount

#: The maximum age of a value, and the assumed averaging window of queries, in seconds.
STALE_S = WINDOW_S = 300.0

#: The share up to which an excess is rounding, and the maximum use as a multiple of a node's room.
LARGEST_SHARE, LARGEST_USE = 1.1, 2

#: The unit of resources other than cpu and memory: percent of a hundred.
PERCENT = 100 * BILLION

Usage = dict[str, dict[str, int]]
"""Amounts in billionths: of a node or a pod, and of a resource of it."""

_Timed = dict[str, dict[str, tuple[int, float]]]
"""The same, and when each was measured."""


@dataclass(frozen=True)
class NodeNames:
    """Finds the node that a label names."""

    nodes: Mapping[str, Node]
    _by_address: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for name, node in self.nodes.items():
            for each in node.status.addresses:
                if each.type == "InternalIP":
                    self._by_address[each.address] = name

    def of(self, labels: Mapping[str, str], label: str | None) -> str:
        """The node's name, "" if no such labels are known."""
        for each in (label,) if label is not None else ("node", "instance"):
            value = labels.get(each, "")
            host = _host(value)
            for name in (value, host, self._by_address.get(value, ""), self._by_address.get(host, "")):
                if name in self.nodes:
                    return name
        return ""


def _host(address: str) -> str:
    """An address without its port; an IPv6 address with a port has brackets."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    try:
        ip_address(address)
    except ValueError:
        return address.rpartition(":")[0]
    return address


def node_usage(
    answers: Mapping[str, Sequence[Sample]],
    queries: Mapping[str, NodeQuerySpec],
    nodes: Mapping[str, Node],
    now: float,
) -> Usage:
    """The usage of nodes.

    Args:
        answers: Results by the name of the query, without queries that have none.
        queries: The same queries.
        nodes: The known nodes, keyed by name.
        now: Seconds since the epoch.
    """
    found = _of_nodes(answers, queries, nodes, now)
    return {name: {each: amount for each, (amount, _) in used.items()} for name, used in found.items()}


def node_readings(
    answers: Mapping[str, Sequence[Sample]],
    queries: Mapping[str, NodeQuerySpec],
    nodes: Mapping[str, Node],
    now: float,
) -> LoadReadings:
    """Cpu and memory only, for the load book; leaves out nodes that lack one of them."""
    found = _of_nodes(answers, queries, nodes, now)
    return _readings(found, {name: nodes[name].metadata.created_s for name in found})


def _of_nodes(
    answers: Mapping[str, Sequence[Sample]],
    queries: Mapping[str, NodeQuerySpec],
    nodes: Mapping[str, Node],
    now: float,
) -> "_Timed":
    names = NodeNames(nodes)
    found: _Timed = {}
    for resource, samples in answers.items():
        query = queries[resource]
        contradicted = set()
        for sample in samples:
            name = names.of(sample.labels, query.node_label)
            amount = _amount(sample, resource, query.unit, nodes[name], now) if name else None
            if amount is None:
                continue
            if found.setdefault(name, {}).setdefault(resource, (amount, sample.taken))[0] != amount:
                contradicted.add(name)
        for name in contradicted:
            del found[name][resource]
    return found


def _amount(sample: Sample, resource: str, unit: str, node: Node, now: float) -> int | None:
    if not _is_recent(sample, now) or not 0 <= sample.value < math.inf:
        return None
    room = _room(node, resource)
    if unit == "Share":
        return round(min(sample.value, 1.0) * room) if sample.value <= LARGEST_SHARE else None
    return round(sample.value * BILLION) if sample.value * BILLION <= LARGEST_USE * room else None


def _room(node: Node, resource: str) -> int:
    if resource not in MEASURED:
        return PERCENT
    try:
        return max(nanos((node.status.allocatable or node.status.capacity).get(resource, 0)), 0)
    except QuantityError:
        return 0


def _is_recent(sample: Sample, now: float) -> bool:
    return now - STALE_S < sample.taken <= now + AHEAD_S


def pod_usage(answers: Mapping[str, Sequence[Sample]], now: float) -> Usage:
    """The usage of pods by ``namespace/name``: the sum of their series, by resource name."""
    found = _of_pods(answers, now)
    return {pod: {each: amount for each, (amount, _) in used.items()} for pod, used in found.items()}


def pod_readings(answers: Mapping[str, Sequence[Sample]], now: float) -> LoadReadings:
    """Cpu and memory only, for the load book; leaves out pods that lack one of them."""
    return _readings(_of_pods(answers, now), {})


def _of_pods(answers: Mapping[str, Sequence[Sample]], now: float) -> _Timed:
    found: _Timed = {}
    for resource, samples in answers.items():
        unsound = set()
        for sample in samples:
            pod = f"{sample.labels.get('namespace', '')}/{sample.labels.get('pod', '')}"
            if not _is_recent(sample, now) or not is_possible_amount(resource, sample.value * BILLION):
                unsound.add(pod)
                continue
            usage = found.setdefault(pod, {})
            amount, taken = usage.get(resource, (0, sample.taken))
            usage[resource] = amount + round(sample.value * BILLION), min(taken, sample.taken)
        for pod in unsound:
            found.pop(pod, None)
    return found


def _readings(found: _Timed, began: Mapping[str, float]) -> LoadReadings:
    """Averages over five minutes, or since the node or pod started."""
    readings = []
    for name, used in found.items():
        if MEASURED.keys() <= used.keys():
            (cpu, cpu_taken), (memory, memory_taken) = used["cpu"], used["memory"]
            taken = min(cpu_taken, memory_taken)
            window = min(max(taken - began.get(name, -math.inf), 0.0), WINDOW_S)
            readings.append(LoadReading(name, cpu, memory // BILLION, taken, window))
    return LoadReadings.of(readings)


def all_queries(queries: Mapping[str, NodeQuerySpec], pods: PodQueries) -> Iterable[tuple[str, str, str]]:
    """Every query: ``node`` or ``pod``, the resource name, the text."""
    yield from (("node", name, each.query) for name, each in sorted(queries.items()))
    for name, one in (("cpu", pods.cpu), ("memory", pods.memory)):
        if one is not None:
            yield "pod", name, one.query


def sound(readings: Iterable[UsageReading], now: float) -> list[UsageReading]:
    """Valid readings: amounts that a machine could use, not from the future."""
    return [each for each in readings if each.is_sound and each.taken <= now + AHEAD_S]
