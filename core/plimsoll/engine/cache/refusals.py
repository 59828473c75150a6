"""Words the verdicts of filters on one template: the status of each rejected node, and the pod's message."""

from collections.abc import Iterator

import numpy as np

from plimsoll.engine.cache.filter_results import EXCLUDED, FEASIBLE, FilterResults
from plimsoll.engine.cache.pre_filter import PreFilterResults
from plimsoll.engine.plugin_calls import answered
from plimsoll.engine.profile import Profile
from plimsoll.engine.row_statuses import RowStatuses
from plimsoll.framework import (
    SUCCESS,
    Code,
    Diagnosis,
    FilterPlugin,
    IntArray,
    PluginError,
    PodInfo,
    Status,
)
from plimsoll.framework.status import count_reasons
from plimsoll.model.columns.columns import PositionArray, RowArray, told_apart

_FirstRefusals = tuple[FilterPlugin, RowArray, list[int], IntArray]
"""A plugin, the nodes that it is the first to reject, their distinct codes, and which of these each has."""


class TemplateRefusals:
    """The rejections of nodes, with reasons, for the latest refresh; methods raise PluginError."""

    def __init__(self, profile: Profile, pre_filter: PreFilterResults, filters: FilterResults) -> None:
        self._plugins = profile.filter
        self._pre_filter = pre_filter
        self._filters = filters
        self._diagnosis: Diagnosis | None = None
        self._rows: dict[Code, RowArray] = {}
        self._found: list[_FirstRefusals] = []

    def forget(self) -> None:
        """Drop what is kept: verdicts are renewed."""
        self._diagnosis = None
        self._rows.clear()
        self._found.clear()

    def status(self, row: int, pod: PodInfo) -> Status:
        """Why a node is infeasible; success if it is feasible."""
        position = int(self._filters.failed[row])
        if position == FEASIBLE:
            return SUCCESS
        if position == EXCLUDED:
            return self._pre_filter.absent
        plugin = self._plugins[position]
        return self._refusal(plugin, int(self._filters.codes(plugin.name)[row]), pod)

    def rows_of_filters(self) -> RowArray:
        """Rows that a filter plugin rejected, ascending."""
        failed = self._filters.failed
        return np.flatnonzero((failed != FEASIBLE) & (failed != EXCLUDED))

    def rows_with(self, code: Code, pod: PodInfo) -> RowArray:
        """Rows whose first rejection has that status code, ascending."""
        known = self._rows.get(code)
        if known is not None:
            return known
        chosen = np.zeros(len(self._filters.failed), dtype=np.bool_)
        for plugin, rows, kinds, which in self._kept_refusals():
            wanted = [self._refusal(plugin, kind, pod).code is code for kind in kinds]
            chosen[rows if all(wanted) else rows[np.array(wanted)[which]]] = True
        self._rows[code] = np.flatnonzero(chosen)
        return self._rows[code]

    def _kept_refusals(self) -> list[_FirstRefusals]:
        """The refusals of all nodes, found once: preemption reads them after the diagnosis."""
        if not self._found:
            self._found = list(self._refusals(self._filters.failed))
        return self._found

    def _refusals(self, failed: PositionArray) -> Iterator[_FirstRefusals]:
        """The plugins that are first to reject some nodes."""
        rest = failed[failed != FEASIBLE]
        while len(rest):  # few positions occur, so that sorting all of them would cost more
            position = int(rest.min())
            rest = rest[rest != position]
            if position != EXCLUDED:
                plugin = self._plugins[position]
                rows = np.flatnonzero(failed == position)
                yield plugin, rows, *told_apart(self._filters.codes(plugin.name)[rows])

    def _refusal(self, plugin: FilterPlugin, code: int, pod: PodInfo) -> Status:
        status = answered(plugin.name, "filter", plugin.refusal, code, self._pre_filter.state, pod).by(
            plugin.name
        )
        if not status.is_rejected:
            raise PluginError(plugin.name, "filter", status.message or status.code.value)
        return status

    def diagnose(self, pod: PodInfo, overrides: RowStatuses) -> Diagnosis:
        """Fold the rejections of all nodes into counts; ``overrides`` replace statuses by row."""
        if self._diagnosis is not None and not len(overrides):
            return self._diagnosis
        failed = self._filters.failed
        if len(overrides):
            failed = failed.copy()
            failed[overrides.rows] = FEASIBLE
        excluded = int(np.count_nonzero(failed == EXCLUDED))
        counted = [*overrides.counted(), (self._pre_filter.absent, excluded)]
        plugins = {*self._pre_filter.narrowing, *(status.plugin for status, _ in counted[:-1])}
        if not self._pre_filter.rejected.is_success:
            plugins = {self._pre_filter.rejected.plugin} if self._pre_filter.rejected.plugin else plugins
        for plugin, rows, kinds, which in self._refusals(failed) if len(overrides) else self._kept_refusals():
            plugins.add(plugin.name)
            counts = [len(rows)] if len(kinds) == 1 else np.bincount(which).tolist()
            counted += [
                (self._refusal(plugin, kind, pod), count) for kind, count in zip(kinds, counts, strict=True)
            ]
        # The nodes that are named do not exist, and a new one has another name.
        is_nowhere = (
            self._pre_filter.rejected.is_success
            and bool(self._pre_filter.narrowing)
            and excluded == len(failed)
        )
        diagnosis = Diagnosis(
            node_count=len(failed),
            reasons={reason: count for reason, count in count_reasons(counted).items() if count},
            plugins=frozenset(plugins - {""}),
            pre_filter_message=self._pre_filter.rejected.message,
            no_node_helps=self._pre_filter.rejected.no_node_helps or is_nowhere,
        )
        if not len(overrides):
            self._diagnosis = diagnosis
        return diagnosis
