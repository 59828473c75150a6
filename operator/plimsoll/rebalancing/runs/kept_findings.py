"""Keeps what plans counted, so that the next run reads only what changed.

A run reads a fork of the cluster. The pods of a row are one mapping, which the cluster and its forks share
until one of them writes: the writer copies the mapping first. A row with the identical mapping as in the run
before has the same pods in the same state. So comparing 5,000 identities finds the rows that changed, and
comparing identities within these finds the pods (docs/adr/0029-kept-findings.md).
"""

from collections.abc import Iterable, Mapping
from threading import Lock

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.columns.pod_counts import PodCounts
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.planning.proven.plan_builder import KEPT

#: Pod indexes of the engine, by row, that proofs need and that are slow to build. A cluster that never placed
#: a pod that needs one lacks it.
KEPT_BY_ROW: tuple[type[PodIndex], ...] = (PodCounts,)

Change = tuple[str, list[PodInfo], list[PodInfo]]
"""A node, the pods that left it, and those that came."""


class KeptFindings:
    """The pod indexes of strategies as of the latest run.

    One object serves all policies of one cluster, whose plans may be made concurrently: call ``bring_up``
    with the cluster of each, in a process that lasts. The object may be discarded at any time; everything is
    then counted again. Nothing here depends on a policy, and no module has state.

    It references the placed pods, the mapping of each row, and the indexes: 55 MiB in addition to the pods
    themselves at 5,000 nodes and 100,000 pods, and the rows that the cluster has rewritten since.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[str, Mapping[str, PodInfo]] = {}
        self._indexes: tuple[PodIndex, ...] = ()
        self._by_row: dict[type[PodIndex], PodIndex] = {}
        #: epoch, capacity and names of the nodes, row by row, for which the indexes by row are valid
        self._place: tuple[int, int, list[str]] = (-1, 0, [])

    def clear(self) -> None:
        """Drop everything; the next plan counts again."""
        with self._lock:
            self._rows, self._indexes, self._by_row = {}, (), {}

    def bring_up(self, cluster: Cluster) -> int:
        """Give the cluster the pod indexes, recounted where it differs from the latest call's cluster.

        Expects the same cluster or a fork of it; any other works too. Returns how many pods differ.
        """
        with self._lock:
            rows = {node.name: pods for node, pods in zip(cluster.nodes, cluster.share_pods(), strict=True)}
            if not self._indexes:
                self._indexes = tuple(kind(cluster) for kind in KEPT)  # type: ignore[call-arg] # see PodIndex
            changes = [
                (name, *_differing(self._rows.get(name, _NO_PODS), rows.get(name, _NO_PODS)))
                for name in {**self._rows, **rows}
                if self._rows.get(name) is not rows.get(name)
            ]
            for index in self._indexes:
                _follow(index, changes, {})
            self._follow_by_row(changes, cluster)
            self._rows = rows
            for index in self._indexes:
                cluster.adopt(index.fork())
            return sum(max(len(gone), len(come)) for _, gone, come in changes)

    def _follow_by_row(self, changes: Iterable[Change], cluster: Cluster) -> None:
        place = (cluster.epoch, cluster.capacity, [node.name for node in cluster.nodes])
        if place != self._place:
            self._place, self._by_row = place, {}
        for kind in KEPT_BY_ROW:
            if cluster.has_index(kind):  # the scheduler updates it
                self._by_row.pop(kind, None)
                continue
            index = self._by_row.get(kind)
            if index is None:
                self._by_row[kind] = cluster.index(kind).fork()
            else:
                _follow(index, changes, cluster.rows)
                cluster.adopt(index.fork())


_NO_PODS: Mapping[str, PodInfo] = {}


def _follow(index: PodIndex, changes: Iterable[Change], rows: Mapping[str, int]) -> None:
    """Apply changed pods to an index; an index that depends on no rows ignores them."""
    for name, gone, _ in changes:
        for pod in gone:
            index.remove(pod, rows.get(name, 0))
    index.add_all((pod, rows.get(name, 0)) for name, _, come in changes for pod in come)


def _differing(
    before: Mapping[str, PodInfo], after: Mapping[str, PodInfo]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """The pods that differ between two mappings: those before, and those after."""
    were, are = (dict(zip(map(id, pods.values()), pods.values(), strict=True)) for pods in (before, after))
    return [were[each] for each in were.keys() - are.keys()], [are[each] for each in are.keys() - were.keys()]
