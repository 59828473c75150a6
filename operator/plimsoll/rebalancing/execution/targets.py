"""Decides when the targets of moves, and the room that bundles make, are reserved and released.

A target is reserved at the highest priority, so that neither the scheduling loop nor another plan counts on
it: first with a stand-in, and for the replacement itself as soon as that exists.

Room for a pending pod, or for a gang, is also reserved with a stand-in. The room does not exist yet, so the
pod itself must not be sent there, and every failed attempt of the pod would end a nomination of its own. When
the last of the moved pods has left, the pod is nominated; the same event requeues it, and the scheduler finds
its node free. The room is released when a move of the bundle is not made, when the pod finds another place or
is deleted, and after ``ROOM_S``.
"""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct, field

from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.cluster.reservations import FIRM, ReservationBook, ReservationReason
from plimsoll.cluster.watch_events import PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import Pod, PodInfo
from plimsoll.model.columns.admitted_shapes import as_admitted
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.names import RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.execution.executor import Immediate
from plimsoll.rebalancing.moves import instructions
from plimsoll.rebalancing.moves.machine import MoveMachine

#: Seconds after which room is released if the moved pods have not left.
ROOM_S = 300.0


class MoveTargets(Struct, frozen=True):
    """Carries out the instructions about room."""

    book: ReservationBook
    pending: PendingPods
    machine: MoveMachine
    siblings: Callable[[str], Mapping[str, Pod]]  #: pods of a controller, by its uid
    clock: Clock
    _leaving: dict[str, set[str]] = field(default_factory=dict)  #: pods that a bundle's room still waits for

    @property
    def immediate(self) -> Mapping[type, Immediate]:
        """The handlers of the instructions."""
        return {
            instructions.ReserveTarget: self._reserve,
            instructions.TransferTarget: self._transfer,
            instructions.ReleaseTarget: lambda order: self.book.release_uid(_replacement(order.key).uid),
            instructions.ReleaseReplacement: lambda order: self.book.release_uid(order.uid),
            instructions.ReserveRoom: self._reserve_room,
            instructions.ReleaseRoom: lambda order: self._release_room(order.bundle),
        }

    # -- targets -------------------------------------------------------------------------------------

    def _reserve(self, order: instructions.ReserveTarget) -> None:
        spec = self.machine.moves[order.key].spec
        like = self._like(order.key) if order.move is None else order.move.pod
        target = spec.target_node if order.move is None else order.move.target
        if like is not None and target:
            like = as_admitted(like, self.book.cache.cluster)
            reason = ReservationReason.MOVE_TARGET
            self.book.reserve_in_stead(
                _replacement(order.key),
                like,
                target,
                reason,
                spec.policy,
                priority=FIRM,
                leaving=self._leaving_with(order.key),
            )

    def _leaving_with(self, key: RecordKey) -> tuple[str, ...]:
        """The pod of a move, and those that leave together with it."""
        bundle = self.machine.moves[key].bundle
        others = (each for each in self.machine.open.values() if bundle and each.bundle == bundle)
        return (self.machine.moves[key].spec.pod.uid, *(each.spec.pod.uid for each in others))

    def _like(self, key: RecordKey) -> PodInfo | None:
        """The pod of an earlier process's record, or another pod of its controller that runs.

        A pod that does not run may request more than any node would have given it.
        """
        spec, cache = self.machine.moves[key].spec, self.book.cache
        present = cache.cluster.pods.get(spec.pod.uid)
        if present is not None:
            return present
        pods = self.siblings(spec.owner.uid).values() if spec.owner is not None else ()
        running = (pod for pod in pods if pod.node_name and pod.status.phase == "Running")
        found = next((pod for pod in running if pod.namespace == spec.pod.namespace), None)
        if found is None:
            return None
        metadata = msgspec.structs.replace(found.metadata, name=spec.pod.name)
        return cache.info(msgspec.structs.replace(found, metadata=metadata))

    def _transfer(self, order: instructions.TransferTarget) -> None:
        pod, spec = self.pending.find(order.pod.uid), self.machine.moves[order.key].spec
        if pod is not None and spec.target_node is not None:
            self.book.nominate(pod, spec.target_node, spec.policy, instead=_replacement(order.key).uid)

    # -- room for pending pods -----------------------------------------------------------------------

    def _reserve_room(self, order: instructions.ReserveRoom) -> None:
        if any(each.owner == order.bundle for each in self.book.of_reason(ReservationReason.ROOM)):
            return
        found = [(self.pending.waits(uid), node) for uid, node in order.pods]
        waiting = [(pod, node) for pod, node in found if pod is not None]
        if not waiting:
            return  # a resize holds its room by what the pod asks for
        self._leaving[order.bundle] = set(order.leaving)
        reason, until = ReservationReason.ROOM, self.clock.monotonic() + ROOM_S
        for pod, node in waiting:
            holder = Holder(HolderKind.BENEFICIARY, pod.uid)
            self.book.reserve_in_stead(
                holder, pod, node, reason, order.bundle, until=until, leaving=order.leaving
            )

    def _release_room(self, bundle: str) -> None:
        self._leaving.pop(bundle, None)
        self.book.release_owner(bundle, ReservationReason.ROOM)

    def observe(self, event: WatchEvent) -> None:
        """Handle moved pods that leave, and beneficiaries that find another place or are deleted."""
        match event:
            case PodDeleted(pod):
                has_left = True
            case PodUpdated(_, pod) if pod.is_terminal or pod.node_name:
                has_left = pod.is_terminal
            case _:
                return
        room = self.book.held_by_uid(Holder(HolderKind.BENEFICIARY, pod.uid).uid)
        if room is not None:
            self._release_room(room.owner)
        for bundle, leaving in list(self._leaving.items()):
            if has_left and pod.uid in leaving:
                leaving.discard(pod.uid)
                if not leaving:
                    self._hand_over(bundle)

    def _hand_over(self, bundle: str) -> None:
        """Nominate the pod to the room, against others of the same or lower priority, until it is tried."""
        del self._leaving[bundle]
        held = [each for each in self.book.of_reason(ReservationReason.ROOM) if each.owner == bundle]
        pods = [(self.pending.waits(each.holder.key), each) for each in held]
        if all(pod is not None for pod, _ in pods):
            for pod, each in pods:
                if pod is not None:
                    self.book.nominate(pod, each.node, bundle, instead=each.holder.uid)
        self.book.release_owner(bundle, ReservationReason.ROOM)


def _replacement(key: RecordKey) -> Holder:
    return Holder(HolderKind.REPLACEMENT, key)
