"""Caches scores of one pod template that depend on one node only, and recomputes the rest.

One raw score per node is kept of each plugin that reads only the node and its pods. If such plugins do not
normalize, or score all nodes equally, their weighted sum is kept too. Changed rows are scored again when
totals are next requested. The owner, a :class:`~plimsoll.engine.cache.template.TemplateCache`, passes the
changes.

Edges: without score plugins and extenders every node's total is 1, and PreScore does not run.
Source: kube-scheduler v1.36, ``pkg/scheduler/schedule_one.go`` (``prioritizeNodes``).
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from plimsoll.engine.cache.best_by_class import BestByClass
from plimsoll.engine.cache.best_rows import BestRows
from plimsoll.engine.cache.changes import ClusterChanges
from plimsoll.engine.cache.compiled_totals import CompiledTotals, compiled_totals
from plimsoll.engine.cache.filter_results import FilterResults
from plimsoll.engine.cache.node_columns import NodeColumns
from plimsoll.engine.plugin_calls import asked, called, in_range
from plimsoll.engine.profile import Profile
from plimsoll.framework import (
    MAX_SCORE,
    CycleState,
    IntArray,
    PluginError,
    PodInfo,
    PreScorePlugin,
    ScorePlugin,
    Snapshot,
)
from plimsoll.framework.plugin_answers import checked, of_kind
from plimsoll.framework.status import SKIP, SUCCESS, Status
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PositionArray, RowArray

#: Every node's total in a profile with neither score plugins nor extenders.
UNSCORED = 1


class ScoreTable(Struct, frozen=True):
    """Scores of the feasible nodes, plugin by plugin.

    Attributes:
        rows: Shape (F,): the feasible nodes.
        plugins: The score plugins that took part, in order.
        raw: One (F,) array per plugin, as returned.
        normalized: The same after normalization, within 0..100.
        totals: Shape (F,): the weighted sums.
    """

    rows: RowArray
    plugins: tuple[str, ...]
    weights: tuple[int, ...]
    raw: tuple[IntArray, ...]
    normalized: tuple[IntArray, ...]
    totals: IntArray


class TemplateScores:
    """The scores of one template; each method receives the cycle state that PreFilter and PreScore wrote."""

    def __init__(self, profile: Profile, cluster: Cluster, shared: NodeColumns) -> None:
        self._profile = profile
        self._stages = profile.stages
        self._normalizing = profile.capabilities.normalizing
        self._ruled = profile.capabilities.ruled_scores
        self._versioned = frozenset(plugin.name for plugin in profile.stages.versioned_global)
        self._scores = bool(profile.score or profile.extenders)
        self._cluster = cluster
        self._shared = shared
        self._raw: dict[str, IntArray] = {}
        self._same: dict[str, int] = {}
        self._base: int | IntArray = 0
        self._summands: set[str] = set()
        self._varying: list[tuple[ScorePlugin, int]] = []
        self._totals: IntArray | None = None
        self._settled: bool | None = None
        self._stale_since: int | None = None  #: rows have changed since this tick
        self._latest: ClusterChanges | None = None
        self._unscored: frozenset[str] = frozenset()
        self._best = BestRows()
        self._by_class = BestByClass(shared.addresses)
        self._compiled: CompiledTotals | None = None

    def forget(self) -> None:
        """Drop everything that is kept."""
        self._raw.clear()
        self._same.clear()
        self._base = 0  # otherwise it has the former number of nodes
        self._totals = self._settled = self._stale_since = None
        self._best.forget()
        self._by_class.forget()
        self._compiled = None

    def note(self, changes: ClusterChanges, holding: frozenset[str]) -> None:
        """Record changes, to be scored when totals are requested; ``holding`` as of TemplateVersions."""
        if self._unscored:
            self._unscored &= holding
        if changes.in_nodes:
            self.forget()
        elif self._compiled is not None:
            self._compiled.note_stale(changes.since)
        else:
            self._latest = changes
            if self._stale_since is None:
                self._stale_since = changes.since

    def best(
        self,
        state: CycleState,
        pod: PodInfo,
        rows: RowArray,
        verdicts: FilterResults | None = None,
    ) -> tuple[Sequence[int] | RowArray, int]:
        """The rows with the highest total among ``rows`` (feasible ones), and that total.

        ``verdicts`` are given if ``rows`` are all the feasible ones.
        """
        self._prepare(state, pod, rows)
        if verdicts is not None and self._settled and not self._varying and self._totals is not None:
            if self._are_kept():
                compiled = self._compiled
                return (
                    self._best.among(verdicts, self._totals) if compiled is None else compiled.best(verdicts)
                )
            found = self._best_by_class(state, pod, verdicts.failed, self._totals)
            if found is not None:
                return found
        totals = self._summed(state, pod, rows)
        if totals is None:
            totals = self.score(state, pod, rows).totals
        highest = totals[totals.argmax()]
        ties = (totals == highest).nonzero()[0]
        return ties if len(rows) == len(self._cluster) else rows[ties], int(highest)

    def _best_by_class(
        self, state: CycleState, pod: PodInfo, failed: PositionArray, totals: IntArray
    ) -> tuple[Sequence[int], int] | None:
        """The same, if all plugins that give points besides the kept sums do so by class of nodes."""
        known, stages = self._unscored, self._stages
        classed = self._profile.capabilities.classed
        others = {plugin.name: weight for plugin, weight in stages.global_score if plugin.name not in known}
        waiting = {plugin.name for plugin in stages.global_pre_score if plugin.name not in known}
        if not classed.keys() >= others.keys() >= waiting:
            return None
        parts = [(name, classed[name], weight) for name, weight in others.items()]
        return self._by_class.best(parts, state, pod, failed, totals)

    @property
    def are_by_node(self) -> bool:
        """Whether each node's latest total depends on that node alone."""
        return not self._scores or self._are_kept()

    @property
    def are_local(self) -> bool:
        """Whether the plugins that read more than a node and its pods are known to give no points."""
        return not self._scores or self._stages.global_score_names <= self._unscored

    def _are_kept(self) -> bool:
        """Whether the kept sums are the totals."""
        is_all = self._settled and not self._varying
        return bool(is_all) and self._stages.global_score_names <= self._unscored

    def totals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> IntArray:
        """The weighted scores of ``rows`` (feasible ones), shape (F,)."""
        self._prepare(state, pod, rows)
        totals = self._summed(state, pod, rows)
        if totals is None:
            return self.score(state, pod, rows).totals
        return totals.copy() if totals is self._totals else totals

    def score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> ScoreTable:
        """Score the feasible ``rows``, plugin by plugin."""
        if not self._scores:
            return ScoreTable(rows, (), (), (), (), _unscored(rows))
        self._renew(state, pod)
        snapshot = Snapshot(self._cluster)
        feasible = snapshot if len(rows) == len(snapshot) else snapshot.at(rows)
        unscored = self._pre_score(state, pod, feasible, self._profile.pre_score)
        names, weights, raws, normals = [], [], [], []
        totals = np.zeros(len(rows), dtype=np.int64)
        for plugin in self._profile.score:
            if plugin.name in unscored:
                continue
            if plugin.name in self._stages.global_score_names:
                raw = asked(plugin, state, pod, feasible)
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
    ) -> list[str]:
        """Run PreScore; returns the plugins that skip."""
        unscored = []
        for plugin in plugins:
            status = called(plugin.name, "preScore", plugin.pre_score, state, pod, feasible)
            if status is SUCCESS:
                continue
            if status is SKIP or of_kind(status, Status, plugin.name, "preScore").is_skip:
                unscored.append(plugin.name)
            elif not status.is_success:
                raise PluginError(plugin.name, "preScore", status.message or status.code.value)
        return unscored

    def _raw_of(self, state: CycleState, plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """The kept raw scores of a plugin that reads only the node and its pods, shape (N,)."""
        known = self._raw.get(plugin.name)
        if known is None:
            column = self._shared.signed(
                plugin, "score", plugin.score, state=state, pod=pod, snapshot=snapshot
            )
            if column is None:
                known = asked(plugin, state, pod, snapshot).copy()
            else:
                known = column.values
                if column.lowest == column.highest:
                    if column.points is None:
                        column.points = int(self._normalized(state, plugin, pod, known[:1])[0])
                    self._same[plugin.name] = column.points
            self._raw[plugin.name] = known
        return known

    def _normalized(self, state: CycleState, plugin: ScorePlugin, pod: PodInfo, raw: IntArray) -> IntArray:
        normalizing = self._normalizing.get(plugin.name)
        if normalizing is not None:
            points = called(plugin.name, "score", normalizing.normalize, state, pod, raw)
            raw = checked(points, len(raw), plugin.name, "score")
        return in_range(raw, plugin.name)

    def _renew(self, state: CycleState, pod: PodInfo) -> None:
        """Renew the kept raw scores and totals in the rows that changed since the last scoring."""
        if self._compiled is not None:
            self._renew_compiled(self._compiled)
            return
        tick, self._stale_since = self._stale_since, None
        if tick is None or self._latest is None:
            return
        if tick == self._latest.since:
            part = self._latest.rows
        elif (changed := self._cluster.changed_since(tick)) is None:
            self.forget()
            return
        else:
            part = Snapshot(self._cluster, changed)
        rows = part.rows
        if not len(rows):
            return
        base = self._base
        totals = base if isinstance(base, int) else base[rows]
        raw = self._raw
        for plugin, weight in self._stages.row_score:
            if plugin.name not in raw:
                continue
            scores = raw[plugin.name][rows] = asked(plugin, state, pod, part)
            if plugin.name in self._summands:
                totals = totals + (scores if weight == 1 else scores * weight)
                if not _lie_in_range(scores):
                    self._settled = False
        if self._totals is not None:
            self._totals[rows] = totals
            self._best.note_changed(rows)

    def _renew_compiled(self, compiled: CompiledTotals) -> None:
        if self._cluster.is_large:
            self.forget()  # then settle again, in exact integers
        elif compiled.renew() and self._raw:
            for plugin, _ in self._stages.row_score:
                self._raw.pop(plugin.name, None)

    def _prepare(self, state: CycleState, pod: PodInfo, rows: RowArray) -> None:
        """Renew the kept sums, or compute them."""
        if self._scores:
            self._renew(state, pod)
            if self._settled is None:
                self._settled = self._settle(state, pod, rows)

    def _summed(self, state: CycleState, pod: PodInfo, rows: RowArray) -> IntArray | None:
        """Totals of ``rows`` from kept sums, or None if some points cannot be summed in advance.

        Sums are kept of plugins that read only the node and its pods and do not normalize, or that score
        every node equally. The other plugins' normalized points are added for these rows. The result may be
        the kept array: do not change it.
        """
        if not self._scores:
            return _unscored(rows)
        if not self._settled or self._totals is None:
            return None
        whole = len(rows) == len(self._totals)
        totals = self._totals if whole else self._totals[rows]
        for plugin, weight in self._varying:
            raw = self._raw[plugin.name]
            points = self._normalized(state, plugin, pod, raw if whole else raw[rows])
            totals = totals + points * weight
        known = self._unscored
        others = [each for each in self._stages.global_score if each[0].name not in known]
        if others:
            feasible = Snapshot(self._cluster) if whole else Snapshot(self._cluster).at(rows)
            waiting = [plugin for plugin in self._stages.global_pre_score if plugin.name not in known]
            unscored = self._pre_score(state, pod, feasible, waiting)
            self._unscored = known.union(self._versioned.intersection(unscored))
            for plugin, weight in others:
                if plugin.name not in unscored:
                    raw = asked(plugin, state, pod, feasible)
                    totals = totals + self._normalized(state, plugin, pod, raw) * weight
        return totals

    def _settle(self, state: CycleState, pod: PodInfo, rows: RowArray) -> bool:
        """Compute the kept parts of the scores; returns whether totals can be kept."""
        snapshot = Snapshot(self._cluster)
        feasible = snapshot if len(rows) == len(snapshot) else snapshot.at(rows)
        unscored = self._pre_score(state, pod, feasible, self._stages.local_pre_score)
        self._base = 0
        self._summands.clear()
        self._varying = []
        totals: int | IntArray = 0
        compiled = None
        if not snapshot.is_large:
            plugins = [each for each in self._stages.row_score if each[0].name not in unscored]
            compiled = compiled_totals(plugins, self._ruled, self._shared.addresses, state, pod, snapshot)
        for plugin, weight in self._stages.local_score:
            if plugin.name in unscored:
                continue
            if compiled is not None and plugin.name not in self._stages.node_score_names:
                continue
            raw = self._raw_of(state, plugin, pod, snapshot)
            if plugin.name in self._same:
                self._base = self._base + self._same[plugin.name] * weight
            elif plugin.name in self._normalizing:
                self._varying.append((plugin, weight))
            elif not _lie_in_range(raw):
                # Only a feasible node's points can be an error; `score` checks those alone.
                return False
            elif plugin.name not in self._stages.node_score_names:
                self._summands.add(plugin.name)
                totals = totals + (raw if weight == 1 else raw * weight)
            else:
                self._base = self._base + raw * weight
        if compiled is not None:
            self._compiled = compiled(self._base)
            self._totals = self._compiled.settle()
            return True
        totals = totals + self._base
        self._totals = np.full(len(snapshot), totals) if isinstance(totals, int) else totals
        return True


def _unscored(rows: RowArray) -> IntArray:
    return np.full(len(rows), UNSCORED, dtype=np.int64)


def _lie_in_range(points: IntArray) -> bool:
    # One comparison instead of two, as the least score is 0: as unsigned, negative numbers are the largest.
    unsigned = points.view(np.uint64)
    return not len(points) or unsigned.item(unsigned.argmax()) <= MAX_SCORE
