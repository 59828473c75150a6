"""Scores of one template under one profile: what can be kept is, the rest is asked.

Kept, one raw score a node, are the answers of plugins that look no further than the node; and, where
they do not normalise or give every node the same, their weighted sum. Rows that changed are scored again
when somebody asks for totals. Owned by a :class:`plimsoll.engine.lane.Lane`, which says what changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from plimsoll.engine.profile import Profile
from plimsoll.engine.runtime import calling, checked, in_range
from plimsoll.engine.shared_columns import SharedColumns
from plimsoll.framework import (
    MAX_SCORE,
    MIN_SCORE,
    Cluster,
    CycleState,
    IntArray,
    NormalizingPlugin,
    PluginError,
    PodInfo,
    PreScorePlugin,
    Reads,
    RowArray,
    ScorePlugin,
    Snapshot,
)


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Scores of the feasible nodes, plugin by plugin.

    Attributes:
        rows: Shape (F,): the feasible nodes.
        plugins: The score plugins that took part, in order.
        weights: Their weights.
        raw: One (F,) array a plugin, as returned.
        normalized: The same within 0..100.
        totals: Shape (F,): the weighted sums.
    """

    rows: RowArray
    plugins: tuple[str, ...]
    weights: tuple[int, ...]
    raw: tuple[IntArray, ...]
    normalized: tuple[IntArray, ...]
    totals: IntArray


class KeptScores:
    """The scores of one lane.

    The cycle state that PreFilter and PreScore wrote is handed in with every question; ``part`` is a
    window on the rows that the lane has just renewed, if it has one.
    """

    def __init__(self, profile: Profile, cluster: Cluster, shared: SharedColumns) -> None:
        self._profile = profile
        self._cluster = cluster
        self._shared = shared
        self._raw: dict[str, IntArray] = {}
        self._extremes: dict[str, tuple[int, int]] = {}
        self._constant: dict[str, int] = {}
        self._summands: list[str] = []
        self._varying: list[ScorePlugin] = []
        self._totals: IntArray | None = None
        self._settled: bool | None = None
        self._far_pre_score: list[PreScorePlugin] = []
        self._far_score: list[ScorePlugin] = []
        self._stale_rows: RowArray | None = None

    def forget(self) -> None:
        """Nothing that is kept holds any more."""
        self._raw.clear()
        self._extremes.clear()
        self._totals = self._settled = self._stale_rows = None

    def note_stale(self, rows: RowArray) -> None:
        """These rows have changed; they are scored again when somebody asks."""
        self._stale_rows = rows if self._stale_rows is None else np.union1d(self._stale_rows, rows)

    def best(
        self, state: CycleState, pod: PodInfo, rows: RowArray, part: Snapshot | None = None
    ) -> tuple[RowArray, int]:
        """The rows with the highest total among ``rows`` (feasible ones), and that total."""
        totals = self.totals(state, pod, rows, part)
        highest = int(totals.max())
        return rows[totals == highest], highest

    def totals(
        self, state: CycleState, pod: PodInfo, rows: RowArray, part: Snapshot | None = None
    ) -> IntArray:
        """The weighted scores of ``rows`` (feasible ones), shape (F,)."""
        totals = self._kept_totals(state, pod, rows, part)
        return self.score(state, pod, rows, part).totals if totals is None else totals

    def score(
        self, state: CycleState, pod: PodInfo, rows: RowArray, part: Snapshot | None = None
    ) -> ScoreTable:
        """Score the feasible ``rows``, plugin by plugin.

        Raises:
            PluginError: A plugin raised, answered an error, or left 0..100.
        """
        self._refresh_raw(state, pod, part)
        snapshot = Snapshot(self._cluster)
        feasible = snapshot if len(rows) == len(snapshot) else snapshot.at(rows)
        unscored = self._pre_score(state, pod, feasible, self._profile.pre_score)
        names, weights, raws, normals = [], [], [], []
        totals = np.zeros(len(rows), dtype=np.int64)
        for plugin in self._profile.score:
            if plugin.name in unscored:
                continue
            if plugin.reads > Reads.ROW:
                with calling(plugin.name, "score"):
                    scores = plugin.score(state, pod, feasible)
                    raw = checked(scores, len(feasible), plugin.name, "score")
            else:
                raw = self._raw_of(state, plugin, pod, snapshot)[rows]
            normal = self._normalized(state, plugin, pod, raw)
            weight = self._profile.weights[plugin.name]
            totals += normal * weight
            names.append(plugin.name)
            weights.append(weight)
            raws.append(raw)
            normals.append(normal)
        return ScoreTable(rows, tuple(names), tuple(weights), tuple(raws), tuple(normals), totals)

    def _pre_score(
        self, state: CycleState, pod: PodInfo, feasible: Snapshot, plugins: Iterable[PreScorePlugin]
    ) -> frozenset[str]:
        """Run PreScore; the plugins that contribute nothing."""
        unscored = set()
        for plugin in plugins:
            with calling(plugin.name, "preScore"):
                status = plugin.pre_score(state, pod, feasible)
            if status.is_skip:
                unscored.add(plugin.name)
            elif not status.is_success:
                raise PluginError(plugin.name, "preScore", status.message or status.code.value)
        return frozenset(unscored)

    def _raw_of(self, state: CycleState, plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """The kept raw scores of a plugin that looks no further than the node, shape (N,)."""
        known = self._raw.get(plugin.name)
        if known is None:
            with calling(plugin.name, "score"):
                column = self._shared.signed(
                    plugin, "score", plugin.score, state=state, pod=pod, snapshot=snapshot
                )
                if column is not None:
                    self._raw[plugin.name] = column.values
                    self._extremes[plugin.name] = column.lowest, column.highest
                    return column.values
                scores = plugin.score(state, pod, snapshot)
                known = checked(scores, len(snapshot), plugin.name, "score").copy()
            self._raw[plugin.name] = known
        return known

    def _normalized(self, state: CycleState, plugin: ScorePlugin, pod: PodInfo, raw: IntArray) -> IntArray:
        if _normalizes(plugin):
            with calling(plugin.name, "score"):
                raw = plugin.normalize(state, pod, raw)
        return in_range(raw, plugin.name)

    # -- scoring from what is kept -------------------------------------------------------------------

    def _refresh_raw(self, state: CycleState, pod: PodInfo, part: Snapshot | None) -> None:
        """Renew the kept raw scores and totals in the rows that changed since the last scoring."""
        rows, self._stale_rows = self._stale_rows, None
        if rows is None or not len(rows):
            return
        if part is None or part.rows is not rows:
            part = Snapshot(self._cluster).at(rows)
        for plugin in self._profile.score:
            known = self._raw.get(plugin.name)
            if known is not None and plugin.reads is Reads.ROW:
                with calling(plugin.name, "score"):
                    known[rows] = checked(plugin.score(state, pod, part), len(rows), plugin.name, "score")
        if self._totals is not None:
            self._totals[rows] = self._summed(rows)

    def _kept_totals(
        self, state: CycleState, pod: PodInfo, rows: RowArray, part: Snapshot | None
    ) -> IntArray | None:
        """Totals of ``rows`` from what is kept, or None when some points cannot be added up beforehand.

        Kept are the sums of the plugins that look no further than the node and do not normalise, or give
        every node the same raw score. The others' normalised points are added for these rows.
        """
        self._refresh_raw(state, pod, part)
        if self._settled is None:
            self._settled = self._settle(state, pod, rows)
        if not self._settled or self._totals is None:
            return None
        whole = len(rows) == len(self._totals)
        totals = self._totals.copy() if whole else self._totals[rows]
        weights = self._profile.weights
        for plugin in self._varying:
            raw = self._raw[plugin.name]
            totals += self._normalized(state, plugin, pod, raw if whole else raw[rows]) * weights[plugin.name]
        if self._far_score:
            feasible = Snapshot(self._cluster) if whole else Snapshot(self._cluster).at(rows)
            unscored = self._pre_score(state, pod, feasible, self._far_pre_score)
            for plugin in self._far_score:
                if plugin.name not in unscored:
                    with calling(plugin.name, "score"):
                        scores = plugin.score(state, pod, feasible)
                        raw = checked(scores, len(feasible), plugin.name, "score")
                    totals += self._normalized(state, plugin, pod, raw) * weights[plugin.name]
        return totals

    def _settle(self, state: CycleState, pod: PodInfo, rows: RowArray) -> bool:
        """Compute what can be kept of the scores; whether totals can be."""
        profile = self._profile
        snapshot = Snapshot(self._cluster)
        near = [plugin for plugin in profile.pre_score if getattr(plugin, "reads", Reads.POD) <= Reads.ROW]
        self._far_pre_score = [plugin for plugin in profile.pre_score if plugin not in near]
        self._far_score = [plugin for plugin in profile.score if plugin.reads > Reads.ROW]
        unscored = self._pre_score(state, pod, snapshot.at(rows), near)
        self._constant.clear()
        self._summands = []
        self._varying = []
        for plugin in profile.score:
            if plugin.name in unscored or plugin.reads > Reads.ROW:
                continue
            raw = self._raw_of(state, plugin, pod, snapshot)
            lowest, highest = self._extremes.get(plugin.name) or (raw.min(), raw.max())
            if not _normalizes(plugin):
                if lowest < MIN_SCORE or highest > MAX_SCORE:
                    # Only a feasible node's points are an error; `score` looks at those alone.
                    return False
                self._summands.append(plugin.name)
            elif plugin.reads is Reads.NODE and lowest == highest:
                self._constant[plugin.name] = int(self._normalized(state, plugin, pod, raw[:1])[0])
            else:
                self._varying.append(plugin)
        self._totals = self._summed(slice(None))
        return True

    def _summed(self, rows: RowArray | slice) -> IntArray:
        """Weighted totals of ``rows`` from kept raw scores and constants."""
        weights = self._profile.weights
        constant = sum(weights[name] * points for name, points in self._constant.items())
        total: IntArray = np.full(
            len(self._cluster) if isinstance(rows, slice) else len(rows), constant, dtype=np.int64
        )
        for name in self._summands:
            total += self._raw[name][rows] * weights[name]
        return total


def _normalizes(plugin: ScorePlugin) -> TypeGuard[NormalizingPlugin]:
    """What isinstance() would say, without its look at every member: that costs more than scoring."""
    return hasattr(plugin, "normalize")
