"""Evaluates filters for PostFilter plugins as if pods had left a node, within one attempt.

The cache's codes are reused for all filters that do not read pods. If the other filters read only sums of
requests, many nodes are evaluated together; otherwise a fork of the cluster is changed pod by pod and
restored.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from plimsoll.engine.cache.filter_results import FEASIBLE
from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.kernel.victims import MOST_WANTED, find_victims
from plimsoll.engine.nominated_requests import NominatedRequests
from plimsoll.engine.plugin_calls import answered, called, calling, replaced
from plimsoll.engine.row_statuses import NONE, RowStatuses
from plimsoll.engine.trial import Trial
from plimsoll.framework import (
    BoolArray,
    Code,
    FilterPlugin,
    IntArray,
    PodInfo,
    Snapshot,
    Status,
    unresolvable,
)
from plimsoll.framework.extension_points import VictimArrays
from plimsoll.framework.plugin_answers import checked, judged
from plimsoll.model.columns.columns import RowArray, told_apart

#: Follows the reasons of a node that has room but for what is reserved there. Nodes that only nominated pods
#: fill have kube-scheduler's reasons: it nominates pods, and reserves nothing else.
RESERVED = " because of reservations"


#: Rejects the node that a surge moves the pod's predecessor off.
LEFT = unresolvable("node(s) hold the pod that this one is to replace elsewhere")


class TemplateWhatIf:
    """What-if evaluations for one pod that fits nowhere.

    Args:
        claims: Requests of nominated pods.
        nominations: Pending pods by nominated node.

    Attributes:
        overrides: Statuses by row that replace the cache's own.
    """

    def __init__(
        self,
        cache: TemplateCache,
        pod: PodInfo,
        claims: NominatedRequests,
        nominations: Mapping[str, Mapping[str, PodInfo]],
    ) -> None:
        self._cache = cache
        self._pod = pod
        self.overrides = NONE
        self._claims = claims
        self._nominations = nominations
        self._capabilities = cache.profile.capabilities

    @cached_property
    def is_additive(self) -> bool:
        """Whether all pod-reading filters that take part read only sums of requests."""
        return self._capabilities.nonlinear <= self._cache.pre_filter.skipped

    def by_sums(self, rows: RowArray) -> BoolArray:
        """Which rows ``refusals_if`` can evaluate whatever pods leave them: shape (len(rows),).

        All rows, if the filters are additive. Otherwise the rows that no other filter rejects, if departures
        of pods cannot make these filters reject: there only sums remain to be checked.
        """
        if not self._cache.pre_filter.rejected.is_success:
            return np.zeros(len(rows), dtype=np.bool_)
        judged = np.ones(len(rows), dtype=np.bool_)
        if self.is_additive:
            return judged
        for plugin in self._cache.profile.filter:
            if (
                plugin.name in self._cache.pre_filter.skipped
                or plugin.name not in self._capabilities.nonlinear
            ):
                continue
            easing = self._capabilities.easing.get(plugin.name)
            with calling(plugin.name, "filter"):
                if easing is None or not easing.eased(self._pod.template):
                    return np.zeros(len(rows), dtype=np.bool_)
            judged &= self._cache.filters.codes(plugin.name)[rows] == 0
        # Only linear filters can account for nominated pods from sums of requests.
        if len(self._claims.rows):
            judged &= ~np.isin(rows, self._claims.rows)
        return judged

    def helpful(self) -> RowArray:
        """Rows rejected with UNSCHEDULABLE exactly."""
        if not self._cache.pre_filter.rejected.is_success:
            everywhere = self._cache.pre_filter.rejected.code is Code.UNSCHEDULABLE
            return np.arange(len(self._cache.failed) if everywhere else 0, dtype=np.intp)
        rows = self._cache.refusals.rows_with(Code.UNSCHEDULABLE, self._pod)
        if not len(self.overrides):
            return rows
        is_helpful = np.zeros(len(self._cache.failed), dtype=np.bool_)
        is_helpful[rows] = True
        is_helpful[self.overrides.rows] = self.overrides.have(Code.UNSCHEDULABLE)
        return np.flatnonzero(is_helpful)

    def nominated(self, row: int) -> Sequence[PodInfo]:
        """Pending pods that are nominated to the node."""
        return tuple(self._nominations.get(self._cache.cluster.nodes[row].name, {}).values())

    @property
    def ahead(self) -> Mapping[int, tuple[PodInfo, ...]]:
        """Nominated pods that the pod must leave room for, by row."""
        return self._claims.pods

    @property
    def ahead_marks(self) -> IntArray:
        """Shape (N,): 0 if no pod is ahead, else a number that is unique to the set of pods ahead."""
        return self._claims.marks

    def are_reserved(self, rows: RowArray) -> BoolArray:
        """Which rows have room but for nominated pods, and reservations among these; shape (len(rows),)."""
        failed, ahead = self._cache.failed, self.ahead
        found = [
            int(failed[row]) == FEASIBLE
            and any(each.stands_in_for is not None for each in ahead.get(row, ()))
            for row in rows.tolist()
        ]
        return np.array(found, dtype=np.bool_)

    def refusals_if(self, rows: RowArray, requested: IntArray) -> IntArray:
        """Evaluate many nodes together that can be evaluated by sums.

        A kind is the code times the number of filters, plus the filter's position.
        """
        requested = self._with_claims(rows, requested)
        snapshot = Snapshot(self._cache.cluster)
        if len(rows) < len(snapshot):
            snapshot = snapshot.at(rows)
        snapshot = snapshot.if_requested(requested)
        node_filters = self._cache.profile.stages.node_filter_names
        kinds: IntArray = np.zeros(len(rows), dtype=np.int64)
        for position, plugin in self._judges:
            if plugin.name in node_filters:
                codes = self._cache.filters.codes(plugin.name)[rows]
            else:
                codes = called(plugin.name, "filter", plugin.filter, self._cache.state, self._pod, snapshot)
                codes = checked(codes, len(rows), plugin.name, "filter")
            if np.count_nonzero(codes):
                kinds = np.where(codes != 0, codes * len(self._cache.profile.filter) + position, kinds)
        return kinds

    def find_victims(self, rows: RowArray, search: VictimArrays) -> RowArray:
        """All rows without nominated pods, if one filter that states its rule decides there."""
        cache, addresses = self._cache, self._cache.addresses
        judges = [each for each in self._judges if each[1].name not in cache.profile.stages.node_filter_names]
        if addresses.kernel is None or len(judges) != 1 or not len(rows):
            return rows
        position, plugin = judges[0]
        ruled = self._capabilities.ruled_filters.get(plugin.name)
        if ruled is None:
            return rows
        rule = judged(
            plugin.name, "filter", ruled.filter_rule, cache.state, self._pod, Snapshot(cache.cluster)
        )
        if rule is None or len(rule) > MOST_WANTED:
            return rows
        others = [other for _, other in self._judges if other is not plugin]
        left = np.isin(rows, self._claims.rows) if len(self._claims.rows) else np.zeros(len(rows), np.bool_)
        for other in others:
            left |= cache.filters.codes(other.name)[rows] != 0
        wanted = addresses, rule, position, len(cache.profile.filter), rows[~left], search
        replaced([(plugin.name, "filter")], find_victims, *wanted)
        return rows[left]

    def refusals_before_trial(self, rows: RowArray, requested: IntArray) -> IntArray:
        """A trial finds the first filter that rejects: sums tell if none that reads more comes before it."""
        cache, filters = self._cache, self._cache.profile.filter
        first = next(
            position
            for position, plugin in enumerate((*filters, None))
            if plugin is None
            or (plugin.name in self._capabilities.nonlinear and plugin.name not in cache.pre_filter.skipped)
        )
        if not len(rows) or not first or not cache.pre_filter.rejected.is_success:
            return np.zeros(len(rows), dtype=np.int64)
        kinds = self.refusals_if(rows, requested)
        # With nominated pods a trial may find another reason first.
        kinds[(kinds % len(filters) >= first) | np.isin(rows, self._claims.rows)] = 0
        return kinds

    def _with_claims(self, rows: RowArray, requested: IntArray) -> IntArray:
        """The requests of these rows, plus those of the pods ahead there."""
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
        """The filters that take part, read at most sums and may reject; the first one last."""
        cache, linear = self._cache, self._capabilities.linear
        return [
            (position, plugin)
            for position, plugin in reversed(list(enumerate(cache.profile.filter)))
            if plugin.name in linear
            and plugin.name not in cache.pre_filter.skipped
            and plugin.name not in cache.filters.accepts_all
        ]

    def refused(self, rows: RowArray, kinds: IntArray) -> RowStatuses:
        """The rejections among the kinds that ``refusals_if`` returned for these rows."""
        rows, kinds = rows[kinds != 0], kinds[kinds != 0]
        distinct, which = told_apart(kinds)
        return RowStatuses(rows, which, [self.refusal(kind) for kind in distinct])

    def refusal(self, kind: int) -> Status:
        """The rejection that a kind encodes."""
        code, position = divmod(kind, len(self._cache.profile.filter))
        plugin = self._cache.profile.filter[position]
        refusal = answered(plugin.name, "filter", plugin.refusal, code, self._cache.state, self._pod)
        return refusal.by(plugin.name)

    def on(self, row: int) -> "RowTrial":
        """Evaluate one node, pod by pod."""
        return RowTrial(self._fork.renewed(self._cache.state.clone()), row, self.ahead.get(row, ()))

    @cached_property
    def _fork(self) -> Trial:
        cache = self._cache
        known = cache.filters.node_codes()
        return Trial(
            cache.profile,
            cache.state.clone(),
            self._pod,
            cache.cluster.fork(),
            cache.pre_filter.skipped,
            known=known,
        )


class RowTrial:
    """One node of a fork that serves one node after another."""

    def __init__(self, trial: Trial, row: int, nominated: Sequence[PodInfo]) -> None:
        self._trial = trial
        self._row = row
        self._nominated = nominated
        self._removed: dict[str, PodInfo] = {}

    def remove(self, pod: PodInfo) -> None:
        """Remove the pod."""
        self._trial.remove(pod, self._row)
        self._removed[pod.uid] = pod

    def add(self, pod: PodInfo) -> None:
        """Add the pod again."""
        self._trial.add(pod, self._row)
        del self._removed[pod.uid]

    def status(self) -> Status:
        """The filters' result with the nominated pods, then without them."""
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
        """Restore the fork."""
        for pod in list(self._removed.values()):
            self.add(pod)


def worded(statuses: RowStatuses, what_if: TemplateWhatIf | None) -> RowStatuses:
    """Statuses that replace a cache's own, with the reservations in the reasons where they are the cause."""
    if what_if is None or not len(statuses):
        return statuses
    return statuses.reworded(what_if.are_reserved(statuses.rows), RESERVED, but=LEFT)
