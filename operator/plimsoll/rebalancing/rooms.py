"""BeneficiaryRooms are kept for a pending pod, or for a gang, while moves make them; then they are its own.

While the moves of a bundle are under way the room that their pod will take is reserved by a stand-in: it is
not there yet, so the pod itself must not be sent, and every failed attempt of the pod would end a nomination
of its own. When the last of the moved pods has left, the pod is nominated, and the scheduler, which that very
event has try it, finds its node free.

The room is free again when a move of the bundle is not made, when the pod finds another place or goes, and
after ``PATIENCE_S``.
"""

from dataclasses import dataclass

from plimsoll.cluster.reservations import ReservationBook, ReservationReason
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.kinds.watch_event import PodDeleted, PodUpdated, WatchEvent
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.moves.instructions import ReserveRoom
from plimsoll.rebalancing.pending_pods import PendingPods
from plimsoll.timing.timer import Timer

#: Seconds that moved pods get to leave.
PATIENCE_S = 300.0


@dataclass(slots=True)
class _Room:
    """Room that is kept: for whom, by uid, on which nodes, and who has to leave until then."""

    nodes: dict[str, str]
    leaving: set[str]


class BeneficiaryRooms:
    """The rooms that are being made.

    Args:
        book: Reserves them.
        pending: The pods that they are made for.
        timer: Ends them.
        clock: Time.
    """

    def __init__(self, book: ReservationBook, pending: PendingPods, timer: Timer, clock: Clock) -> None:
        self._book = book
        self._pending = pending
        self._timer = timer
        self._clock = clock
        self._rooms: dict[str, _Room] = {}  #: by bundle

    def keep(self, order: ReserveRoom) -> None:
        """Keep the room that a bundle makes, unless it is kept already."""
        if order.bundle in self._rooms:
            return
        self._rooms[order.bundle] = _Room(dict(order.pods), set(order.leaving))
        for uid, node in order.pods:
            pod = self._pending.waits(uid)
            if pod is not None:
                reason = ReservationReason.ROOM
                self._book.reserve_in_stead(_beneficiary(uid), pod, node, reason, order.bundle)
        due = self._clock.monotonic() + PATIENCE_S
        self._timer.set(("room", order.bundle), due, lambda: self.release(order.bundle))

    def release(self, bundle: str) -> None:
        """The room is free again."""
        room = self._rooms.pop(bundle, None)
        if room is not None:
            self._timer.cancel(("room", bundle))
            for uid in room.nodes:
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

    def _hand_over(self, bundle: str, room: _Room) -> None:
        """The room is there: it is the pod's, against others of no higher priority, until it is tried."""
        self.release(bundle)
        pods = [pod for pod in map(self._pending.waits, room.nodes) if pod is not None]
        if len(pods) == len(room.nodes):
            for pod in pods:
                self._book.nominate(pod, room.nodes[pod.uid], bundle)


def _beneficiary(uid: str) -> Holder:
    return Holder(HolderKind.BENEFICIARY, uid)
