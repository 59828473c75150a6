"""MeasuredUsage reads the usage of nodes from the load book, or else from readings of a source.

Units, edges and source: see :mod:`plimsoll.toolkit.descheduling.node_usage`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.load.load_book import LoadBook
from plimsoll.load.states import LoadState
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.descheduling.fewest_moves import BAND
from plimsoll.toolkit.descheduling.node_usage import (
    BASIC,
    BILLION,
    NodeUsage,
    UsageError,
    because,
    capacity_of,
    tell_left_out,
)
from plimsoll.toolkit.descheduling.starting_nodes import started_nodes_told

#: Percent of a node's capacity beyond which moves make no room, whatever the thresholds are.
FULL = 95.0

#: The resources that are measured on nodes and pods.
MEASURED = frozenset({"cpu", "memory"})

Amounts = Mapping[str, Mapping[str, int]]


class Source(Struct, frozen=True):
    """The origin of readings, for messages and for the time before there is a load book.

    Attributes:
        name: The name with its article, in the singular.
        nodes: Amounts by node and resource, in billionths; None without a response.
        pods: Amounts by ``namespace/name`` and resource, in billionths; None without a response.
    """

    name: str
    nodes: Callable[[Measurements], Amounts | None]
    pods: Callable[[Measurements], Amounts | None]


METRICS_API = Source("the metrics API", lambda known: known.nodes, lambda known: known.pods)

#: The policy's queries, if they measure both resources on nodes and on pods.
BY_QUERIES = Source("Prometheus", lambda known: known.queried, lambda known: known.queried_pods)


def no_room(nodes: Sequence[NodeUsage], high: Mapping[str, float]) -> str:
    """Why moves cannot help, because the nodes together use too much; "" when they may help.

    Formula, for each resource with an upper threshold, sums over the nodes that have it::

        sum(used) > (min(high, FULL) - BAND) / 100 * sum(capacity)
    """
    for name, line in high.items():
        known = [each for each in nodes if each.capacity.get(name, 0) > 0]
        room, most = sum(each.capacity[name] for each in known), min(line, FULL) - BAND
        percent = 100.0 * sum(each.used[name] for each in known) / max(room, 1)
        if percent > most:
            return (
                f"Saturated: no room; all nodes together use {percent:.1f}% of their {name}, and moves help"
                f" up to {most:.1f}%; add nodes"
            )
    return ""


class MeasuredUsage:
    """Measured usage of cpu and memory; the resource ``pods`` is counted.

    If there is a load book, the Proven and Optimal planners use it: the usage of nodes with their current
    pods.
    """

    def __init__(self, resources: Iterable[str], source: Source = METRICS_API) -> None:
        self._source = source
        self.resources = tuple(dict.fromkeys((*resources, *BASIC)))
        unknown = sorted(set(self.resources) - set(BASIC))
        self._unknown = ", ".join(unknown)

    def nodes(self, context: StrategyContext) -> list[NodeUsage]:
        """The measured usage of the nodes under consideration."""
        if self._unknown:
            raise UsageError(
                f"{self._source.name} measures {', '.join(BASIC)} only;"
                f" remove {self._unknown} from the thresholds"
            )
        names = started_nodes_told(context)
        found = self.some(names, context)
        if not found and names:
            raise UsageError(because(f"{self._source.name} has a recent measurement of no node", context))
        tell_left_out(f"{self._source.name} has no recent measurement", found, names, context)
        return found

    def some(self, names: Iterable[str], context: StrategyContext) -> list[NodeUsage]:
        """The measured usage of the named nodes."""
        if context.load_book is not None:
            return self._by_book(context.load_book, names, context)
        measured = self._source.nodes(context.measurements)
        if measured is None:
            raise UsageError(because(f"there are no measurements of {self._source.name}", context))
        found = []
        for name in names:
            sample = measured.get(name)
            if sample is None or not sample.keys() >= MEASURED:
                if context.is_exact:
                    raise UsageError(f"{self._source.name} has no measurement of node {name}")
                continue
            node = context.node(name)
            pods = len(context.pods(name)) * BILLION
            used = {"cpu": sample["cpu"], "memory": sample["memory"], "pods": pods}
            used = {name: used[name] for name in self.resources}
            found.append(NodeUsage(node, used, capacity_of(node, self.resources)))
        return found

    def _by_book(self, book: LoadBook, names: Iterable[str], context: StrategyContext) -> list[NodeUsage]:
        found = []
        for name in names:
            row = context.cluster.rows[name]
            if book.state(row) < LoadState.ESTIMATED:
                continue
            cpu, memory = book.load_on(row)
            used = {"cpu": cpu, "memory": memory * BILLION, "pods": len(context.pods(name)) * BILLION}
            used = {name: used[name] for name in self.resources}
            found.append(NodeUsage(context.node(name), used, capacity_of(context.node(name), self.resources)))
        return found

    def pod(self, pod: PodInfo, context: StrategyContext) -> Mapping[str, int] | None:
        """The measured usage of a pod."""
        if context.load_book is not None:
            share = context.load_book.share(pod.uid)
            if share is None or not share.is_measured:
                raise UsageError(f"there is no recent measurement of pod {pod.key}")
            return {"cpu": share.cpu, "memory": share.memory * BILLION, "pods": BILLION}
        sample = (self._source.pods(context.measurements) or {}).get(pod.key)
        if sample is None or not sample.keys() >= MEASURED:
            raise UsageError(f"{self._source.name} has no measurement of pod {pod.key}")
        return {**sample, "pods": BILLION}
