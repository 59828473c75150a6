"""Caches filter results and scores of one pod template under one profile.

Pods of one template need the same evaluation again and again, and only a handful of nodes change from one
attempt to the next. A cache therefore keeps, for each filter plugin, one code per node
(:mod:`plimsoll.engine.cache.filter_results`) and, for each score plugin that reads nothing but the node, one
raw score per node (:mod:`plimsoll.engine.cache.scores`); ``refresh`` evaluates the changed rows only. Plugins
that read the whole cluster are evaluated on all nodes after any change (their own counters make that cheap);
see :class:`plimsoll.framework.Reads` and docs/adr/0003.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from plimsoll.engine.cache.filter_results import EXCLUDED, FEASIBLE, FilterResults
from plimsoll.engine.cache.marks import Marks
from plimsoll.engine.cache.node_columns import NodeColumns
from plimsoll.engine.cache.scores import ScoreTable, TemplateScores
from plimsoll.engine.kernel.library import MOST_CHANGES
from plimsoll.engine.plugin_calls import answered, called
from plimsoll.engine.plugin_reach import StandingVerdicts
from plimsoll.engine.profile import Profile
from plimsoll.engine.row_statuses import RowStatuses
from plimsoll.framework import (
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    Diagnosis,
    FilterPlugin,
    IntArray,
    PluginError,
    PodInfo,
    PreFilterResult,
    Snapshot,
    Status,
    unresolvable,
)
from plimsoll.framework.capabilities import Dated, Edition
from plimsoll.framework.descheduling.plugin_answers import named, pre_filter_answer
from plimsoll.framework.status import count_reasons
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PositionArray, RowArray, told_apart


class TemplateCache:
    """Caches one template's results under one profile on one cluster; its methods raise PluginError.

    Attributes:
        failed: Shape (N,): position of the first filter plugin that rejected the node, FEASIBLE or EXCLUDED.
        feasible: Rows of the feasible nodes, ascending.
        filters: Results by filter plugin, from the latest refresh.
        state: The cycle state of the latest refresh; valid for the template's pods.
        rejected: The status by which PreFilter rejected the pod for all nodes; success if it did not.
        absent: The status of EXCLUDED nodes.
        narrowing: PreFilter plugins that restricted the nodes.
        skipped: Plugins whose PreFilter returned SKIP.
    """

    def __init__(self, profile: Profile, cluster: Cluster, shared: NodeColumns | None = None) -> None:
        self.profile = profile
        self.cluster = cluster
        shared = shared or NodeColumns(cluster, profile)
        self._stages = profile.stages
        self._frames = shared.frames
        self.filters = FilterResults(profile, cluster, shared)
        self._scores = TemplateScores(profile, cluster, shared)
        self.failed: PositionArray = self.filters.failed
        self.feasible: RowArray = self.filters.feasible
        self.state = CycleState()
        self.rejected: Status = SUCCESS
        self.absent: Status = SUCCESS
        self.narrowing: frozenset[str] = frozenset()
        self.skipped: frozenset[str] = frozenset()
        self._answers: dict[str, Status | PreFilterResult] = {}
        self._near_skipped: frozenset[str] | None = None
        self._far_skipped: list[str] = []
        self._part: Snapshot | None = None
        self._editions: list[Edition | None] = []
        self._standing: frozenset[str] = frozenset()
        self._by_row: frozenset[str] = frozenset()
        self._watched: list[tuple[Dated, Edition]] | None = None
        self._marks = Marks(profile.stages.marked)
        self._tick = -1
        self._node_tick = -1
        self._epoch = -1
        self._objects_version = -1
        self._diagnosis: Diagnosis | None = None
        self._refused: dict[Code, RowArray] = {}

    def refresh(self, pod: PodInfo) -> None:
        """Update the results to the present cluster, for this pod of the template."""
        cluster = self.cluster
        rows, snapshot = None, Snapshot(cluster)
        is_other = self._stages.marked and self._marks.differ(pod.template, snapshot)
        if not is_other and self._epoch == cluster.epoch and self._objects_version == cluster.objects.version:
            if self._tick == cluster.tick and not self._stages.individual:
                return
            if self._node_tick == cluster.node_tick and self._all_stand(pod, snapshot):
                if self._renew_rows(pod):
                    return
            else:
                rows = cluster.changed_since(self._tick)
        self._diagnosis = None
        self._refused.clear()
        part = node_part = None
        if rows is not None:
            part = Snapshot(cluster, rows)
            same = self._node_tick == cluster.node_tick
            none = Snapshot(cluster, rows[:0])
            node_part = none if same else snapshot.at(cluster.nodes_changed_since(rows, self._tick))
        if part is None:
            self.filters.forget()
        if node_part is None or len(node_part):
            self._scores.forget()
            self._answers.clear()
        elif rows is not None:
            self._scores.note_stale(rows, self._tick)
        editions = self._compare_editions(
            pod, snapshot, comparable=node_part is not None and not len(node_part)
        )
        self._scores.note_standing(self._standing)
        allowed = self._pre_filter(pod, snapshot)
        if self.rejected.is_success:
            self.filters.renew(
                self.state,
                pod,
                snapshot,
                skipped=self.skipped,
                part=part,
                node_part=node_part,
                allowed=allowed,
                standing=StandingVerdicts(self._standing, self._by_row),
            )
        else:
            self.filters.exclude_all()
        self._note_renewed(part if self.rejected.is_success else self._part)
        self._note_editions(editions if self._near_skipped is not None else [])

    def _renew_rows(self, pod: PodInfo) -> bool:
        """Renew results that depend on a node's pods, where these changed; False: the rows are unknown."""
        cluster = self.cluster
        span = cluster.span_since(self._tick, MOST_CHANGES)
        is_done = span is not None and self.filters.renew_near(span)
        part = None
        if not (is_done and self.filters.are_near and self._scores.is_compiled):
            rows = cluster.changed_since(self._tick)
            if rows is None:
                return False
            part = Snapshot(cluster, rows)
            self.filters.renew_rows(self.state, pod, part, self._by_row, near=not is_done)
        self._scores.note_stale(None if part is None else part.rows, self._tick)
        self._diagnosis = None
        self._refused.clear()
        self._note_renewed(part)
        return True

    @property
    def is_by_node(self) -> bool:
        """Whether each node's latest verdict and total depend on that node alone."""
        return (
            self.rejected.is_success
            and not self.narrowing
            and not self._stages.individual
            and self._stages.far_names <= self.skipped
            and self._scores.are_by_node
        )

    def _note_renewed(self, part: Snapshot | None) -> None:
        """Record that the results match the present cluster."""
        cluster = self.cluster
        self._part = part
        self.failed, self.feasible = self.filters.failed, self.filters.feasible
        # Building columns and indexes may have added axes, so the marks are read last.
        self._tick = cluster.tick
        self._node_tick = cluster.node_tick
        self._epoch = cluster.epoch
        self._objects_version = cluster.objects.version

    def _note_editions(self, editions: list[Edition | None]) -> None:
        """Record the editions of the results of plugins that read more than the node."""
        self._editions = editions
        pairs = zip(self._stages.dated, editions, strict=False)
        dated = [(plugin, edition) for plugin, edition in pairs if edition]
        known = {plugin.name for plugin, _ in dated}
        self._watched = None
        if editions and self._stages.far_names <= known and not self._stages.individual:
            self._watched = [(plugin, edition) for plugin, edition in dated if not edition.lasts]

    def _all_stand(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the results of all plugins that read more than the node still hold."""
        if self._watched is None:
            return False
        for plugin, edition in self._watched:
            try:
                if plugin.edition(pod.template, snapshot) != edition:
                    return False
            except BaseException:  # noqa: BLE001 - asked again, and then named
                return False
        return True

    def _compare_editions(
        self, pod: PodInfo, snapshot: Snapshot, *, comparable: bool
    ) -> list[Edition | None]:
        """Find the plugins whose results hold; returns the editions of all plugins that have one."""
        editions: list[Edition | None] = []
        dated = self._stages.dated
        try:
            for plugin in dated:
                editions.append(plugin.edition(pod.template, snapshot))  # noqa: PERF401 - who raised is known
        except BaseException as exc:
            raise named(dated[len(editions)].name, "preFilter", exc) from exc
        former = self._editions if comparable else []
        if editions != former or None in editions or len(self._standing) != len(dated):
            self._standing = frozenset(
                plugin.name
                for plugin, now, then in zip(dated, editions, former, strict=False)
                if now is not None and now == then
            )
            self._by_row = frozenset(
                plugin.name
                for plugin, now in zip(dated, editions, strict=True)
                if now is not None and now.by_row
            )
        return editions

    def _pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> frozenset[str] | None:
        """Run PreFilter; returns the names of the allowed nodes, None for all."""
        if self._near_skipped is not None and self._answers and self._far_agree(pod, snapshot):
            return None
        self._near_skipped = None
        allowed = self._pre_filter_all(pod, snapshot)
        if self.rejected.is_success and allowed is None:
            self._near_skipped = self.skipped & self._stages.near_pre_filter
            far = self._stages.far_pre_filter
            self._far_skipped = [plugin.name for plugin in far if plugin.name in self.skipped]
        return allowed

    def _far_agree(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Run only the plugins that read the whole cluster; returns whether all agree or skip as before."""
        skipped = []
        for plugin in self._stages.far_pre_filter:
            if plugin.name in self._standing:
                if plugin.name in self.skipped:
                    skipped.append(plugin.name)
                continue
            answer = called(plugin.name, "preFilter", plugin.pre_filter, self.state, pod, snapshot)
            if answer is SUCCESS:
                continue
            if answer is not SKIP:
                answer = pre_filter_answer(plugin.name, answer)
            if isinstance(answer, PreFilterResult) or answer.code not in (Code.SKIP, Code.SUCCESS):
                return False
            if answer.code is Code.SKIP:
                skipped.append(plugin.name)
        self.rejected = SUCCESS
        if skipped != self._far_skipped:
            self._far_skipped = skipped
            self.skipped = (self._near_skipped or frozenset()) | frozenset(skipped)
        return True

    def _pre_filter_all(self, pod: PodInfo, snapshot: Snapshot) -> frozenset[str] | None:  # noqa: C901, PLR0912 - the steps of PreFilter in upstream's order
        """Run every PreFilter plugin in order; near ones only if no result is kept."""
        self.rejected = SUCCESS
        allowed: frozenset[str] | None = None
        framed = self._frames.of(pod.template)
        known = None if framed is None else framed.pre_filter
        skipped, narrowing = set[str]() if known is None else set(known.skipped), set[str]()
        for plugin in self.profile.pre_filter if known is None else known.asked:
            answer = self._answers.get(plugin.name)
            if answer is None:
                answer = called(plugin.name, "preFilter", plugin.pre_filter, self.state, pod, snapshot)
                if answer is not SUCCESS and answer is not SKIP:
                    answer = pre_filter_answer(plugin.name, answer)
                if plugin.name in self._stages.near_pre_filter:
                    self._answers[plugin.name] = answer
            if isinstance(answer, PreFilterResult):
                allowed = answer.nodes if allowed is None else allowed & answer.nodes
                narrowing.add(plugin.name)
            elif answer.code is Code.SKIP:
                skipped.add(plugin.name)
            elif answer.code is Code.UNRESOLVABLE:
                self.rejected = answer
                # The later plugins have not run, so their writes for an earlier attempt are void.
                self.state = CycleState()
                self._answers.clear()
                self._scores.forget()
                break
            elif answer.code is Code.UNSCHEDULABLE:
                self.rejected = answer
            elif not answer.is_success:
                raise PluginError(plugin.name, "preFilter", answer.message or answer.code.value)
        else:
            if framed is not None and known is None:
                framed.pre_filter = self._frames.pre_filtered(skipped)
        self.skipped = frozenset(skipped)
        self.narrowing = frozenset(narrowing)
        if self.rejected.is_success and allowed is not None:
            names = " ".join(sorted(narrowing))
            self.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")
            if not allowed:
                several = f"plugin(s) [{names}] simultaneously" if len(narrowing) > 1 else f"plugin {names}"
                self.rejected = unresolvable(f"node(s) didn't satisfy {several}")
        if not self.rejected.is_success:
            self.absent = self.rejected
        return allowed

    def status(self, row: int, pod: PodInfo) -> Status:
        """Why a node is infeasible; success if it is feasible."""
        position = int(self.failed[row])
        if position == FEASIBLE:
            return SUCCESS
        if position == EXCLUDED:
            return self.absent
        plugin = self.profile.filter[position]
        return self._refusal(plugin, int(self.filters.codes(plugin.name)[row]), pod)

    def rows_refused_by_filters(self) -> RowArray:
        """Rows that a filter plugin rejected, ascending."""
        failed = self.failed
        return np.flatnonzero((failed != FEASIBLE) & (failed != EXCLUDED))

    def rows_refused(self, code: Code, pod: PodInfo) -> RowArray:
        """Rows whose first rejection has that status code, ascending."""
        known = self._refused.get(code)
        if known is not None:
            return known
        chosen = np.zeros(len(self.failed), dtype=np.bool_)
        for plugin, rows, codes in self._refusals(self.failed):
            kinds, which = told_apart(codes)
            wanted = [self._refusal(plugin, kind, pod).code is code for kind in kinds]
            chosen[rows if all(wanted) else rows[np.array(wanted)[which]]] = True
        self._refused[code] = np.flatnonzero(chosen)
        return self._refused[code]

    def _refusals(self, failed: PositionArray) -> Iterator[tuple[FilterPlugin, RowArray, IntArray]]:
        """The plugins that are first to reject some nodes; with these nodes and their codes."""
        for position in np.unique(failed).tolist():
            if position not in (FEASIBLE, EXCLUDED):
                plugin = self.profile.filter[position]
                rows = np.flatnonzero(failed == position)
                yield plugin, rows, self.filters.codes(plugin.name)[rows]

    def _refusal(self, plugin: FilterPlugin, code: int, pod: PodInfo) -> Status:
        status = answered(plugin.name, "filter", plugin.refusal, code, self.state, pod).by(plugin.name)
        if not status.is_rejected:
            raise PluginError(plugin.name, "filter", status.message or status.code.value)
        return status

    def diagnose(self, pod: PodInfo, overrides: RowStatuses) -> Diagnosis:
        """Fold the rejections of all nodes into counts; ``overrides`` replace the cache's statuses by row."""
        if self._diagnosis is not None and not len(overrides):
            return self._diagnosis
        failed = self.failed
        if len(overrides):
            failed = failed.copy()
            failed[overrides.rows] = FEASIBLE
        excluded = int(np.count_nonzero(failed == EXCLUDED))
        counted = [*overrides.counted(), (self.absent, excluded)]
        plugins = {*self.narrowing, *(status.plugin for status, _ in counted[:-1])}
        if not self.rejected.is_success:
            plugins = {self.rejected.plugin} if self.rejected.plugin else plugins
        for plugin, _, codes in self._refusals(failed):
            plugins.add(plugin.name)
            kinds, which = told_apart(codes)
            counted += [
                (self._refusal(plugin, kind, pod), count)
                for kind, count in zip(kinds, np.bincount(which).tolist(), strict=True)
            ]
        # The nodes that are named do not exist, and a new one has another name.
        is_nowhere = self.rejected.is_success and bool(self.narrowing) and excluded == len(failed)
        diagnosis = Diagnosis(
            node_count=len(failed),
            reasons={reason: count for reason, count in count_reasons(counted).items() if count},
            plugins=frozenset(plugins - {""}),
            pre_filter_message=self.rejected.message,
            no_node_helps=self.rejected.no_node_helps or is_nowhere,
        )
        if not len(overrides):
            self._diagnosis = diagnosis
        return diagnosis

    def best(self, pod: PodInfo, rows: RowArray) -> tuple[Sequence[int] | RowArray, int | None]:
        """The rows with the highest total among ``rows`` (feasible ones), and that total.

        A single row is not scored; its total is None. Valid until the next refresh.
        """
        if len(rows) == 1:
            return rows, None
        verdicts = self.filters if rows is self.feasible else None
        return self._scores.best(self.state, pod, rows, self._part, verdicts)

    def totals(self, pod: PodInfo, rows: RowArray) -> IntArray:
        """The weighted scores of ``rows`` (feasible ones), shape (F,)."""
        return self._scores.totals(self.state, pod, rows, self._part)

    def score(self, pod: PodInfo, rows: RowArray) -> ScoreTable:
        """Score the feasible ``rows``, plugin by plugin."""
        return self._scores.score(self.state, pod, rows, self._part)
