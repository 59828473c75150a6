"""Caches filter results and scores of one pod template under one profile.

The parts of a template's cache, in the order in which a refresh renews them, are attributes of TemplateCache.
The page about all of this is the docstring of :mod:`plimsoll.engine.cache`.
"""

from collections.abc import Sequence

from plimsoll.engine.cache.changes import NEVER, ClusterChanges, clocks_of
from plimsoll.engine.cache.filter_results import FilterResults
from plimsoll.engine.cache.node_columns import NodeColumns
from plimsoll.engine.cache.pre_filter import PreFilterResults
from plimsoll.engine.cache.refusals import TemplateRefusals
from plimsoll.engine.cache.scores import ScoreTable, TemplateScores
from plimsoll.engine.cache.versions import TemplateVersions
from plimsoll.engine.profile import Profile
from plimsoll.framework import CycleState, IntArray, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PositionArray, RowArray


class TemplateCache:
    """Caches one template's results under one profile on one cluster; its methods raise PluginError.

    Attributes:
        pre_filter: What PreFilter returned at the latest refresh.
        filters: The filters' results and the verdicts, from the latest refresh.
        failed: Shape (N,): position of the first filter plugin that rejected the node, FEASIBLE or EXCLUDED.
        feasible: Rows of the feasible nodes, ascending.
        refusals: The verdicts in words.
        state: The cycle state of the latest refresh; valid for the template's pods.
        addresses: Addresses of the cluster's columns, for the kernel.
    """

    def __init__(self, profile: Profile, cluster: Cluster, shared: NodeColumns | None = None) -> None:
        self.profile = profile
        self.cluster = cluster
        shared = shared or NodeColumns(cluster, profile)
        self.addresses = shared.addresses
        self._stages = profile.stages
        self._clocks = NEVER
        self._versions = TemplateVersions(profile.stages)
        self.pre_filter = PreFilterResults(profile)
        self.filters = FilterResults(profile, cluster, shared)
        self.refusals = TemplateRefusals(profile, self.pre_filter, self.filters)
        self._scores = TemplateScores(profile, cluster, shared)
        self.state: CycleState = self.pre_filter.state
        self.failed: PositionArray = self.filters.failed
        self.feasible: RowArray = self.filters.feasible

    def refresh(self, pod: PodInfo) -> None:
        """Update the results to the present cluster, for this pod of the template."""
        changes = ClusterChanges(self.cluster, self._clocks)
        versions = self._versions
        if versions.local_differ(pod.template, changes.all):
            changes = ClusterChanges(self.cluster, NEVER)
        if changes.is_nothing and not self._stages.individual:
            return
        self._clocks = NEVER  # if a plugin's error ends this refresh, the next one renews everything
        self.refusals.forget()
        if changes.in_nodes or not versions.all_hold(pod.template, changes.all):
            versions.compare(pod.template, changes)
            self.pre_filter.renew(pod, changes, versions)
            versions.keep(are_comparable=self.pre_filter.are_plain)
        if self.pre_filter.are_plain or self.pre_filter.rejected.is_success:
            self.filters.renew(pod, changes, self.pre_filter, versions)
            self._scores.note(changes, versions.holding)
        else:
            self.filters.exclude_all()
            self._scores.forget()
        self.state = self.pre_filter.state
        self.failed, self.feasible = self.filters.failed, self.filters.feasible
        # Building columns and indexes may have added axes, so the clocks are read last.
        self._clocks = clocks_of(self.cluster)

    @property
    def is_filtered_by_node(self) -> bool:
        """Whether each node's latest verdict depends on that node alone."""
        return (
            self.pre_filter.are_plain
            and not self._stages.individual
            and self._stages.global_names <= self.pre_filter.skipped
        )

    @property
    def is_local(self) -> bool:
        """Whether no plugin that reads more than a node and its pods took part in verdicts and totals."""
        return self.is_filtered_by_node and self._scores.are_local

    @property
    def is_by_node(self) -> bool:
        """Whether each node's latest verdict and total depend on that node alone."""
        return self.is_filtered_by_node and self._scores.are_by_node

    def best(self, pod: PodInfo, rows: RowArray) -> tuple[Sequence[int] | RowArray, int | None]:
        """The rows with the highest total among ``rows`` (feasible ones), and that total.

        A single row is not scored; its total is None. Valid until the next refresh.
        """
        if len(rows) == 1:
            return rows, None
        verdicts = self.filters if rows is self.feasible else None
        return self._scores.best(self.state, pod, rows, verdicts)

    def totals(self, pod: PodInfo, rows: RowArray) -> IntArray:
        """The weighted scores of ``rows`` (feasible ones), shape (F,)."""
        return self._scores.totals(self.state, pod, rows)

    def score(self, pod: PodInfo, rows: RowArray) -> ScoreTable:
        """Score the feasible ``rows``, plugin by plugin."""
        return self._scores.score(self.state, pod, rows)
