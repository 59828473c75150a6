"""Computes the utilisation of nodes before and after the moves of a plan.

Formula, per node and resource with an allocatable amount above 0::

    percent = 100 * used / allocatable

Used are the requests of the placed pods and, if the policy has it measured, also the actual usage, which
moves with the pods. The spread over all nodes is :mod:`plimsoll.planning.imbalance`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.inspection.plans.answer import NodeChange, SpreadChange, UsageChange
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.planning.aftermath import aftermath
from plimsoll.planning.imbalance import BILLIONTHS, COLUMNS, UsageKind, imbalance
from plimsoll.planning.moves import Move, PlanningContext, RebalancingConfig

#: Decimal places of figures.
PLACES = 1


class UtilisationChange:
    """The utilisation of a cluster before and after some moves.

    Args:
        cluster: The cluster before the moves.
        context: The planning context of its placed pods.
        moves: All moves, which are assumed to succeed.
    """

    def __init__(self, cluster: Cluster, context: PlanningContext, moves: Iterable[Move]) -> None:
        self._moves = tuple(moves)
        self._before = (cluster, context.measurements)
        after, around = aftermath(cluster, context, self._moves)
        self._after = (after, around.measurements)

    def nodes(self) -> Iterator[NodeChange]:
        """The nodes that pods leave or enter, sorted by name."""
        leave = Counter(move.source for move in self._moves if move.source in self._before[0].rows)
        arrive = Counter(move.target for move in self._moves if move.target)
        for name in sorted({*leave, *arrive}):
            before, after = (dict(_shares(name, *each)) for each in (self._before, self._after))
            yield NodeChange(
                node=name,
                leave=leave[name],
                arrive=arrive[name],
                changes=tuple(
                    UsageChange(
                        resource=resource,
                        usage=usage,
                        before_percent=round(share, PLACES),
                        after_percent=round(after[resource, usage], PLACES),
                    )
                    for (resource, usage), share in before.items()
                    if (resource, usage) in after
                ),
            )

    def spread(self, rebalancing: RebalancingConfig) -> Iterator[SpreadChange]:
        """The imbalance of the policy's nodes."""
        (cluster, known), (changed, shifted) = self._before, self._after
        before = imbalance(cluster, rebalancing.nodes, known)
        after = imbalance(changed, rebalancing.nodes, shifted)
        for (resource, usage), points in before.items():
            yield SpreadChange(
                resource=resource,
                usage=usage,
                before=round(points, PLACES),
                after=round(after[resource, usage], PLACES),
            )


def _shares(
    node: str, cluster: Cluster, measurements: Measurements
) -> Iterator[tuple[tuple[str, str], float]]:
    """Percent used of a node, by resource and kind of usage."""
    row, columns = cluster.rows[node], Snapshot(cluster)
    for resource, column in COLUMNS.items():
        room = int(columns.allocatable[row, column])
        if room:
            yield (resource, UsageKind.REQUESTS), 100.0 * int(columns.requested[row, column]) / room
    for resource, amount in ((measurements.nodes or {}).get(node) or {}).items():
        if resource in BILLIONTHS:
            room = int(columns.allocatable[row, COLUMNS[resource]])
            if room:
                yield (resource, UsageKind.ACTUAL), 100.0 * amount / BILLIONTHS[resource] / room
