"""MoveTargets reserves the targets of moves in the book, and the room that bundles make.

A target is reserved at the highest priority, so that neither the scheduling loop nor another plan counts on
it: with a stand-in first, and in the replacement's own name as soon as that exists.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import FIRM, Reservation, ReservationBook, ReservationReason
from plimsoll.framework import Pod, PodInfo
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.rebalancing.moves.events import Event
from plimsoll.rebalancing.moves.executor import Immediate
from plimsoll.rebalancing.moves.instructions import (
    ReleaseReplacement,
    ReleaseRoom,
    ReleaseTarget,
    ReserveRoom,
    ReserveTarget,
    ReserveWaiting,
    TransferTarget,
)
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.rooms import BeneficiaryRooms


class MoveTargets:
    """Carries out the instructions about room.

    Args:
        cache: The cluster.
        book: Where room is reserved.
        rooms: The rooms that bundles make.
        machine: Knows the records of the moves.
        siblings: The pods of a controller, by its uid.
        find: A pod by uid, placed or not.
    """

    def __init__(
        self,
        cache: Cache,
        book: ReservationBook,
        rooms: BeneficiaryRooms,
        machine: MoveMachine,
        siblings: Callable[[str], Mapping[str, Pod]],
        find: Callable[[str], PodInfo | None],
    ) -> None:
        self._cache = cache
        self._book = book
        self._rooms = rooms
        self._machine = machine
        self._siblings = siblings
        self._find = find
        self.immediate: Mapping[type, Immediate] = {
            ReserveTarget: self._reserve,
            ReserveWaiting: self._reserve_waiting,
            TransferTarget: self._transfer,
            ReleaseTarget: self._release,
            ReleaseReplacement: self._release_replacement,
            ReserveRoom: self._reserve_room,
            ReleaseRoom: self._release_room,
        }

    def _reserve(self, order: ReserveTarget) -> Sequence[Event]:
        like = self._like(order.key) if order.move is None else order.move.pod
        spec = self._machine.moves[order.key].spec
        target = spec.target_node if order.move is None else order.move.target
        if like is not None and target:
            self._book.reserve_in_stead(
                _replacement(order.key),
                like,
                target,
                ReservationReason.MOVE_TARGET,
                spec.policy,
                priority=FIRM,
            )
        return ()

    def _like(self, key: str) -> PodInfo | None:
        """The pod of a record of an earlier process, or a pod of the same controller in its stead."""
        spec = self._machine.moves[key].spec
        present = self._cache.cluster.pods.get(spec.pod.uid)
        if present is not None:
            return present
        pods = self._siblings(spec.owner.uid).values() if spec.owner is not None else ()
        found = next((pod for pod in pods if pod.namespace == spec.pod.namespace), None)
        if found is None:
            return None
        metadata = msgspec.structs.replace(found.metadata, name=spec.pod.name)
        return self._cache.info(msgspec.structs.replace(found, metadata=metadata))

    def _reserve_waiting(self, order: ReserveWaiting) -> Sequence[Event]:
        policy = self._machine.moves[order.key].spec.policy
        self._book.reserve_in_stead(
            _waiting(order.key),
            order.move.pod,
            order.move.target,
            ReservationReason.MOVE_WAITING,
            policy,
            priority=FIRM,
        )
        return ()

    def _transfer(self, order: TransferTarget) -> Sequence[Event]:
        pod, spec = self._find(order.pod.uid), self._machine.moves[order.key].spec
        if pod is not None and spec.target_node is not None:
            own = Holder(HolderKind.POD, pod.uid)
            reason = ReservationReason.HANDED_OVER
            self._book.reserve(Reservation(own, pod, spec.target_node, reason, spec.policy))
        return ()

    def _release(self, order: ReleaseTarget) -> Sequence[Event]:
        self._book.release(_replacement(order.key))
        self._book.release(_waiting(order.key))
        return ()

    def _release_replacement(self, order: ReleaseReplacement) -> Sequence[Event]:
        self._book.release_uid(order.uid)
        return ()

    def _reserve_room(self, order: ReserveRoom) -> Sequence[Event]:
        self._rooms.keep(order)
        return ()

    def _release_room(self, order: ReleaseRoom) -> Sequence[Event]:
        self._rooms.release(order.bundle)
        return ()


def _replacement(key: str) -> Holder:
    return Holder(HolderKind.REPLACEMENT, key)


def _waiting(key: str) -> Holder:
    return Holder(HolderKind.WAITING_MOVE, key)
