"""Filters and scores the nodes for a pod of one profile, and chooses the best, ties broken at random.

Results are cached for each pod template.

Has the steps of a scheduling attempt (:mod:`plimsoll.engine.attempt`) and the evaluations that plans and
explanations need. Nothing here changes the cluster.

Source: kube-scheduler v1.36, ``schedule_one.go``.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from plimsoll.engine.cache.filter_results import EXCLUDED, FEASIBLE
from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.cache.templates import TemplateCaches
from plimsoll.engine.decision import AttemptOutcome, Decision, Evaluation, Ranking
from plimsoll.engine.extender import EXTENDER
from plimsoll.engine.kernel.library import KERNEL, Kernel
from plimsoll.engine.nominated_requests import NominatedRequestsCache
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.plugin_calls import called, nominated
from plimsoll.engine.profile import Profile
from plimsoll.engine.row_statuses import NONE, RowStatuses
from plimsoll.engine.trial import Trial
from plimsoll.engine.what_if import LEFT, TemplateWhatIf, worded
from plimsoll.framework import (
    SKIP,
    Code,
    CycleState,
    Nomination,
    PluginError,
    PodInfo,
    PodTemplate,
    Rejections,
    Snapshot,
    Status,
    unresolvable,
)
from plimsoll.framework.plugin_answers import of_kind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.kinds.deployment import SURGED, deployment_name_of, node_of

#: Chooses one of ``n`` equally good nodes: a number in 0..n-1.
Choose = Callable[[int], int]


class Filtered(Struct, frozen=True):
    """The filter results of one pod.

    Attributes:
        cache: The refreshed cache of its template.
        overrides: Statuses by row that replace the cache's own, because of nominated pods.
        rows: Rows of the feasible nodes, ascending.
        what_if: The source of the overrides; None without nominated pods.
    """

    cache: TemplateCache
    overrides: RowStatuses
    rows: RowArray
    what_if: TemplateWhatIf | None = None

    def among(self, rows: RowArray) -> RowArray:
        """Those of some rows, ascending, whose nodes are feasible."""
        if self.rows is self.cache.feasible:
            feasible: RowArray = rows[self.cache.failed[rows] == FEASIBLE]
        else:
            feasible = rows[np.isin(rows, self.rows)]
        return feasible


class ProfileScheduler:
    """Schedules the pods of one profile on one cluster, with a cache for each template.

    Methods raise PluginError where a plugin raised or broke a rule.

    Args:
        cluster: The cluster that it reads and never writes.
        choose: Breaks ties; by default, the first of the best (by row).
        nominator: Shared by the schedulers of one cluster; by default its own.
        kernel: Computes where it can; None: numpy computes.
    """

    def __init__(
        self,
        profile: Profile,
        cluster: Cluster,
        choose: Choose = lambda _: 0,
        nominator: Nominator | None = None,
        kernel: Kernel | None = KERNEL,
    ) -> None:
        self.profile = profile
        self.cluster = cluster
        self.nominator = Nominator() if nominator is None else nominator
        self._choose = choose
        self._kernel = kernel
        self._caches = TemplateCaches(profile, cluster, kernel)
        self._claims = NominatedRequestsCache(cluster, self.nominator)

    def on(self, cluster: Cluster, profile: Profile) -> "ProfileScheduler":
        """A scheduler with the same tie-break for another profile and cluster, such as a fork of this one."""
        return ProfileScheduler(profile, cluster, self._choose, self.nominator, self._kernel)

    def evaluate(self, pod: PodInfo) -> Evaluation:
        """Every node's verdict and scores, as if the pod had no nominated node."""
        found = self.filtered(pod)
        cache, rows = found.cache, found.rows
        nodes = self.cluster.nodes
        statuses = {
            nodes[row].name: cache.refusals.status(int(row), pod)
            for row in np.flatnonzero(cache.failed != FEASIBLE)
        } | {nodes[row].name: status for row, status in worded(found.overrides, found.what_if).items()}
        return Evaluation(
            pre_filter=cache.pre_filter.rejected,
            statuses=statuses,
            feasible=tuple(nodes[row].name for row in rows),
            scores=cache.score(pod, rows) if len(rows) else None,
            state=cache.state,
        )

    def rank(self, pod: PodInfo) -> Ranking:
        """The feasible nodes and their totals, as if the pod had no nominated node; nothing is preempted."""
        found = self.filtered(pod)
        cache, rows = found.cache, found.rows
        if not len(rows):
            diagnosis = cache.refusals.diagnose(pod, worded(found.overrides, found.what_if))
            return Ranking(self.cluster, rows, np.empty(0, dtype=np.int64), diagnosis)
        return Ranking(self.cluster, rows, cache.totals(pod, rows))

    def what_if(self, pod: PodInfo) -> TemplateWhatIf:
        """A what-if evaluation of the filters for the pod: the results if other pods left."""
        found = self.filtered(pod)
        return self._what_if(found, pod, found.overrides)

    def refreshed(self, pod: PodInfo) -> TemplateCache:
        """The cache of the pod's template, refreshed to the present cluster."""
        # A pod's named node is not part of its template: nothing that is kept for its siblings holds.
        own = bool(pod.pod.spec.node_name)
        cache = TemplateCache(self.profile, self.cluster) if own else self._caches.use(pod.template)
        cache.refresh(pod)
        for position, plugin in self.profile.stages.failing:
            if plugin.name not in cache.pre_filter.skipped and cache.pre_filter.rejected.is_success:
                rows = np.flatnonzero(cache.failed == position)
                message = called(plugin.name, "filter", plugin.failure, cache.state, rows)
                if message:
                    raise PluginError(plugin.name, "filter", of_kind(message, str, plugin.name, "filter"))
        return cache

    def filtered(
        self, pod: PodInfo, cache: TemplateCache | None = None, *, only: int | None = None
    ) -> Filtered:
        """The filter results for the present cluster, nominated pods included.

        ``cache`` is passed if it is refreshed already. With ``only``, nominations to nodes other than this
        row are ignored.
        """
        if cache is None:
            cache = self.refreshed(pod)
        if not self.nominator.by_node:
            if self._claims.levels:
                self._claims.forget()
            if SURGED not in pod.pod.metadata.annotations:
                return Filtered(cache, NONE, cache.feasible if len(cache.feasible) else self._yielded(cache))
        return self._with_nominated(cache, pod, only)

    def decides_by(self, template: PodTemplate) -> Hashable | None:
        """Equal for templates on whose pods local plugins decide equally; None: equal to no other's.

        Such templates may differ in labels, owners and names of containers. Global plugins may treat them
        differently (:meth:`is_of_no_concern`).
        """
        capabilities = self.profile.capabilities
        if template.is_heavy or template.shape is None or capabilities.labelled:
            return None
        signatures = [
            called(name, "signature", signer.signature, template) for name, signer in capabilities.signing
        ]
        return None if None in signatures else (template.shape, *signatures)

    def is_of_no_concern(self, pod: PodInfo, *, scored: bool = True) -> bool:
        """Whether all plugins that read more than a node and its pods skip for this pod, as things are.

        False also for a pod that is nominated or has to leave a node. Without ``scored`` those that score
        are not asked.
        """
        stages = self.profile.stages
        if stages.individual or self.nominator.by_node or SURGED in pod.pod.metadata.annotations:
            return False
        state, snapshot = CycleState(), Snapshot(self.cluster)
        for plugin in stages.global_pre_filter:
            if called(plugin.name, "preFilter", plugin.pre_filter, state, pod, snapshot) is not SKIP:
                return False
        for scorer in stages.global_pre_score if scored else ():
            if called(scorer.name, "preScore", scorer.pre_score, state, pod, snapshot) is not SKIP:
                return False
        return True

    def _yielded(self, cache: TemplateCache) -> RowArray:
        """If no row is feasible: the rows that only a yielding filter rejects."""
        position = self.profile.stages.yielding
        if position is None:
            return cache.feasible
        found: RowArray = np.flatnonzero(cache.failed == position)
        return found

    def names(self, rows: RowArray) -> list[str]:
        """The names of these nodes."""
        return [self.cluster.nodes[row].name for row in rows.tolist()]

    def nominated_row(self, pod: PodInfo) -> int | None:
        """The row of the pod's nominated node, or None."""
        if not self.nominator.by_node and not pod.pod.status.nominated_node_name:
            return None
        row = self.cluster.rows.get(self.nominator.node_of(pod.uid) or pod.pod.status.nominated_node_name)
        return None if row is None or row == _left_row(pod, self.cluster) else row

    def holds(self, found: Filtered, pod: PodInfo, row: int) -> bool:
        """Whether the nominated node still passes the filters, even if PreFilter excluded it."""
        cache = found.cache
        if (found.rows == row).any():
            return True
        if int(cache.failed[row]) != EXCLUDED or not cache.pre_filter.rejected.is_success:
            return False
        return self._beyond(cache, pod, row).is_success

    def _beyond(self, cache: TemplateCache, pod: PodInfo, row: int) -> Status:
        """The filter results of a node that PreFilter excluded."""
        return Trial(self.profile, cache.state, pod, self.cluster.fork(), cache.pre_filter.skipped).status(
            row
        )

    def _asked_first(self, cache: TemplateCache, pod: PodInfo) -> dict[int, Status]:
        """The nominated node's status if PreFilter excluded it; it was evaluated first, so this stays."""
        row = self.nominated_row(pod)
        if row is None or int(cache.failed[row]) != EXCLUDED or not cache.pre_filter.rejected.is_success:
            return {}
        status = self._beyond(cache, pod, row)
        return {} if status.is_success else {row: status}

    def placed(
        self,
        pod: PodInfo,
        found: Filtered,
        best: Sequence[int] | RowArray,
        total: int | None = None,
        feasible: int = 1,
    ) -> Decision:
        """Place the pod on one of these equally good nodes; ``total`` is None if nothing was scored."""
        row = int(best[self._choose(len(best)) if len(best) > 1 else 0])
        node = self.cluster.nodes[row].name
        return Decision(
            pod, AttemptOutcome.SCHEDULED, node, total, feasible, len(best), state=found.cache.state
        )

    def broken(self, pod: PodInfo, exc: PluginError) -> Decision:
        """The decision for an attempt that a plugin's error ended; drops the cache."""
        self._caches.drop(pod.template)
        return Decision(pod, AttemptOutcome.ERROR, message=str(exc), error=exc)

    def reject(self, pod: PodInfo, found: Filtered, refused: Mapping[int, Status] | None = None) -> Decision:
        """The decision that no node is feasible, after running PostFilter.

        ``refused`` has the statuses by row of feasible nodes that extenders rejected; None if no extender was
        called. Victims that leave are not assumed to change an extender's response.
        """
        cache = found.cache
        overrides = worded(found.overrides, found.what_if)
        if first := self._asked_first(cache, pod):
            overrides = RowStatuses.of({**overrides, **first})
        shown = effective = overrides
        if refused:
            lost = {row: unresolvable(*status.reasons) for row, status in refused.items()}
            shown, effective = RowStatuses.of({**overrides, **refused}), RowStatuses.of({**overrides, **lost})
        diagnosis = cache.refusals.diagnose(pod, shown)
        if refused is not None and len(found.rows):
            diagnosis = replace(diagnosis, plugins=diagnosis.plugins | {EXTENDER})
        rejections = Rejections(
            _LazyStatuses(cache, pod, shown),
            cache.pre_filter.absent,
            diagnosis,
            self._what_if(found, pod, effective),
            self.nominator.node_of(pod.uid),
            self.profile.via_eviction,
        )
        nomination = self._post_filter(cache, pod, rejections)
        if not nomination.status.is_success:
            diagnosis = replace(diagnosis, post_filter_message=nomination.status.message)
        return Decision(
            pod,
            AttemptOutcome.UNSCHEDULABLE,
            message=str(diagnosis),
            diagnosis=diagnosis,
            nomination=nomination,
        )

    def _post_filter(self, cache: TemplateCache, pod: PodInfo, rejections: Rejections) -> Nomination:
        """Run the PostFilter plugins in turn; reasons add up. Clear the nomination if none can nominate."""
        if not self.profile.post_filter:
            return Nomination(Status(Code.UNRESOLVABLE), node="")
        snapshot = Snapshot(self.cluster)
        reasons: list[str] = []
        # Upstream keeps it: then a pod whose policy stopped preempting reserves its node forever.
        last = Nomination(Status(Code.UNSCHEDULABLE), node=None if self.profile.nominates else "")
        deallocates, deletes = None, None
        for plugin in self.profile.post_filter:
            answer = nominated(plugin, self.cluster, cache.state, pod, snapshot, rejections)
            deallocates, deletes = deallocates or answer.deallocates, deletes or answer.deletes
            if answer.node is not None:
                last = answer
            if answer.status.is_success:
                return replace(answer, plugin=plugin.name, deallocates=deallocates, deletes=deletes)
            reasons += answer.status.reasons
            if answer.status.code is not Code.UNSCHEDULABLE:
                break
        status = Status(Code.UNSCHEDULABLE, tuple(reasons))
        return replace(last, status=status, deallocates=deallocates, deletes=deletes)

    def _with_nominated(self, cache: TemplateCache, pod: PodInfo, only: int | None = None) -> Filtered:
        """Statuses by row where nominated pods change the verdict, and the remaining feasible rows.

        A node must pass with the nominated pods of the same or higher priority on it, and without them. With
        ``only``, the results for other rows do not count.
        """
        if not cache.pre_filter.rejected.is_success or not self.nominator.by_node:
            return self._kept_off(cache, pod, NONE)
        claims = self._claims.against(pod) if only is None else self._claims.on(only, pod)
        nodes = claims.rows[cache.failed[claims.rows] != EXCLUDED]
        what_if = TemplateWhatIf(cache, pod, claims, self.nominator.by_node)
        if not len(nodes):
            statuses = NONE
        elif what_if.is_additive:
            statuses = what_if.refused(nodes, what_if.refusals_if(nodes, self.cluster.requested[nodes]))
        else:
            statuses = self._tried(cache, pod, what_if, nodes)
        return self._kept_off(cache, pod, statuses, what_if if only is None else None)

    def _tried(
        self, cache: TemplateCache, pod: PodInfo, what_if: TemplateWhatIf, nodes: RowArray
    ) -> RowStatuses:
        """The rejections of nodes with their nominated pods present, each evaluated on a fork."""
        statuses: dict[int, Status] = {}
        # One fork serves all nodes: pods added for one are removed before the next.
        fork = self.cluster.fork()
        for row in nodes.tolist():
            trial = Trial(self.profile, cache.state.clone(), pod, fork, cache.pre_filter.skipped)
            for each in what_if.ahead[row]:
                trial.add(each, row)
            status = trial.status(row)
            for each in what_if.ahead[row]:
                fork.displace(each.uid)
            if not status.is_success:
                statuses[row] = status
        return RowStatuses.of(statuses)

    def _kept_off(
        self,
        cache: TemplateCache,
        pod: PodInfo,
        overrides: RowStatuses,
        what_if: TemplateWhatIf | None = None,
    ) -> Filtered:
        """The same, plus the node that a surge moves the pod's predecessor off."""
        left = _left_row(pod, self.cluster)
        if left is not None and cache.pre_filter.rejected.is_success and int(cache.failed[left]) == FEASIBLE:
            overrides = RowStatuses.of({**overrides, left: LEFT})
        rows = cache.feasible if len(cache.feasible) else self._yielded(cache)
        if len(overrides) and len(rows):
            stays = np.ones(len(cache.failed), dtype=np.bool_)
            stays[overrides.rows] = False
            rows = rows[stays[rows]]
        return Filtered(cache, overrides, rows, what_if)

    def _what_if(self, found: Filtered, pod: PodInfo, overrides: RowStatuses) -> TemplateWhatIf:
        what_if = found.what_if
        if what_if is None:
            what_if = TemplateWhatIf(found.cache, pod, self._claims.against(pod), self.nominator.by_node)
        what_if.overrides = overrides
        return what_if


def _left_row(pod: PodInfo, cluster: Cluster) -> int | None:
    """The row of the node that a surge moves this pod's predecessor off, while the predecessor is there.

    The mark is in the pod's annotations, so every process knows it.
    """
    mark = pod.pod.metadata.annotations.get(SURGED)
    row = cluster.rows.get(node_of(mark)) if mark else None
    if row is None:
        return None
    name = deployment_name_of(pod.pod)
    stands = any(
        each.namespace == pod.namespace
        and each.uid != pod.uid
        and each.pod.metadata.annotations.get(SURGED) != mark
        and deployment_name_of(each.pod) == name
        for each in cluster.pods_on(row)
    )
    return row if name and stands else None


class _LazyStatuses(Mapping[int, Status]):
    """Statuses by row of the nodes that were rejected explicitly, created on demand."""

    def __init__(self, cache: TemplateCache, pod: PodInfo, overrides: Mapping[int, Status]) -> None:
        self._cache = cache
        self._pod = pod
        self._overrides = overrides

    def __getitem__(self, row: int) -> Status:
        if row in self._overrides:
            return self._overrides[row]
        if int(self._cache.failed[row]) in (FEASIBLE, EXCLUDED):
            raise KeyError(row)
        return self._cache.refusals.status(row, self._pod)

    def __iter__(self) -> "Iterable[int]":  # type: ignore[override]  # a generator is an iterator
        yield from sorted(self._explicit())

    def __len__(self) -> int:
        return len(self._explicit())

    def _explicit(self) -> set[int]:
        return set(self._cache.refusals.rows_of_filters().tolist()) | set(self._overrides)
