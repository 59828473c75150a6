"""Requeues pods that a busy node rejected, when the load of the node has fallen.

It checks after each refresh of the load book, so there is at most one event per refresh.
"""

from dataclasses import dataclass, field

from plimsoll.framework import ActionType, ClusterEvent, EventResource
from plimsoll.load.load_book import LoadBook
from plimsoll.load.load_fall import CoolingNodes
from plimsoll.model.columns.cluster import Cluster
from plimsoll.scheduling.queue.feed import QueueFeed
from plimsoll.timing.signal import Signal


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
