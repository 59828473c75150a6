"""PendingPods are the pods that hold no place: those that wait for one, and those that have ended."""

from plimsoll.cluster.cache import Cache
from plimsoll.framework import Pod, PodInfo
from plimsoll.model.kinds.watch_event import PodAdded, PodDeleted, PodUpdated, WatchEvent
from plimsoll.rebalancing.moves.sightings import facts_of
from plimsoll.rebalancing.moves.state import PodFacts


class PendingPods:
    """The pods without a place.

    Args:
        cache: The cluster.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._unplaced: dict[str, Pod] = {}

    def observe(self, event: WatchEvent) -> None:
        """Pods that hold no place come and go."""
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

    def facts(self, uid: str) -> PodFacts | None:
        """The same as the move machine sees it."""
        found = self.find(uid)
        return None if found is None else facts_of(found.pod)

    def waiting(self) -> list[Pod]:
        """Those that want a place."""
        return [
            pod for pod in self._unplaced.values() if not pod.is_terminal and not self._cache.node_of(pod.uid)
        ]

    def waits(self, uid: str) -> PodInfo | None:
        """The pod if it still waits for a node, None when it does not."""
        pod = None if self._cache.node_of(uid) else self.find(uid)
        return None if pod is None or pod.pod.is_terminal or pod.is_terminating else pod
