"""Finds the changes of a cluster since results were computed, by its clocks and its log of changed rows."""

from typing import TypeAlias

from plimsoll.engine.kernel.library import MOST_CHANGES
from plimsoll.framework import Snapshot
from plimsoll.model.columns.cluster import Cluster

#: The tick, node tick and epoch of a cluster and the version of its objects, at one moment.
Clocks: TypeAlias = tuple[int, int, int, int]

#: The clocks of results that were never computed.
NEVER: Clocks = (-1, -1, -1, -1)


def clocks_of(cluster: Cluster) -> Clocks:
    """The present clocks (docs/cached-answers.md)."""
    return cluster.tick, cluster.node_tick, cluster.epoch, cluster.objects.version


class ClusterChanges:
    """The changes since a moment. Valid until the next change.

    Attributes:
        all: A window on all nodes.
        since: The tick of that moment.
        is_everything: Whether nothing that was computed then holds.
        is_nothing: Whether nothing has changed.
        in_nodes: Whether node objects have changed, not only the pods on nodes.
        span: Address and number of the changed rows, for the kernel; None: use ``rows``.
        nodes: A window on the nodes whose object has changed, if ``in_nodes``; None: all nodes.
    """

    __slots__ = (
        "_cluster",
        "_rows",
        "all",
        "in_nodes",
        "is_everything",
        "is_nothing",
        "nodes",
        "since",
        "span",
    )

    def __init__(self, cluster: Cluster, since: Clocks) -> None:
        tick, node_tick, epoch, objects_version = since
        self._cluster = cluster
        self._rows: Snapshot | None = None
        self.all = Snapshot(cluster)
        self.since = tick
        is_comparable = epoch == cluster.epoch and objects_version == cluster.objects.version
        self.is_nothing = is_comparable and tick == cluster.tick
        self.span = cluster.span_since(tick, MOST_CHANGES) if is_comparable else None
        self.nodes: Snapshot | None = None
        self.in_nodes = self.is_everything = False
        if self.span is None and not (is_comparable and cluster.changed_since(tick) is not None):
            self.is_everything = self.in_nodes = True
        elif node_tick != cluster.node_tick:
            self.nodes = self.all.at(cluster.nodes_changed_since(self.rows.rows, tick))
            self.in_nodes = len(self.nodes) > 0

    @property
    def rows(self) -> Snapshot:
        """A window on the nodes that have changed, or whose pods have; not for ``is_everything``."""
        if self._rows is None:
            self._rows = Snapshot(self._cluster, self._cluster.changed_since(self.since))
        return self._rows
