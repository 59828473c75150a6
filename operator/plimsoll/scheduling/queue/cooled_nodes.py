"""Requeues pods that a busy node rejected, when the load of the node has fallen.

It checks after each refresh of the load book, so there is at most one event per refresh.

Formula, for each node and for cpu, memory and the peaks of both, in percent of its allocatable::

        reference = max(reference, now)             at each check
        fell        where reference - now >= DEAD_BAND, or a stale node is measured again
        reference = now                             for nodes that fell, once they have been returned

So a load that varies by less than the dead band is ignored, and a slowly falling one is reported every few
points.

Edges: a node that is not measured counts with the median of the measured ones, as in the plugin that rejects.
Axis letter: N nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from plimsoll.framework import ActionType, ClusterEvent, EventResource
from plimsoll.load.load_book import LoadBook, load_of, peak_of
from plimsoll.load.load_fall import LoadFall
from plimsoll.load.readings import PER_COLUMN_UNIT, FloatArray
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import CPU, MEMORY, Cluster
from plimsoll.model.columns.columns import BoolArray, IntArray
from plimsoll.scheduling.queue.feed import QueueFeed
from plimsoll.timing.signal import Signal

#: Percentage points by which a node's load must fall before pods are tried again.
DEAD_BAND = 3.0

PER_UNIT = np.array(PER_COLUMN_UNIT, dtype=np.int64)


@dataclass(slots=True)
class CoolingNodes:
    """Remembers the highest load of nodes since they were last returned."""

    _names: Sequence[str] = field(default=(), init=False)
    _epoch: int = field(default=-1, init=False)
    _reference: FloatArray = field(default_factory=lambda: np.zeros((1, 4)), init=False)
    _is_stale: BoolArray = field(default_factory=lambda: np.zeros(1, dtype=np.bool_), init=False)

    def look(self, cluster: Cluster) -> LoadFall | None:
        """The nodes whose load has fallen since they were last returned; None for none."""
        book = cluster.index(LoadBook)
        self._follow(cluster)
        now, room = _percent(book, cluster)
        states = book.known[: len(cluster)]
        np.maximum(self._reference, now, out=self._reference)
        fell = (self._reference - now >= DEAD_BAND).any(axis=1)
        renewed = self._is_stale & (states == LoadState.MEASURED)
        fell |= renewed
        self._is_stale = states == LoadState.STALE
        if not fell.any():
            return None
        found = LoadFall(self._reference[fell], now[fell], room[fell], renewed[fell], book)
        self._reference[fell] = now[fell]
        return found

    def _follow(self, cluster: Cluster) -> None:
        """Update the rows after nodes were added, deleted or moved."""
        if cluster.epoch == self._epoch:
            return
        known = {name: row for row, name in enumerate(self._names)}
        self._names, self._epoch = [node.name for node in cluster.nodes], cluster.epoch
        nothing = len(known)  # an extra row after those of the nodes
        at = np.array([known.get(name, nothing) for name in self._names], dtype=np.intp)
        self._reference = np.vstack((self._reference[:nothing], np.zeros(4)))[at]
        self._is_stale = np.append(self._is_stale[:nothing], False)[at]


def _percent(book: LoadBook, cluster: Cluster) -> tuple[FloatArray, IntArray]:
    """Load and peak in percent of allocatable, shape (N, 4), and allocatable, shape (N, 2)."""
    count = len(cluster)
    room = cluster.allocatable[:count, [CPU, MEMORY]] * PER_UNIT
    system, sums, known = book.system[:count], book.sums[:count], book.known[:count]
    middle = np.where((known == LoadState.MEASURED)[:, None], 0, room // 100 * np.array(book.middle))
    used = np.hstack((np.maximum(load_of(system, sums), middle), np.maximum(peak_of(system, sums), middle)))
    return 100.0 * used / np.maximum(np.hstack((room, room)), 1), room


@dataclass(slots=True, eq=False)
class CooledNodes:
    """Watches the load book for the queue.

    Attributes:
        refreshed: Notified when the book has been refreshed.
    """

    feed: QueueFeed
    cluster: Cluster
    refreshed: Signal
    _nodes: CoolingNodes = field(default_factory=CoolingNodes, init=False)

    async def run(self) -> None:
        """Check after each refresh, until cancelled."""
        seen = self.refreshed.count
        while True:
            seen = await self.refreshed.wait(seen)
            self._look()

    def _look(self) -> None:
        cluster = self.cluster
        if not cluster.has_index(LoadBook):
            return
        fell = self._nodes.look(cluster)
        if fell is not None:
            change = ClusterEvent(
                EventResource.NODE_LOAD, ActionType.UPDATE, None, fell, cluster.objects.read_only
            )
            self.feed.happened(change)
