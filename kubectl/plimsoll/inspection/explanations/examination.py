"""Collects the refusals of one pod on every node, by all plugins that reject the node and not only the first.

Axis letters: F filter plugins that take part, N nodes.
"""

from functools import cached_property

import numpy as np
from msgspec import Struct

from plimsoll.engine.cache.filter_results import EXCLUDED
from plimsoll.engine.scheduler import Filtered, ProfileScheduler
from plimsoll.framework import BoolArray, FilterPlugin, IntArray, PodInfo, Snapshot, Status
from plimsoll.framework.plugin_answers import judged, of_kind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import RowArray

#: Labels that identify a node pool, the most specific first.
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
)


class RefusalGroup(Struct, frozen=True):
    """Nodes refused for the same reasons.

    Attributes:
        reasons: Plugins and their reasons, in the order of the profile.
        rows: Shape (n,): the nodes.
        pool: ``label=value`` that these nodes share and no other node has, or "".
    """

    reasons: tuple[tuple[str, tuple[str, ...]], ...]
    rows: RowArray
    pool: str = ""


class Examination:
    """The results of a profile's filters for one pod.

    Args:
        scheduler: The scheduler of the pod's profile, on the cluster.
        pod: The pod.

    Attributes:
        found: The outcome of filtering.
    """

    def __init__(self, scheduler: ProfileScheduler, pod: PodInfo) -> None:
        self.scheduler = scheduler
        self.pod = pod
        self.cluster: Cluster = scheduler.cluster
        self.found: Filtered = scheduler.filtered(pod)
        self.ahead = scheduler.what_if(pod).ahead

    @property
    def rejected(self) -> Status:
        """The status with which PreFilter rejected the pod for all nodes; success if it did not."""
        return self.found.cache.pre_filter.rejected

    @cached_property
    def plugins(self) -> tuple[FilterPlugin, ...]:
        """The filter plugins that take part; none if PreFilter rejected the pod for all nodes."""
        if not self.rejected.is_success:
            return ()
        skipped = self.found.cache.pre_filter.skipped
        return tuple(each for each in self.scheduler.profile.filter if each.name not in skipped)

    @cached_property
    def codes(self) -> IntArray:
        """The codes of each plugin, shape (F, N)."""
        empty: IntArray = np.zeros((0, len(self.cluster)), dtype=np.int64)
        results = self.found.cache.filters
        return np.array([results.codes(each.name) for each in self.plugins]) if self.plugins else empty

    @cached_property
    def excluded(self) -> BoolArray:
        """Nodes that PreFilter excluded, shape (N,)."""
        excluded: BoolArray = self.found.cache.failed == EXCLUDED
        return excluded

    @cached_property
    def feasible(self) -> BoolArray:
        """Feasible nodes, shape (N,)."""
        feasible = np.zeros(len(self.cluster), dtype=np.bool_)
        feasible[self.found.rows] = True
        return feasible

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that the filters read."""
        return Snapshot(self.cluster)

    def refusal(self, position: int, code: int) -> Status:
        """The status for a code of the plugin at a position."""
        plugin = self.plugins[position]
        answer = judged(plugin.name, "filter", plugin.refusal, code, self.found.cache.state, self.pod)
        return of_kind(answer, Status, plugin.name, "filter").by(plugin.name)

    def refusals(self, row: int) -> list[Status]:
        """All refusals of one node, in the order of the profile; none for a feasible node."""
        codes = self.codes[:, row].tolist()
        refusals = [self.refusal(position, code) for position, code in enumerate(codes) if code]
        override = self.found.overrides.get(row)
        if override is not None and not refusals:
            refusals.append(override)
        if self.excluded[row]:
            refusals.insert(0, self.found.cache.pre_filter.absent)
        return refusals

    def by_plugin(self) -> dict[str, dict[str, int]]:
        """The number of nodes by plugin and reason; a node counts once for each of its refusals."""
        counted: dict[str, dict[str, int]] = {}
        for position, plugin in enumerate(self.plugins):
            codes, counts = np.unique(self.codes[position], return_counts=True)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                for reason in self.refusal(position, code).reasons if code else ():
                    reasons = counted.setdefault(plugin.name, {})
                    reasons[reason] = reasons.get(reason, 0) + count
        for row, status in self.found.overrides.items():
            if not self.codes[:, row].any():
                reasons = counted.setdefault(status.plugin, {})
                for reason in status.reasons:
                    reasons[reason] = reasons.get(reason, 0) + 1
        return counted

    def groups(self) -> list[RefusalGroup]:
        """The refused nodes grouped by reasons, the largest group first."""
        signed = np.vstack([self.codes, self.excluded.astype(np.int64)])
        for row in self.found.overrides:
            if not signed[:, row].any():
                signed[-1, row] = 2
        _, first, inverse = np.unique(signed, axis=1, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        rows_of: dict[tuple[tuple[str, tuple[str, ...]], ...], list[RowArray]] = {}
        for kind, row in enumerate(first.tolist()):
            refusals = self.refusals(row)
            if refusals:
                reasons = tuple((each.plugin, each.reasons) for each in refusals)
                rows_of.setdefault(reasons, []).append(np.flatnonzero(inverse == kind))
        groups = [
            RefusalGroup(reasons, rows, self._pool(rows))
            for reasons, found in rows_of.items()
            for rows in (np.sort(np.concatenate(found)),)
        ]
        return sorted(groups, key=lambda group: (-len(group.rows), group.reasons))

    def _pool(self, rows: RowArray) -> str:
        """The label that distinguishes these nodes from all others."""
        for key in POOL_LABELS:
            ids = self.cluster.label(key).ids[: len(self.cluster)]
            here = ids[rows]
            if here[0] >= 0 and (here == here[0]).all() and np.count_nonzero(ids == here[0]) == len(rows):
                return f"{key}={self.cluster.nodes[rows[0]].labels[key]}"
        return ""

    def names(self, rows: RowArray) -> list[str]:
        """The names of these nodes, ascending."""
        return sorted(self.scheduler.names(rows))
