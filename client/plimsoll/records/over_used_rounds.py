"""Counts the runs in a row in which strategies found a node over-used.

For strategies that move pods by load, a run counts only if the node was read since the last counted run: the
same reading is no further evidence.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from plimsoll.framework.descheduling.measurements import NodeClasses
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.load.load_book import LoadBook
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.load.load_lines import moving_by_load


class OverUsedRounds(Struct):
    """Counts the rounds of one policy."""

    #: by strategy and node: rounds, and the time of the latest reading that counted
    _known: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    def before(self, strategies: Iterable[Strategy], cluster: Cluster) -> Mapping[tuple[str, str], int]:
        """The rounds before a run on this cluster, less one for nodes without a new reading."""
        moving = moving_by_load(strategies).keys()
        return {
            (strategy, node): rounds
            if strategy not in moving or _read_at(cluster, node) != read_at
            else rounds - 1
            for (strategy, node), (rounds, read_at) in self._known.items()
        }

    def learn(
        self, classes: Iterable[tuple[str, NodeClasses]], strategies: Iterable[Strategy], cluster: Cluster
    ) -> None:
        """Record that a run on this cluster found these nodes over-used."""
        before = self.before(strategies, cluster)
        self._known = {
            (strategy, node): (before.get((strategy, node), 0) + 1, _read_at(cluster, node))
            for strategy, found in classes
            for node in found.overutilized
        }


def _read_at(cluster: Cluster, node: str) -> float:
    """The time of a node's latest reading; NaN without one."""
    row = cluster.rows.get(node)
    if row is None or not cluster.has_index(LoadBook):
        return float("nan")
    return float(cluster.index(LoadBook).read_at[row])
