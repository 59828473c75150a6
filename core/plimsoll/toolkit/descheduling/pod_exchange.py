"""PodExchange makes room on an under-used node for a large pod of an over-used one: small pods leave it.

Placement by load fills the nodes with little load first, until they have no room left by requests. What is
left free by requests is then on nodes with much load: large pods fit there only, and no single move relieves
them.

Formula, for each over-used node that is still above its target when its pods were proposed one by one::

    lack    = request of the large pod - free requests of the under-used node
    leaving = at most MOST pods of that node that request at least the lack together
    used[under-used node] - used[leaving] + used[large pod] <= cap - BAND percent

The leaving pods have no higher priority than the large one, and use less together. Of several under-used
nodes the one that the fewest pods leave is taken, then the one whose pods use least. All pods of an exchange
move or none; where the small pods go is left to the planner.

Units: requests as in the cluster's columns; usage in billionths, as in
:mod:`plimsoll.toolkit.descheduling.node_usage`.
Edges: a pod that fits without an exchange is left out, whatever else keeps it.
Source: our own.
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Bundle, Candidate, Candidates, Verdict
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost
from plimsoll.toolkit.descheduling.fewest_moves import BAND, FewestMoves
from plimsoll.toolkit.descheduling.node_usage import NodeUsage, UsageError
from plimsoll.toolkit.descheduling.node_utilization import NodeEviction

#: Maximum number of small pods of one exchange.
MOST = 3

#: Maximum number of large pods of one node that are looked at, and of exchanges proposed for it in one run.
LOOKED_AT, PROPOSED = 8, 3

#: Number of under-used nodes that are looked at, those with the most room.
COOLEST = 16

Amounts = Mapping[str, int]


class PodExchange(Struct, frozen=True):
    """Proposes exchanges for the over-used nodes that an eviction of single pods has left over-used.

    Attributes:
        eviction: That eviction, by a load book.
        fewest: The order in which it wants pods elsewhere.
    """

    eviction: NodeEviction
    fewest: FewestMoves

    def candidates(self, context: StrategyContext) -> Candidates:
        """Bundles, node by node, until each is below its target or nothing helps."""
        for source in self.eviction.sources:
            proposed = 0
            for pod in self._wanted(source, context):
                if not self.eviction.may_go_on(source) or proposed == PROPOSED:
                    break
                found = self._exchange(pod, source, context)
                if found is None:
                    continue
                proposed += 1
                used = self._use_of(pod, context) or {}
                if (yield found) is Verdict.ACCEPTED:
                    for name in source.used:
                        source.used[name] -= used.get(name, 0)

    def _wanted(self, source: NodeUsage, context: StrategyContext) -> list[PodInfo]:
        """The pods that should leave, in order; none of a node that the planner has closed."""
        if source.name in self.eviction.closed or not self.eviction.may_go_on(source):
            return []
        pods = [each for each in context.pods(source.name) if self._may_leave(each, context)]
        return self.fewest.sorted(source, pods, context)[:LOOKED_AT]

    def _exchange(self, pod: PodInfo, source: NodeUsage, context: StrategyContext) -> Bundle | None:
        """The moves that bring the pod to an under-used node, or None."""
        used = self._use_of(pod, context)
        if used is None:
            return None
        snapshot, rows = context.snapshot, context.cluster.rows
        request = snapshot.requests_row(pod.requests)
        best: tuple[int, float, str, list[PodInfo]] | None = None
        known = self.eviction.usage.some([each.name for each in self.eviction.destinations], context)
        for node in sorted(known, key=lambda each: (self._heat(each), each.name))[:COOLEST]:
            row = rows[node.name]
            lack = np.maximum(request - (snapshot.allocatable[row] - snapshot.requested[row]), 0)
            if not lack.any() or not context.prospects.is_target(node.name):
                continue
            leaving = self._leaving(pod, used, lack, node, context)
            if leaving is None:
                continue
            uses = [self._use_of(each, context) or {} for each in leaving]
            gain = {name: amount - sum(use.get(name, 0) for use in uses) for name, amount in used.items()}
            if not self._stays_cool(node, gain) or self._share(gain, node) <= 0:
                continue
            rank = len(leaving), -self._share(gain, node), node.name, leaving
            best = rank if best is None or rank[:3] < best[:3] else best
        if best is None:
            return None
        _, _, target, leaving = best
        why = f"makes room on node {target} for pod {pod.key}, because {self.eviction.reason(source)}"
        moves = [Candidate(each, target, why) for each in leaving]
        return Bundle((*moves, Candidate(pod, source.name, self.eviction.reason(source), target)))

    def _leaving(
        self, large: PodInfo, used: Amounts, lack: IntArray, node: NodeUsage, context: StrategyContext
    ) -> list[PodInfo] | None:
        """Pods of an under-used node that request what the large one lacks there, or None."""
        left = {}
        for each in context.pods(node.name):
            use = self._use_of(each, context) if each.priority <= large.priority else None
            if use is None or not self._may_leave(each, context):
                continue
            share = self._share(use, node)
            if share < self._share(used, node):
                left[each.uid] = each, share, context.snapshot.requests_row(each.requests)
        chosen: list[PodInfo] = []
        missing = lack
        while missing.any():
            if not left or len(chosen) == MOST:
                return None
            covering = {
                uid: float((np.minimum(amount, missing) / np.maximum(missing, 1)).sum())
                for uid, (_, _, amount) in left.items()
            }
            uid = min(left, key=lambda each: (-covering[each], left[each][1], eviction_cost(left[each][0])))
            pod, _, amount = left.pop(uid)
            chosen.append(pod)
            missing = np.maximum(missing - amount, 0)
        return chosen

    def _stays_cool(self, node: NodeUsage, gain: Amounts) -> bool:
        """Whether the under-used node stays below its cap, and the band, with a further amount."""
        return all(
            above + gain.get(name, 0) <= -BAND / 100 * node.capacity.get(name, 0)
            for name, above in self.fewest.excess(node).items()
        )

    def _heat(self, node: NodeUsage) -> float:
        return max((node.percent.get(name, 0.0) for name in self.fewest.excess(node)), default=0.0)

    def _share(self, amounts: Amounts, node: NodeUsage) -> float:
        """The largest share of the node in a resource that has a threshold."""
        return max(
            (
                amounts.get(name, 0) / node.capacity[name]
                for name in self.fewest.excess(node)
                if node.capacity.get(name)
            ),
            default=0.0,
        )

    def _may_leave(self, pod: PodInfo, context: StrategyContext) -> bool:
        return pod.namespace not in self.eviction.excluded and context.may_go(pod)

    def _use_of(self, pod: PodInfo, context: StrategyContext) -> Amounts | None:
        try:
            return self.eviction.usage.pod(pod, context)
        except UsageError:
            return None
