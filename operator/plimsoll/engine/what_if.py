"""Evaluates filters for PostFilter plugins as if pods had left a node, within one attempt.

The lane's codes represent all filters that do not look at pods. Where the others look at sums of requests
alone, many nodes are judged together; else a fork of the cluster is changed pod by pod and put back.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.nominated_requests import NominatedRequests
from plimsoll.engine.plugin_calls import calling, checked
from plimsoll.engine.row_statuses import NONE, RowStatuses
from plimsoll.engine.trial import Trial
from plimsoll.framework import BoolArray, Code, FilterPlugin, IntArray, PodInfo, Reads, Snapshot, Status
from plimsoll.model.columns.columns import RowArray, told_apart


class TemplateWhatIf:
    """Questions about one pod that fits nowhere.

    Args:
        claims: What nominated pods claim.
        nominations: Pending pods by the node they are nominated to.

    Attributes:
        overrides: Statuses by row that replace the lane's own.
    """

    def __init__(
        self,
        lane: TemplateCache,
        pod: PodInfo,
        claims: NominatedRequests,
        nominations: Mapping[str, Mapping[str, PodInfo]],
    ) -> None:
        self._lane = lane
        self._pod = pod
        self.overrides = NONE
        self._claims = claims
        self._nominations = nominations
        self._capabilities = lane.profile.capabilities

    @cached_property
    def is_additive(self) -> bool:
        """Whether the filters in play that look at pods look at sums of requests alone."""
        return self._capabilities.nonlinear <= self._lane.skipped

    def by_sums(self, rows: RowArray) -> BoolArray:
        """Which of the rows ``refusals_if`` judges, whatever pods leave them: shape (len(rows),).

        All, if the filters are additive. Else those where no other filter refuses the pod, if none ever does
        because pods left: what remains to be seen there is sums.
        """
        if not self._lane.rejected.is_success:
            return np.zeros(len(rows), dtype=np.bool_)
        judged = np.ones(len(rows), dtype=np.bool_)
        if self.is_additive:
            return judged
        for plugin in self._lane.profile.filter:
            if plugin.name in self._lane.skipped or plugin.name not in self._capabilities.nonlinear:
                continue
            easing = self._capabilities.easing.get(plugin.name)
            with calling(plugin.name, "Filter"):
                if easing is None or not easing.eased(self._pod.template):
                    return np.zeros(len(rows), dtype=np.bool_)
            judged &= self._lane.filters.codes(plugin.name)[rows] == 0
        # Only linear filters can account for nominated pods from sums of requests.
        judged &= ~np.isin(rows, self._claims.rows)
        return judged

    def helpful(self) -> RowArray:
        """Rows refused with UNSCHEDULABLE exactly."""
        if not self._lane.rejected.is_success:
            everywhere = self._lane.rejected.code is Code.UNSCHEDULABLE
            return np.arange(len(self._lane.failed) if everywhere else 0, dtype=np.intp)
        rows = self._lane.rows_refused(Code.UNSCHEDULABLE, self._pod)
        if not len(self.overrides):
            return rows
        is_helpful = np.zeros(len(self._lane.failed), dtype=np.bool_)
        is_helpful[rows] = True
        is_helpful[self.overrides.rows] = self.overrides.have(Code.UNSCHEDULABLE)
        return np.flatnonzero(is_helpful)

    def nominated(self, row: int) -> Sequence[PodInfo]:
        """Pending pods that are nominated to the node."""
        return tuple(self._nominations.get(self._lane.cluster.nodes[row].name, {}).values())

    @property
    def ahead(self) -> Mapping[int, tuple[PodInfo, ...]]:
        """Nominated pods that the pod must leave room for, by row."""
        return self._claims.pods

    @property
    def ahead_marks(self) -> IntArray:
        """Shape (N,): 0 where no pod is ahead, else a number of its own for every set of them."""
        return self._claims.marks

    def refusals_if(self, rows: RowArray, requested: IntArray) -> IntArray:
        """Judge many nodes together, of those that are judged by sums.

        Kinds are the code times the number of filters, plus the filter's position.
        """
        requested = self._with_claims(rows, requested)
        snapshot = Snapshot(self._lane.cluster)
        if len(rows) < len(snapshot):
            snapshot = snapshot.at(rows)
        snapshot = snapshot.if_requested(requested)
        kinds: IntArray = np.zeros(len(rows), dtype=np.int64)
        for position, plugin in self._judges:
            if plugin.reads is Reads.NODE:
                codes = self._lane.filters.codes(plugin.name)[rows]
            else:
                with calling(plugin.name, "Filter"):
                    codes = checked(
                        plugin.filter(self._lane.state, self._pod, snapshot), len(rows), plugin.name, "Filter"
                    )
            if np.count_nonzero(codes):
                kinds = np.where(codes != 0, codes * len(self._lane.profile.filter) + position, kinds)
        return kinds

    def _with_claims(self, rows: RowArray, requested: IntArray) -> IntArray:
        """The requests of these rows, and those of the pods ahead there."""
        claiming, amounts = self._claims.rows, self._claims.amounts[:, : requested.shape[1]]
        if not len(claiming):
            return requested
        if len(claiming) == len(rows) and np.array_equal(claiming, rows):
            return requested + amounts
        known = np.searchsorted(claiming, rows)
        known[known == len(claiming)] = 0
        here = claiming[known] == rows
        if np.count_nonzero(here):
            requested = requested.copy()
            requested[here] += amounts[known[here]]
        return requested

    @cached_property
    def _judges(self) -> list[tuple[int, FilterPlugin]]:
        """The filters in play that look at sums at most and may refuse, the first one last."""
        lane, linear = self._lane, self._capabilities.linear
        return [
            (position, plugin)
            for position, plugin in reversed(list(enumerate(lane.profile.filter)))
            if plugin.name in linear
            and plugin.name not in lane.skipped
            and not (plugin.reads is Reads.NODE and plugin.name in lane.filters.quiet)
        ]

    def refused(self, rows: RowArray, kinds: IntArray) -> RowStatuses:
        """The refusals among the kinds that ``refusals_if`` returned for these rows."""
        rows, kinds = rows[kinds != 0], kinds[kinds != 0]
        distinct, which = told_apart(kinds)
        return RowStatuses(rows, which, [self.refusal(kind) for kind in distinct])

    def refusal(self, kind: int) -> Status:
        """What a kind means."""
        code, position = divmod(kind, len(self._lane.profile.filter))
        plugin = self._lane.profile.filter[position]
        with calling(plugin.name, "Filter"):
            refusal: Status = plugin.refusal(code, self._lane.state, self._pod)
        return refusal.by(plugin.name)

    def on(self, row: int) -> "RowTrial":
        """Try one node, pod by pod."""
        return RowTrial(self._fork.renewed(self._lane.state.clone()), row, self.ahead.get(row, ()))

    @cached_property
    def _fork(self) -> Trial:
        lane = self._lane
        known = lane.filters.node_codes()
        return Trial(
            lane.profile, lane.state.clone(), self._pod, lane.cluster.fork(), lane.skipped, known=known
        )


class RowTrial:
    """One node of a fork that is used for one node after another."""

    def __init__(self, trial: Trial, row: int, nominated: Sequence[PodInfo]) -> None:
        self._trial = trial
        self._row = row
        self._nominated = nominated
        self._removed: dict[str, PodInfo] = {}

    def remove(self, pod: PodInfo) -> None:
        """The pod no longer counts."""
        self._trial.remove(pod, self._row)
        self._removed[pod.uid] = pod

    def add(self, pod: PodInfo) -> None:
        """It counts again."""
        self._trial.add(pod, self._row)
        del self._removed[pod.uid]

    def status(self) -> Status:
        """What the filters say with the nominated pods, then without them."""
        if self._nominated:
            for pod in self._nominated:
                self._trial.add(pod, self._row)
            status = self._trial.status(self._row)
            for pod in self._nominated:
                self._trial.remove(pod, self._row)
            if not status.is_success:
                return status
        return self._trial.status(self._row)

    def close(self) -> None:
        """Put everything back."""
        for pod in list(self._removed.values()):
            self.add(pod)
