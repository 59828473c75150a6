"""Judges thresholds as arguments, and chooses the pods that leave, for Low- and HighNodeUtilization.

Which nodes are over- or under-used is decided in the strategies themselves.

Formula, for each candidate of a source node::

    room[r] = sum over destinations of cap[r] - used[r]

Pods are evicted while ``may_go_on`` holds for the source and ``room`` is positive for every resource. After
each accepted pod its usage is subtracted from the source and from the room.

Edges: the room of all destinations is one pool, checked after each eviction, so it may end below 0.
Source: descheduler v0.36, ``pkg/framework/plugins/nodeutilization``.
Differs: among equal pods of a node the Proven planner takes the cheapest first (deletion cost, not serving,
restarts, age), upstream any. Upstream requires as many tolerations as a destination has taints, the Proven
planner does not. With a load book, few large pods leave instead of many small ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field
from pydantic import Field, StrictFloat, StrictInt, StrictStr

from plimsoll.framework.args import PluginArgs
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, Destinations, Verdict
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.taints import tolerates
from plimsoll.toolkit.descheduling.eviction_order import least_important_first
from plimsoll.toolkit.descheduling.fewest_moves import FewestMoves
from plimsoll.toolkit.descheduling.node_usage import NodeUsage, UsageError, UsageSource

#: An amount of room, in billionths, that pods cannot fill.
ENDLESS = 2**200

Percentages = dict[StrictStr, StrictInt | StrictFloat]
"""Percent of a node's room by resource name."""


class EvictableNamespacesArg(PluginArgs):
    """Namespaces whose pods stay; they count as used nevertheless."""

    include: tuple[StrictStr, ...] = Field(default=(), description="Not supported; must be empty.")
    exclude: tuple[StrictStr, ...] = Field(default=(), description="Namespaces whose pods stay.")


def check_evictable_namespaces(namespaces: EvictableNamespacesArg | None) -> None:
    """Reject an include list.

    Raises:
        ValueError: There is an include list.
    """
    if namespaces is not None and namespaces.include:
        raise ValueError("only Exclude namespaces can be set, inclusion is not supported")


def check_thresholds(thresholds: Mapping[str, float]) -> None:
    """Reject an empty map, and values that are not percentages.

    Raises:
        ValueError: In upstream's words.
    """
    if not thresholds:
        raise ValueError("no resource threshold is configured")
    for name, percent in thresholds.items():
        if not 0 <= percent <= 100:
            raise ValueError(f"{name} threshold not in [0, 100] range")


def why_idle(under: Sequence[NodeUsage], nodes: Sequence[NodeUsage], number_of_nodes: int) -> str:
    """Why nothing happens with these under-used nodes, in upstream's words; "" when something may happen."""
    if not under:
        return "no node is underutilized, nothing to do here, you might tune your thresholds further"
    if len(under) <= number_of_nodes:
        return (
            f"number of nodes underutilized ({len(under)}) is less or equal than numberOfNodes"
            f" ({number_of_nodes}), nothing to do here"
        )
    if len(under) == len(nodes):
        return "all nodes are underutilized, nothing to do here"
    return ""


class NodeEviction(Struct, frozen=True):
    """How pods are evicted from the source nodes, in order, and where they may go.

    Attributes:
        room: Total room of all destinations.
        may_go_on: Whether to evict further pods from a source, apart from the room.
        removable: Whether a pod of a source is worth evicting.
        targets: The preferred targets, for planners that choose them.
        excluded: Namespaces whose pods are not evicted.
        node_limit: Maximum number of pods to evict from one node.
        fewest: An alternative order of pods, in which few of them leave; None for the usual order.
        closed: Names of sources that the planner has closed for this run, collected here.
    """

    usage: UsageSource
    sources: Sequence[NodeUsage]
    destinations: Sequence[NodeUsage]
    room: dict[str, int]
    may_go_on: Callable[[NodeUsage], bool]
    removable: Callable[[PodInfo], bool]
    reason: Callable[[NodeUsage], str]
    targets: Destinations
    excluded: Iterable[str] = ()
    node_limit: int | None = None
    fewest: FewestMoves | None = None
    closed: set[str] = field(default_factory=set)

    def candidates(self, context: StrategyContext) -> Candidates:  # noqa: C901, PLR0912 - upstream's balancing loop in one piece
        """Yield the pods of the sources, the least important first, until neither need nor room is left."""
        for source in self.sources:
            node, reason = source.name, self.reason(source)
            pods = [
                pod for pod in context.pods(node) if self.removable(pod) and context.is_evictable(pod, reason)
            ]
            if not self._go_on(source):
                continue
            taken = 0
            for pod in self._order(source, pods, reason, context):
                if self.node_limit is not None and taken >= self.node_limit:
                    break
                if not self._has_destination(pod, context):
                    continue
                if pod.namespace in self.excluded or not context.is_movable(pod, reason):
                    continue
                try:
                    used = self.usage.pod(pod, context)
                except UsageError:
                    continue
                verdict = yield Candidate(pod, node, reason, destinations=self.targets)
                if verdict is Verdict.NODE_CLOSED:
                    self.closed.add(node)
                    break
                if verdict is Verdict.REFUSED:
                    continue
                taken += 1
                if used is None:
                    # The pod's usage is unknown: evict one per node, or as many as the limit allows.
                    if self.node_limit is None:
                        break
                    continue
                for name in self.room:
                    amount = used.get(name, 0)
                    source.used[name] -= amount
                    self.room[name] -= amount
                if not self._go_on(source):
                    break

    def surplus(self, context: StrategyContext) -> Candidates:
        """Yield the candidates as if the destinations had room for all."""
        self.room.update(dict.fromkeys(self.room, ENDLESS))
        yield from self.candidates(context)

    def _order(
        self, source: NodeUsage, pods: list[PodInfo], reason: str, context: StrategyContext
    ) -> Iterable[PodInfo]:
        if self.fewest is None:
            return least_important_first(pods, context)
        return self.fewest.order(source, pods, reason, context)

    def _go_on(self, source: NodeUsage) -> bool:
        return all(left > 0 for left in self.room.values()) and self.may_go_on(source)

    def _has_destination(self, pod: PodInfo, context: StrategyContext) -> bool:
        if not context.is_exact:
            return True
        return any(_admits(each.node, pod) for each in self.destinations)


def _admits(node: Node, pod: PodInfo) -> bool:
    tolerations = pod.pod.spec.tolerations
    return len(tolerations) >= len(node.spec.taints) and all(
        any(tolerates(toleration, taint, numeric=True) for toleration in tolerations)
        for taint in node.spec.taints
    )
