"""Reserves the targets of moves: room that a move was proved for stays taken until its replacement is there.

A target is reserved at the highest priority, so that neither the scheduling loop nor another plan counts on
it: with a stand-in first, and in the replacement's own name as soon as that exists.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import FIRM, Reservation, ReservationBook, ReservationReason
from plimsoll.engine.profile import Profile
from plimsoll.framework import Pod, PodInfo
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.records.record import Record


class Holds:
    """The targets of moves under way.

    Attributes:
        profiles: By scheduler name: who places replacements; set when policies change.
    """

    def __init__(self, cache: Cache, book: ReservationBook) -> None:
        self.profiles: Mapping[str, Profile] = {}
        self._cache = cache
        self._book = book
        self._beginning: dict[str, str] = {}  #: uid of the workload, by record

    def begin(self, record: Record, move: Move) -> None:
        """A move is about to be recorded: from now on every policy counts it, and sees its room taken."""
        self._beginning[record.key] = move.workload.uid
        self.hold(record, move)

    def begun(self, record: Record, *, is_recorded: bool) -> None:
        """It is recorded, and followed until it ends; or it is not made."""
        self._beginning.pop(record.key, None)
        if not is_recorded:
            self.release(record)

    def beginning(self) -> Counter[str]:
        """Moves that are about to be recorded as begun, by workload uid."""
        return Counter(self._beginning.values())

    def hold(self, record: Record, move: Move) -> None:
        """Keep the room on the target for the replacement: other pods see it taken."""
        if move.target and not move.is_forecast:
            self._hold(record, move.pod, move.target)

    def restore(self, record: Record, like: Pod) -> None:
        """Keep the room again for the replacement of a pod that an earlier process evicted.

        Args:
            record: Of the move.
            like: The evicted pod, or another one of its owner.
        """
        target = record.spec.target_node
        if target is not None and not record.is_forecast:
            metadata = msgspec.structs.replace(like.metadata, name=record.spec.pod.name)
            self._hold(record, self._cache.info(msgspec.structs.replace(like, metadata=metadata)), target)

    def reserve(self, move: Move, policy: str) -> None:
        """Keep the room for a move of a bundle whose turn has not come."""
        if move.target and not move.is_forecast:
            reason = ReservationReason.MOVE_WAITING
            self._book.reserve_in_stead(_waiting(move), move.pod, move.target, reason, policy, priority=FIRM)

    def unreserve(self, move: Move) -> None:
        """Its turn has come, or never will."""
        self._book.release(_waiting(move))

    def hand_over(self, record: Record, pod: Pod) -> None:
        """The replacement has appeared: the room is kept in its own name, and it goes there."""
        self.release(record)
        target = record.spec.target_node
        if target is not None and not pod.node_name and not record.is_forecast:
            own, reason = Holder(HolderKind.POD, pod.uid), ReservationReason.HANDED_OVER
            info, policy = self._cache.info(pod), record.spec.policy
            self._book.reserve(Reservation(own, info, target, reason, policy))

    def release(self, record: Record) -> None:
        """The room is no longer reserved."""
        self._book.release(_replacement(record))

    def arrived(self, uid: str) -> None:
        """A replacement runs: it needs no nomination any more."""
        self._book.release_uid(uid)

    def _hold(self, record: Record, like: PodInfo, target: str) -> None:
        reason = ReservationReason.MOVE_TARGET
        policy = record.spec.policy
        self._book.reserve_in_stead(_replacement(record), like, target, reason, policy, priority=FIRM)


def _replacement(record: Record) -> Holder:
    return Holder(HolderKind.REPLACEMENT, record.key)


def _waiting(move: Move) -> Holder:
    return Holder(HolderKind.WAITING_MOVE, move.pod.uid)
