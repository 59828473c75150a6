"""The pods without a place: those that wait, and those that have ended without a node."""

from collections.abc import Sequence

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import PlacedPodsSubscriber
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import Pod, PodInfo


class PendingPods(PlacedPodsSubscriber):
    """The pods without a place.

    Args:
        cache: The cluster.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._unplaced: dict[str, Pod] = {}

    def observe(self, event: WatchEvent) -> None:
        """Add, update or remove pods without a place."""
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                if pod.is_terminal or not pod.node_name:
                    self._unplaced[pod.uid] = pod
                else:
                    self._unplaced.pop(pod.uid, None)
            case PodDeleted(pod):
                self._unplaced.pop(pod.uid, None)
            case _:
                return

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Remove added pods that have nodes."""
        for uid in self._unplaced.keys() & {pod.uid for pod in pods}:
            del self._unplaced[uid]

    def infos(self) -> list[PodInfo]:
        """All of them."""
        return [self._cache.info(pod) for pod in self._unplaced.values() if not self._cache.node_of(pod.uid)]

    def find(self, uid: str) -> PodInfo | None:
        """A pod by uid, placed or not."""
        placed = self._cache.cluster.pods.get(uid)
        if placed is not None:
            return placed
        pod = self._unplaced.get(uid)
        return None if pod is None or self._cache.node_of(uid) else self._cache.info(pod)

    def waiting(self) -> list[Pod]:
        """The pods that need a place."""
        return [
            pod for pod in self._unplaced.values() if not pod.is_terminal and not self._cache.node_of(pod.uid)
        ]

    def waits(self, uid: str) -> PodInfo | None:
        """The pod if it still waits for a node, None if it does not."""
        pod = None if self._cache.node_of(uid) else self.find(uid)
        return None if pod is None or pod.pod.is_terminal or pod.is_terminating else pod
