"""KeptFindings hold what plans counted, so that the next run looks again only at what changed.

A run reads a fork of the cluster. The pods of a row are one mapping, which the cluster and its forks share
until somebody writes: then that one copies it first. A row whose mapping is the very one of the run before
has the same pods in the same state, so comparing 5,000 identities finds the rows that changed, and comparing
identities within these finds the pods (docs/adr/0029-kept-findings.md).
"""

from collections.abc import Mapping
from threading import Lock

from plimsoll.framework.descheduling.pod_indexes import (
    OwnerCounts,
    PodsByOwner,
    PodsByTemplate,
    ReadyCounts,
)
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.kinds.pod_info import PodInfo

#: Pod indexes that strategies and evictors look things up in; none of them knows rows.
KEPT: tuple[type[PodIndex], ...] = (OwnerCounts, ReadyCounts, PodsByOwner, PodsByTemplate)


class KeptFindings:
    """The pod indexes of strategies as of the latest run.

    One object serves all policies over one cluster, whose plans may be made side by side: bring up the
    cluster of each, in a process that lasts. It may be thrown away at any moment: everything is then counted
    again. Nothing here depends on a policy, and no module keeps anything.

    Holds references to the placed pods and to the mapping of each row, and the indexes: 45 MiB besides the
    pods themselves at 5,000 nodes and 100,000 pods, and the rows that the cluster has rewritten since.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[str, Mapping[str, PodInfo]] = {}
        self._indexes: tuple[PodIndex, ...] = ()

    def clear(self) -> None:
        """Keep nothing; the next plan counts everything."""
        with self._lock:
            self._rows, self._indexes = {}, ()

    def bring_up(self, cluster: Cluster) -> int:
        """Give the cluster the pod indexes, counted again where it differs from the one of the latest call.

        The cluster is the same one or a fork of it, but any other will do. Returns how many pods differ.
        """
        with self._lock:
            rows = {node.name: pods for node, pods in zip(cluster.nodes, cluster.share_pods(), strict=True)}
            if not self._indexes:
                self._indexes = tuple(kind(cluster) for kind in KEPT)  # type: ignore[call-arg] # see PodIndex
            changes = [
                (self._rows.get(name, _NO_PODS), rows.get(name, _NO_PODS))
                for name in {**self._rows, **rows}
                if self._rows.get(name) is not rows.get(name)
            ]
            differing = [_differing(before, after) for before, after in changes]
            for index in self._indexes:
                for gone, _ in differing:
                    for pod in gone:
                        index.remove(pod, 0)
                for _, come in differing:
                    for pod in come:
                        index.add(pod, 0)
            self._rows = rows
            for index in self._indexes:
                cluster.adopt(index.fork())
            return sum(max(len(gone), len(come)) for gone, come in differing)


_NO_PODS: Mapping[str, PodInfo] = {}


def _differing(
    before: Mapping[str, PodInfo], after: Mapping[str, PodInfo]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """The pods that are not among the others in the same state: those that were, those that are."""
    were, are = (dict(zip(map(id, pods.values()), pods.values(), strict=True)) for pods in (before, after))
    return [were[each] for each in were.keys() - are.keys()], [are[each] for each in are.keys() - were.keys()]
