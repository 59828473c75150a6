"""Keeps filter results of one pod template by node, and renews them where something has changed.

Each filter plugin returns one code per node, 0 for feasible; together the codes yield the first plugin that
rejects each node. Local plugins come first: they run again for the changed rows, those that read nodes only
if node objects have changed. Global plugins run again for all nodes unless their results hold.

Axis letter: N nodes.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from plimsoll.engine.cache.changes import ClusterChanges
from plimsoll.engine.cache.node_columns import NodeColumns
from plimsoll.engine.cache.pre_filter import PreFilterResults
from plimsoll.engine.cache.versions import TemplateVersions
from plimsoll.engine.kernel.room import OTHER_VERDICTS, SOME_REFUSED, CompiledRoom
from plimsoll.engine.plugin_calls import are_any, called, replaced
from plimsoll.engine.profile import Profile
from plimsoll.framework import CycleState, FilterPlugin, IntArray, PodInfo, Snapshot
from plimsoll.framework.plugin_answers import checked, judged
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PositionArray, RowArray

#: In ``failed``: no filter plugin rejected the node (later than any of them), or PreFilter excluded it.
FEASIBLE, EXCLUDED = 2**15 - 1, -1

#: A plugin's position among the filters, and its codes.
Rejecting: TypeAlias = tuple[int, IntArray]

#: Filters with their position.
Placed: TypeAlias = list[tuple[int, FilterPlugin]]


class FilterResults:
    """The verdicts for one template.

    Attributes:
        failed: Shape (N,): position of the first filter plugin that rejected the node, FEASIBLE or EXCLUDED.
        feasible: Rows of the feasible nodes, ascending.
        generation: Increases when verdicts may have changed on other rows than the changed ones.
        accepts_all: Plugins that read nodes only and are known to reject none.
    """

    def __init__(self, profile: Profile, cluster: Cluster, shared: NodeColumns) -> None:
        self._stages = profile.stages
        self._ruled = profile.capabilities.ruled_filters
        self._cluster = cluster
        self._shared = shared
        self._codes: dict[str, IntArray] = {}
        self.generation = 0
        self.accepts_all: set[str] = set()
        self._rejects_some: set[str] = set()  #: plugins that read pods, if they have rejected a node
        self._skipped: frozenset[str] | None = None
        self._row: Placed = []  #: the filters that take part and read a node's own pods
        self._global: Placed = []
        self._room: CompiledRoom | None = None  #: for the only one of ``_row``
        self._node_failed: PositionArray | None = None  #: by filters that read nodes only; None: none rejects
        self._local_failed: PositionArray = np.empty(0, dtype=np.int16)
        self._all_pass_locally = False  #: known only if true
        self.failed: PositionArray = self._local_failed
        self.feasible: RowArray = np.empty(0, dtype=np.intp)

    def exclude_all(self) -> None:
        """Exclude all nodes; PreFilter rejected the pod."""
        self._forget()
        self.generation += 1
        self.failed = np.full(len(self._cluster), EXCLUDED, dtype=np.int16)
        self.feasible = np.empty(0, dtype=np.intp)

    def codes(self, plugin: str) -> IntArray:
        """The codes of a filter plugin that took part in the latest renewal, shape (N,)."""
        return self._codes[plugin]

    def node_codes(self) -> dict[str, IntArray]:
        """The known codes of the filter plugins that read nodes only, keyed by name."""
        return {
            plugin.name: self._codes[plugin.name]
            for _, plugin in self._stages.node_filter
            if plugin.name in self._codes
        }

    def renew(
        self, pod: PodInfo, changes: ClusterChanges, pre_filter: PreFilterResults, versions: TemplateVersions
    ) -> None:
        """Run the filters of which results may have changed; PluginError."""
        if changes.is_everything:
            self._forget()
        skipped = pre_filter.skipped
        are_others = not self._codes
        if skipped is not self._skipped and skipped != self._skipped:
            self._leave_out(skipped)
            are_others = True
        if are_others or changes.in_nodes:
            for _, plugin in self._stages.node_filter:
                if plugin.name not in skipped:
                    are_others |= self._renew_nodes(plugin, pod, pre_filter.state, changes)
        if not self._renew_compiled(changes.span):
            are_others |= self._renew_rows(pod, pre_filter.state, changes, are_combined=not are_others)
        if are_others:
            self._combine_local()
        if self.failed is self._local_failed and not self._global and pre_filter.allowed is None:
            return
        hold = self._renew_global(pod, pre_filter.state, changes, versions)
        rejecting = [
            (position, self._codes[plugin.name])
            for position, plugin in self._global
            if plugin.name in self._rejects_some
        ]
        if rejecting and hold and not are_others and self.failed is not self._local_failed:
            self._patch_global(changes.rows.rows, rejecting)
        else:
            self._add_global(rejecting, pre_filter.allowed)

    def _forget(self) -> None:
        self._room = None
        self._codes.clear()
        self.accepts_all.clear()
        self._rejects_some.clear()

    def _leave_out(self, plugins: frozenset[str]) -> None:
        """Let these plugins take no part from now on."""
        self._skipped = plugins
        self._row = [each for each in self._stages.row_filter if each[1].name not in plugins]
        self._global = [each for each in self._stages.global_filter if each[1].name not in plugins]
        for name in plugins if self._codes else ():
            self._codes.pop(name, None)
        if self._room and (
            len(self._row) != 1 or self._codes.get(self._row[0][1].name) is not self._room.codes
        ):
            self._room = None
        self.accepts_all -= plugins
        self._rejects_some -= plugins

    def _ask(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        codes = called(plugin.name, "filter", plugin.filter, state, pod, snapshot)
        return checked(codes, len(snapshot), plugin.name, "filter")

    # -- filters that read nodes only ----------------------------------------------------------------

    def _renew_nodes(
        self, plugin: FilterPlugin, pod: PodInfo, state: CycleState, changes: ClusterChanges
    ) -> bool:
        """Renew one's codes for changed nodes; returns whether any may have changed."""
        name = plugin.name
        known = self._codes.get(name)
        if known is None:
            self._look_up(plugin, pod, state, changes.all)
            return True
        if changes.nodes is None or not changes.in_nodes:
            return False
        if not known.flags.writeable:
            known = self._codes[name] = known.copy()
        codes = self._ask(plugin, state, pod, changes.nodes)
        known[changes.nodes.rows] = codes
        if name in self.accepts_all and np.count_nonzero(codes):
            self.accepts_all.discard(name)
        return True

    def _look_up(self, plugin: FilterPlugin, pod: PodInfo, state: CycleState, snapshot: Snapshot) -> None:
        """One's codes for all nodes, shared by signature if the plugin has one."""
        name = plugin.name
        column = self._shared.signed(plugin, "filter", plugin.filter, state=state, pod=pod, snapshot=snapshot)
        if column is None:
            codes = self._codes[name] = self._ask(plugin, state, pod, snapshot).copy()
            accepts_all = not np.count_nonzero(codes)
        else:
            self._codes[name] = column.values
            accepts_all = column.lowest == column.highest == 0
        (self.accepts_all.add if accepts_all else self.accepts_all.discard)(name)

    # -- filters that read a node's own pods ---------------------------------------------------------

    def _renew_rows(
        self, pod: PodInfo, state: CycleState, changes: ClusterChanges, *, are_combined: bool
    ) -> bool:
        """Renew their codes; returns whether the local verdicts are to be combined.

        ``are_combined``: the local verdicts of unchanged rows hold; then those of changed rows are renewed.
        """
        are_others = False
        rejecting: list[Rejecting] = []
        for position, plugin in self._row:
            known = self._codes.get(plugin.name)
            if known is None:
                codes = self._codes[plugin.name] = self._ask_all(position, plugin, state, pod, changes.all)
                are_others = True
            else:
                codes = self._ask(plugin, state, pod, changes.rows)
                known[changes.rows.rows] = codes
            if are_any(codes):
                self._rejects_some.add(plugin.name)
                self._all_pass_locally = False
                rejecting.append((position, codes))
        if are_combined and not are_others:
            self._patch_local(changes.rows.rows, rejecting)
        return are_others

    def _renew_compiled(self, span: tuple[int, int] | None) -> bool:
        """Let the kernel renew codes and local verdicts of the changed rows, if it can."""
        room = self._room
        if room is None or span is None:
            return False
        name = self._row[0][1].name
        told = replaced([(name, "filter")], room.renew, span, self._node_failed, self._local_failed)
        if told & SOME_REFUSED:
            self._rejects_some.add(name)
            self._all_pass_locally = False
        if told & OTHER_VERDICTS and self.failed is self._local_failed:
            self.feasible = np.flatnonzero(self.failed == FEASIBLE)
        return True

    def _ask_all(
        self, position: int, plugin: FilterPlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> IntArray:
        """All nodes' codes of one of them, to be kept."""
        addresses = self._shared.addresses
        room = None
        ruled = self._ruled.get(plugin.name)
        if addresses.kernel is not None and len(self._row) == 1 and ruled is not None:
            rule = judged(plugin.name, "filter", ruled.filter_rule, state, pod, snapshot)
            if rule is not None:
                room = CompiledRoom(addresses, len(snapshot), rule, position)
        self._room = room
        if room is None:
            return self._ask(plugin, state, pod, snapshot).copy()
        replaced([(plugin.name, "filter")], room.look_at_all)
        return room.codes

    # -- global filters ------------------------------------------------------------------------------

    def _renew_global(
        self, pod: PodInfo, state: CycleState, changes: ClusterChanges, versions: TemplateVersions
    ) -> bool:
        """Renew their codes; returns whether codes of unchanged rows hold."""
        hold = True
        for _, plugin in self._global:
            name = plugin.name
            if name not in versions.holding or name not in self._codes:
                codes = self._ask(plugin, state, pod, changes.all)
                self._codes[name] = codes.copy() if name in versions.by_row else codes
                self._rejects_some.discard(name)
                hold = False
            elif name in versions.by_row:
                codes = self._ask(plugin, state, pod, changes.rows)
                self._codes[name][changes.rows.rows] = codes
            else:
                continue
            if are_any(codes):
                self._rejects_some.add(name)
        return hold

    # -- verdicts ------------------------------------------------------------------------------------

    def _combine_nodes(self) -> PositionArray | None:
        """Each node's first rejecting plugin among those that read nodes only; None: none rejects."""
        failed = None
        for position, plugin in self._stages.node_filter:
            if plugin.name in self._codes and plugin.name not in self.accepts_all:
                if failed is None:
                    failed = np.full(len(self._cluster), FEASIBLE, dtype=np.int16)
                _note(failed, position, self._codes[plugin.name])
        if failed is not None:
            failed.flags.writeable = False
        return failed

    def _combine_local(self) -> None:
        """Each node's first rejecting plugin among those that read only the node and its pods."""
        self._node_failed = self._combine_nodes()
        self._all_pass_locally = self._node_failed is None
        if self._node_failed is None:
            failed = np.full(len(self._cluster), FEASIBLE, dtype=np.int16)
        else:
            failed = self._node_failed.copy()
        for position, plugin in self._stages.row_filter:
            if plugin.name in self._rejects_some:
                self._all_pass_locally = False
                _note(failed, position, self._codes[plugin.name])
        # A new array: readers of the old one keep its values.
        self._local_failed = failed
        self.failed = np.empty(0, dtype=np.int16)

    def _patch_local(self, rows: RowArray, rejecting: list[Rejecting]) -> None:
        """The same for changed rows only, given the rejections by plugins that read a node's own pods."""
        before = self._local_failed[rows]
        if self._node_failed is not None:
            after = self._node_failed[rows]
        elif rejecting or (len(rows) and before.item(before.argmin()) != FEASIBLE):
            after = np.full(len(rows), FEASIBLE, dtype=np.int16)
        else:
            return
        for position, codes in rejecting:
            _note(after, position, codes)
        if np.count_nonzero(before != after):
            self._local_failed[rows] = after
            if self.failed is self._local_failed:
                self.feasible = np.flatnonzero(self.failed == FEASIBLE)

    def _patch_global(self, rows: RowArray, rejecting: Sequence[Rejecting]) -> None:
        """Add the global plugins' rejections for changed rows; elsewhere they hold."""
        after = self._local_failed[rows]
        for position, codes in rejecting:
            _note(after, position, codes[rows])
        if np.count_nonzero(self.failed[rows] != after):
            self.failed[rows] = after
            self.feasible = np.flatnonzero(self.failed == FEASIBLE)

    def _add_global(self, rejecting: Sequence[Rejecting], allowed: frozenset[str] | None) -> None:
        """Add the global plugins' rejections, and the nodes that PreFilter excluded."""
        if not rejecting and allowed is None:
            if self.failed is not self._local_failed:
                self.failed = self._local_failed
                self.feasible = (
                    self._shared.rows() if self._all_pass_locally else np.flatnonzero(self.failed == FEASIBLE)
                )
                self.generation += 1
            return
        self.generation += 1
        self.failed = self._local_failed.copy()
        for position, codes in rejecting:
            _note(self.failed, position, codes)
        if allowed is not None:
            excluded = np.ones(len(self.failed), dtype=np.bool_)
            excluded[[self._cluster.rows[name] for name in allowed if name in self._cluster.rows]] = False
            self.failed[excluded] = EXCLUDED
        self.feasible = np.flatnonzero(self.failed == FEASIBLE)


def _note(failed: PositionArray, position: int, codes: IntArray) -> None:
    """Enter a plugin's rejections where no earlier plugin rejects."""
    np.putmask(failed, (codes != 0) & (failed > position), position)
