"""Caches filter results of one pod template by node, and renews them for changed rows.

Each filter plugin returns one code per node, 0 for feasible; together the codes yield the first plugin that
rejects each node. After a change, plugins that read nodes only run again if a node object changed, plugins
that read a node's own pods run for the changed rows, and all others run for all nodes. The owner, a
:class:`plimsoll.engine.cache.template.TemplateCache`, passes the changes.

Axis letter: N nodes.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from plimsoll.engine.cache.frames import FramedVerdicts
from plimsoll.engine.cache.node_columns import NodeColumns
from plimsoll.engine.kernel.room import OTHER_VERDICTS, SOME_REFUSED, CompiledRoom
from plimsoll.engine.plugin_calls import are_any, called, counted
from plimsoll.engine.plugin_reach import StandingVerdicts
from plimsoll.engine.profile import Profile
from plimsoll.framework import CycleState, FilterPlugin, IntArray, PodInfo, Snapshot
from plimsoll.framework.descheduling.plugin_answers import checked, judged
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PositionArray, RowArray

#: In ``failed``: no filter plugin rejected the node (later than any of them), or PreFilter excluded it.
FEASIBLE, EXCLUDED = 2**15 - 1, -1

#: A plugin's position among the filters, and its codes.
Refusing: TypeAlias = tuple[int, IntArray]


class FilterResults:
    """The verdicts of one cache.

    Attributes:
        failed: Shape (N,): position of the first filter plugin that rejected the node, FEASIBLE or EXCLUDED.
        feasible: Rows of the feasible nodes, ascending.
        generation: Increases when verdicts may have changed on other rows than the changed ones.
        quiet: Plugins that read nodes only and are known to reject none.
    """

    def __init__(self, profile: Profile, cluster: Cluster, shared: NodeColumns) -> None:
        self._stages = profile.stages
        self._ruled = profile.capabilities.ruled_filters
        self._cluster = cluster
        self._shared = shared
        self._codes: dict[str, IntArray] = {}
        self.generation = 0
        self.quiet: set[str] = set()
        self._far_loud: set[str] = set()
        self._row_loud: set[str] = set()
        self._refuses_none = False
        self._skipped = frozenset[str]()
        self._row_live: list[tuple[int, FilterPlugin]] = []
        self._far_live: list[tuple[int, FilterPlugin]] = []
        self._room: CompiledRoom | None = None  #: for the only live filter that reads a node's pods
        self._node_failed: PositionArray | None = None
        self._near_failed: PositionArray = np.empty(0, dtype=np.int16)
        self.failed: PositionArray = self._near_failed
        self.feasible: RowArray = np.empty(0, dtype=np.intp)

    def forget(self) -> None:
        """Drop everything that is kept."""
        self._room = None
        self._codes.clear()
        self.quiet.clear()
        self._far_loud.clear()
        self._row_loud.clear()

    def _leave_out(self, plugins: frozenset[str]) -> bool:
        """Drop the results of these plugins; returns whether they are others than the last time."""
        if plugins is self._skipped or plugins == self._skipped:
            return False
        self._skipped = plugins
        for name in plugins if self._codes else ():
            self._codes.pop(name, None)
            self.quiet.discard(name)
            self._far_loud.discard(name)
            self._row_loud.discard(name)
        return True

    def exclude_all(self) -> None:
        """Exclude all nodes; PreFilter rejected the pod."""
        self.forget()
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
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        *,
        skipped: frozenset[str],
        part: Snapshot | None,
        node_part: Snapshot | None,
        allowed: frozenset[str] | None,
        standing: StandingVerdicts,
    ) -> None:
        """Run the filters for what changed.

        Args:
            state: The cycle state that PreFilter wrote.
            pod: The pod.
            snapshot: All nodes.
            skipped: Plugins that take no part: their PreFilter returned SKIP.
            part: The rows that changed; None: all.
            node_part: Those whose node object changed; None: all.
            allowed: Names of the nodes that PreFilter allowed; None: all.
            standing: Plugins that read more than the node and whose results still hold.
        """
        again = self._leave_out(skipped) or part is None or not self._codes
        framed = None
        if again or node_part is None or len(node_part):
            if not self._codes:
                framed = self._look_up_nodes(state, pod, snapshot, skipped)
            else:
                for _, plugin in self._stages.node_filter:
                    if plugin.name not in skipped:
                        again |= self._ask_about_nodes(plugin, state, pod, snapshot, node_part)
        refusing: list[Refusing] = []
        self._row_live = [each for each in self._stages.row_filter if each[1].name not in skipped]
        room, live = self._room, self._row_live
        if room is not None and (len(live) != 1 or self._codes.get(live[0][1].name) is not room.codes):
            self._room = None
        for position, plugin in self._row_live:
            known = self._codes.get(plugin.name)
            if known is None or part is None:
                codes = self._codes[plugin.name] = self._ask_all(position, plugin, state, pod, snapshot)
                (self._row_loud.add if are_any(codes) else self._row_loud.discard)(plugin.name)
                again = True
                continue
            codes = self._ask(plugin, state, pod, part)
            known[part.rows] = codes
            if are_any(codes):
                self._row_loud.add(plugin.name)
                self._refuses_none = False
                refusing.append((position, codes))
        far = self._renew_far(state, pod, snapshot, skipped, part, standing)
        if part is None or again:
            self._combine_near(framed)
        else:
            self._patch_near(part.rows, refusing)
        self._add_far(far, allowed)

    @property
    def are_near(self) -> bool:
        """Whether every filter that takes part reads only the node and its pods."""
        return not self._far_live

    def renew_near(self, span: tuple[int, int]) -> bool:
        """Let the kernel do its part of ``renew_rows``, if it can; ``span``: address and number of rows."""
        room = self._room
        if room is None:
            return False
        name = self._row_live[0][1].name
        if counted([(name, "filter")]):
            return False
        told = room.renew(span, self._node_failed, self._near_failed)
        if told & SOME_REFUSED:
            self._row_loud.add(name)
            self._refuses_none = False
        if told & OTHER_VERDICTS and self.failed is self._near_failed:
            self.feasible = np.flatnonzero(self.failed == FEASIBLE)
        return True

    def _ask_all(
        self, position: int, plugin: FilterPlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> IntArray:
        """All nodes' codes of a filter that reads a node's pods, to be kept."""
        addresses = self._shared.addresses
        room = None
        ruled = self._ruled.get(plugin.name)
        if addresses.kernel is not None and len(self._row_live) == 1 and ruled is not None:
            rule = judged(plugin.name, "filter", ruled.filter_rule, state, pod, snapshot)
            if rule is not None:
                room = CompiledRoom(addresses, len(snapshot), rule, position)
        self._room = room
        if room is None:
            return self._ask(plugin, state, pod, snapshot).copy()
        if counted([(plugin.name, "filter")]):
            room.codes[:] = self._ask(plugin, state, pod, snapshot)
        else:
            room.look_at_all()
        return room.codes

    def renew_rows(
        self, state: CycleState, pod: PodInfo, part: Snapshot, by_row: frozenset[str], *, near: bool = True
    ) -> None:
        """Run the filters for rows of which only the pods have changed; all other results hold.

        ``near`` is False after ``renew_near``.
        """
        rows = part.rows
        if near:
            self._renew_near_rows(state, pod, part)
        if not self._far_live:
            return
        far: list[Refusing] = []
        for position, plugin in self._far_live:
            name = plugin.name
            if name in by_row:
                codes = self._ask(plugin, state, pod, part)
                self._codes[name][rows] = codes
                if are_any(codes):
                    self._far_loud.add(name)
            if name in self._far_loud:
                far.append((position, self._codes[name]))
        if far and self.failed is not self._near_failed:
            self._patch_far(rows, far)
        else:
            self._add_far(far, None)

    def _renew_near_rows(self, state: CycleState, pod: PodInfo, part: Snapshot) -> None:
        rows = part.rows
        refusing: list[Refusing] = []
        for position, plugin in self._row_live:
            codes = self._ask(plugin, state, pod, part)
            self._codes[plugin.name][rows] = codes
            if are_any(codes):
                self._row_loud.add(plugin.name)
                self._refuses_none = False
                refusing.append((position, codes))
        self._patch_near(rows, refusing)

    def _renew_far(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        skipped: frozenset[str],
        part: Snapshot | None,
        standing: StandingVerdicts,
    ) -> list[Refusing]:
        """Run the filters that read more than the node, unless their results hold; the rejecting ones."""
        far: list[Refusing] = []
        self._far_live = [each for each in self._stages.far_filter if each[1].name not in skipped]
        for position, plugin in self._far_live:
            name = plugin.name
            if part is None or name not in standing.plugins or name not in self._codes:
                codes = self._ask(plugin, state, pod, snapshot)
                self._codes[name] = codes.copy() if name in standing.by_row else codes
                (self._far_loud.add if are_any(codes) else self._far_loud.discard)(name)
            elif name in standing.by_row:
                codes = self._ask(plugin, state, pod, part)
                self._codes[name][part.rows] = codes
                if are_any(codes):
                    self._far_loud.add(name)
            if name in self._far_loud:
                far.append((position, self._codes[name]))
        return far

    def _ask(self, plugin: FilterPlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        codes = called(plugin.name, "filter", plugin.filter, state, pod, snapshot)
        return checked(codes, len(snapshot), plugin.name, "filter")

    def _ask_about_nodes(
        self,
        plugin: FilterPlugin,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        node_part: Snapshot | None,
    ) -> bool:
        """Renew the codes of a plugin that reads nodes only; returns whether any may have changed."""
        name = plugin.name
        known = self._codes.get(name)
        if known is not None and node_part is not None:
            if not len(node_part):
                return False
            if not known.flags.writeable:
                known = self._codes[name] = known.copy()
            codes = self._ask(plugin, state, pod, node_part)
            known[node_part.rows] = codes
            if name in self.quiet and np.count_nonzero(codes):
                self.quiet.discard(name)
            return True
        column = self._shared.signed(plugin, "filter", plugin.filter, state=state, pod=pod, snapshot=snapshot)
        if column is None:
            codes = self._codes[name] = self._ask(plugin, state, pod, snapshot).copy()
            quiet = not np.count_nonzero(codes)
        else:
            self._codes[name] = column.values
            quiet = column.lowest == column.highest == 0
        (self.quiet.add if quiet else self.quiet.discard)(name)
        return True

    def _look_up_nodes(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, skipped: frozenset[str]
    ) -> FramedVerdicts | None:
        """Run all plugins that read nodes only, or take their results from the pod's frame."""
        frames = self._shared.frames
        framed = frames.of(pod.template)
        taking_part = self._stages.node_filter_names - skipped
        if framed is not None and framed.verdicts is not None and framed.verdicts.codes.keys() == taking_part:
            self._codes.update(framed.verdicts.codes)
            self.quiet.update(framed.verdicts.quiet)
            return framed.verdicts
        for _, plugin in self._stages.node_filter:
            if plugin.name in taking_part:
                self._ask_about_nodes(plugin, state, pod, snapshot, None)
        if framed is None or not frames.are_framed(taking_part):
            return None
        framed.verdicts = FramedVerdicts(dict(self._codes), frozenset(self.quiet), self._combine_nodes())
        return framed.verdicts

    def _combine_nodes(self) -> PositionArray | None:
        """Each node's first rejecting plugin among those that read nodes only; None: none rejects."""
        failed = None
        for position, plugin in self._stages.node_filter:
            if plugin.name in self._codes and plugin.name not in self.quiet:
                if failed is None:
                    failed = np.full(len(self._cluster), FEASIBLE, dtype=np.int16)
                _note(failed, position, self._codes[plugin.name])
        if failed is not None:
            failed.flags.writeable = False
        return failed

    def _combine_near(self, framed: FramedVerdicts | None) -> None:
        """Each node's first rejecting plugin among those that read only the node and its pods."""
        self._node_failed = self._combine_nodes() if framed is None else framed.failed
        self._refuses_none = self._node_failed is None
        if self._node_failed is None:
            failed = np.full(len(self._cluster), FEASIBLE, dtype=np.int16)
        else:
            failed = self._node_failed.copy()
        for position, plugin in self._stages.row_filter:
            if plugin.name in self._row_loud:
                self._refuses_none = False
                _note(failed, position, self._codes[plugin.name])
        # A new array: readers of the old one keep its values.
        self._near_failed = failed
        self.failed = np.empty(0, dtype=np.int16)

    def _patch_near(self, rows: RowArray, refusing: list[Refusing]) -> None:
        """The same for changed rows only, given the rejections by plugins that read a node's own pods."""
        before = self._near_failed[rows]
        if self._node_failed is not None:
            after = self._node_failed[rows]
        elif refusing or (len(rows) and before.item(before.argmin()) != FEASIBLE):
            after = np.full(len(rows), FEASIBLE, dtype=np.int16)
        else:
            return
        for position, codes in refusing:
            _note(after, position, codes)
        if np.count_nonzero(before != after):
            self._near_failed[rows] = after
            if self.failed is self._near_failed:
                self.feasible = np.flatnonzero(self.failed == FEASIBLE)

    def _patch_far(self, rows: RowArray, far: Iterable[Refusing]) -> None:
        """Add the other plugins' rejections for changed rows; elsewhere they hold."""
        after = self._near_failed[rows]
        for position, codes in far:
            _note(after, position, codes[rows])
        if np.count_nonzero(self.failed[rows] != after):
            self.failed[rows] = after
            self.feasible = np.flatnonzero(self.failed == FEASIBLE)

    def _add_far(self, far: Iterable[Refusing], allowed: frozenset[str] | None) -> None:
        """Add the other plugins' rejections, and the nodes that PreFilter excluded."""
        if not far and allowed is None:
            if self.failed is not self._near_failed:
                self.failed = self._near_failed
                self.feasible = (
                    self._shared.rows() if self._refuses_none else np.flatnonzero(self.failed == FEASIBLE)
                )
                self.generation += 1
            return
        self.generation += 1
        self.failed = self._near_failed.copy()
        for position, codes in far:
            _note(self.failed, position, codes)
        if allowed is not None:
            excluded = np.ones(len(self.failed), dtype=np.bool_)
            excluded[[self._cluster.rows[name] for name in allowed if name in self._cluster.rows]] = False
            self.failed[excluded] = EXCLUDED
        self.feasible = np.flatnonzero(self.failed == FEASIBLE)


def _note(failed: PositionArray, position: int, codes: IntArray) -> None:
    """Enter a plugin's rejections where no earlier plugin rejects."""
    np.putmask(failed, (codes != 0) & (failed > position), position)
