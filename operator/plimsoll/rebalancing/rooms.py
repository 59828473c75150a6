"""Room that moves make for a pending pod, or for a gang: kept until they are made, then its own.

While the moves of a bundle are under way the room that their pod will take counts as taken, by a nomination
in its stead: it is not there yet, so the pod itself must not be sent, and every failed attempt of the pod
would end a nomination of its own. When the last of the moved pods has left, the pod is nominated, and the
scheduler, whom that very event has told to try it, finds its node free.

The room is anybody's again when a move of the bundle comes to nothing, when the pod finds another place or
goes, and after ``PATIENCE_S``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import ReservationBook, ReservationReason
from plimsoll.framework import PodInfo
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.kinds.watch_event import PodDeleted, PodUpdated, WatchEvent
from plimsoll.planning.moves import Move

#: Seconds that moved pods get to leave.
PATIENCE_S = 300.0


@dataclass(slots=True)
class _Room:
    """Room that is kept: for whom, by uid, on which nodes, and who has to leave until then."""

    nodes: dict[str, str]
    leaving: set[str]
    until: float


class Rooms:
    """The rooms that are being made.

    Args:
        cache: The cluster.
        book: Reserves the room.
        find: A pod by uid, placed or not.
    """

    def __init__(self, cache: Cache, book: ReservationBook, find: Callable[[str], PodInfo | None]) -> None:
        self._cache = cache
        self._book = book
        self._find = find
        self._rooms: dict[str, _Room] = {}  #: by bundle

    def keep_for(self, move: Move, moves: Sequence[Move], now: float) -> bool:
        """Keep the room that a move helps to make; whether its pod still waits for it.

        Args:
            move: About to be made.
            moves: All of the plan.
            now: Seconds of the monotonic clock.
        """
        if move.beneficiary is None:
            return True
        nodes = {each.pod.uid: each.node for each in move.beneficiary.all}
        pods = [pod for pod in map(self._waiting, nodes) if pod is not None]
        if len(pods) < len(nodes):
            self.release(move.bundle)
            return False
        if move.bundle not in self._rooms:
            leaving = {each.pod.uid for each in moves if each.bundle == move.bundle}
            self._rooms[move.bundle] = _Room(nodes, leaving, now + PATIENCE_S)
            for pod in pods:
                holder, reason = _beneficiary(pod.uid), ReservationReason.ROOM
                self._book.reserve_in_stead(holder, pod, nodes[pod.uid], reason, move.bundle)
        return True

    def release(self, bundle: str) -> None:
        """Moves of the bundle came to nothing: the room is anybody's again."""
        room = self._rooms.pop(bundle, None)
        for uid in room.nodes if room is not None else ():
            self._book.release(_beneficiary(uid))

    def served(self) -> frozenset[str]:
        """Uids of the pods that room is being made for: no other room is needed."""
        return frozenset(uid for room in self._rooms.values() for uid in room.nodes)

    def observe(self, event: WatchEvent) -> None:
        """Moved pods leave; pods that room is made for find another place, or go."""
        match event:
            case PodDeleted(pod):
                gone = pod.uid
            case PodUpdated(_, pod) if pod.is_terminal:
                gone = pod.uid
            case PodUpdated(_, pod) if pod.node_name:
                gone = ""
            case _:
                return
        for bundle, room in list(self._rooms.items()):
            if pod.uid in room.nodes:
                self.release(bundle)
            elif gone in room.leaving:
                room.leaving.discard(gone)
                if not room.leaving:
                    self._hand_over(bundle, room)

    def expire(self, now: float) -> None:
        """Give up rooms whose moved pods do not leave."""
        for bundle in [bundle for bundle, room in self._rooms.items() if now >= room.until]:
            self.release(bundle)

    def _hand_over(self, bundle: str, room: _Room) -> None:
        """The room is there: it is the pod's, against others of no higher priority, until it is tried."""
        self.release(bundle)
        pods = [pod for pod in map(self._waiting, room.nodes) if pod is not None]
        if len(pods) == len(room.nodes):
            for pod in pods:
                self._book.nominate(pod, room.nodes[pod.uid], bundle)

    def _waiting(self, uid: str) -> PodInfo | None:
        pod = None if self._cache.node_of(uid) else self._find(uid)
        return None if pod is None or pod.pod.is_terminal or pod.is_terminating else pod


def _beneficiary(uid: str) -> Holder:
    return Holder(HolderKind.BENEFICIARY, uid)
