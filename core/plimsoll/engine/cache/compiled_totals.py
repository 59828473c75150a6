"""Keeps one template's totals that the kernel computes, and the best rows by them.

Changed rows are read from the cluster's log when totals are requested.

Axis letter: N nodes.
"""

from collections.abc import Callable, Mapping, Sequence

from plimsoll.engine.cache.filter_results import FilterResults
from plimsoll.engine.kernel.library import MOST_CHANGES, ColumnAddresses
from plimsoll.engine.kernel.points import CompiledPoints
from plimsoll.engine.plugin_calls import replaced
from plimsoll.framework import CycleState, IntArray, PodInfo, ScorePlugin, Snapshot
from plimsoll.framework.plugin_answers import named
from plimsoll.framework.resource_rules import AllocationRule, BalanceRule, RuledScore, UsageRule
from plimsoll.model.columns.columns import RowArray


class CompiledTotals:
    """Totals: the points of plugins that read a node's own pods, plus a base that only changes with a node.

    Args:
        plugins: Plugins that read a node's own pods, with their weights.
        points: Computes the sums.
        columns: The cluster's columns.
    """

    def __init__(
        self, plugins: Sequence[tuple[ScorePlugin, int]], points: CompiledPoints, columns: ColumnAddresses
    ) -> None:
        self._points = points
        self._cluster = columns.cluster
        self._calls = [(plugin.name, "score") for plugin, _ in plugins]
        self._stale_since: int | None = None  #: rows have changed since this tick
        self._best_since: int | None = None  #: the same since the best rows were found
        self._generation = -1  #: generation of the verdicts at that search; -1: search all rows

    def settle(self) -> IntArray:
        """Compute the totals of all rows, shape (N,); later renewals write in place."""
        replaced(self._calls, self._points.score_all)
        return self._points.totals

    def note_stale(self, tick: int) -> None:
        """Record that rows have changed since that tick."""
        if self._stale_since is None:
            self._stale_since = tick
        if self._best_since is None:
            self._best_since = tick

    def renew(self) -> bool:
        """Renew the totals of the changed rows; returns whether there were any."""
        tick, self._stale_since = self._stale_since, None
        if tick is None:
            return False
        span = self._cluster.span_since(tick, MOST_CHANGES)
        if span is None:
            replaced(self._calls, self._points.score_all)
        else:
            replaced(self._calls, self._points.score, span)
        return True

    def best(self, verdicts: FilterResults) -> tuple[RowArray, int]:
        """The best of all feasible rows, ascending, and their total; valid until the next renewal."""
        tick, self._best_since = self._best_since, None
        cluster = self._cluster
        if verdicts.generation == self._generation:
            span = cluster.span_since(cluster.tick if tick is None else tick, MOST_CHANGES)
            if span is not None:
                return self._points.best_again(span, verdicts.failed)
        self._generation = verdicts.generation
        return self._points.best_of_all(verdicts.failed)


def compiled_totals(
    plugins: Sequence[tuple[ScorePlugin, int]],
    ruled: Mapping[str, RuledScore],
    columns: ColumnAddresses,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
) -> Callable[[int | IntArray], CompiledTotals] | None:
    """Create the totals if the rest of the sum is constant; None where numpy computes.

    Raises:
        PluginError: A plugin raised.
    """
    if columns.kernel is None or not plugins:
        return None
    allocation: tuple[AllocationRule, int] | None = None
    balance: tuple[BalanceRule, int] | None = None
    usage: tuple[UsageRule, int] | None = None
    for plugin, weight in plugins:
        states = ruled.get(plugin.name)
        if states is None:
            return None
        try:
            rule = states.score_rule(state, pod, snapshot)
        except BaseException as exc:
            raise named(plugin.name, "score", exc) from exc
        if isinstance(rule, AllocationRule) and allocation is None:
            allocation = rule, weight
        elif isinstance(rule, BalanceRule) and balance is None:
            balance = rule, weight
        elif isinstance(rule, UsageRule) and usage is None:
            usage = rule, weight
        else:
            return None

    def finished(base: int | IntArray) -> CompiledTotals:
        points = CompiledPoints(columns, base, len(snapshot), allocation, balance, usage)
        return CompiledTotals(plugins, points, columns)

    return finished
