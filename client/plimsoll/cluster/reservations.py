"""The book of reservations: holder, node, amount, priority, reason and expiry of reserved room.

Nominated pods, targets of moves, room that moves make for pending pods, and room of gangs whose binding
failed are entries of one book. Filters see them through the nominator, the book's index by node, which only
the book writes. An entry counts against pods of the same or lower priority. A holder that is not a pod yet is
represented by a stand-in (:meth:`plimsoll.model.kinds.pod_info.Templates.stand_in`).

Devices are held with the room, except for NOMINATED pods of preemption: removing pods frees no device before
their claims are released. A hold in the device book begins and ends with the reservation.

============  ==================================  =========  ================================================
Reason        Holder                              Priority   Ends with
============  ==================================  =========  ================================================
NOMINATED     the pod                             the pod's  its placement, deletion or refusal
MOVE_TARGET   the replacement of a moved pod      FIRM       the replacement, or the end of the move
ROOM          the pod that moves make room for    the pod's  the last of the moved pods leaving, or its time
GANG          the member                          the pod's  its placement, or the end of the group's start
============  ==================================  =========  ================================================
"""

from collections.abc import Container, Iterable
from enum import StrEnum

from msgspec import Struct

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.device_holds import hold_of
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.holds import DeviceHold, are_free
from plimsoll.devices.taken import device_of
from plimsoll.engine.nominator import Nominator
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.timing.timer import Timer

#: A priority that no pod exceeds.
FIRM = 2**31 - 1


#: Stand-ins whose devices are remembered after a replacement has taken them over: the replacement may be
#: deleted and another one created.
MOST_PASSED = 1_024


class ReservationReason(StrEnum):
    """Why room is reserved."""

    NOMINATED = "Nominated"
    MOVE_TARGET = "MoveTarget"
    ROOM = "Room"
    GANG = "Gang"


class Reservation(Struct, frozen=True):
    """Room on a node that is promised to a holder.

    Attributes:
        holder: The holder's name.
        pod: The holder's pod, or a stand-in for it. Its priority is the reservation's.
        node: Name of the node.
        reason: Why it is reserved.
        owner: The profile, policy or PodGroup that made it.
        until: Monotonic seconds at which it expires; None: when it is released.
    """

    holder: Holder
    pod: PodInfo
    node: str
    reason: ReservationReason
    owner: str
    until: float | None = None


class ReservationBook:
    """The reservations of both wings.

    Args:
        cache: The present cluster.
        timer: Ends reservations that expire.

    Attributes:
        cache: As given.
        nominator: The index by node that filters read; written by the book alone.
    """

    def __init__(self, cache: Cache, timer: Timer) -> None:
        self.nominator = Nominator()
        self.cache = cache
        self._timer = timer
        self._by_uid: dict[str, Reservation] = {}  #: by the uid of the holder
        self._passed: dict[
            str, DeviceHold
        ] = {}  #: devices that replacements took over, by the stand-in's uid

    # -- writing -------------------------------------------------------------------------------------

    def reserve(self, reservation: Reservation, leaving: Iterable[str] = ()) -> None:
        """Enter a reservation; it replaces an earlier one of the same holder.

        Args:
            reservation: The new entry.
            leaving: Uids of pods that leave before the holder comes; their devices may be held for it.

        Raises:
            ValueError: The pod is neither the holder itself nor a stand-in for it.
        """
        holder, uid = reservation.holder, reservation.holder.uid
        stands_in_for = None if holder.kind is HolderKind.POD else holder
        if reservation.pod.uid != uid or reservation.pod.stands_in_for != stands_in_for:
            raise ValueError(
                f"{reservation.pod.key} is reserved room under {uid}, and does not stand in for it"
            )
        self.release_uid(uid)
        self._by_uid[uid] = reservation
        self.nominator.add(reservation.pod, reservation.node)
        if reservation.until is not None:
            self._timer.set(holder, reservation.until, lambda: self._expire(reservation))
        devices = self.cache.cluster.objects.known_ledger(DeviceBook)
        if devices is not None and reservation.reason is not ReservationReason.NOMINATED:
            hold = hold_of(reservation.pod, reservation.node, self.cache.cluster, leaving)
            if hold is not None:
                devices.hold(hold)

    def nominate(
        self, pod: PodInfo, node: str, owner: str = "", *, instead: str = "", priority: int | None = None
    ) -> None:
        """Reserve a node for a pending pod at its own priority, or at a higher one.

        Args:
            pod: The pod.
            node: The node's name.
            owner: The owner of the reservation.
            instead: The uid of a holder whose devices there are held for the pod from now on.
            priority: The least priority of the reservation.
        """
        pod = self.cache.cluster.templates.at_priority(pod, priority)
        devices = self.cache.cluster.objects.known_ledger(DeviceBook)
        hold = None if devices is None else devices.drop(instead) or devices.drop(pod.uid)
        if devices is not None and instead:
            hold = self._passed_on(devices, instead, hold)
        holder = Holder(HolderKind.POD, pod.uid)
        self.reserve(Reservation(holder, pod, node, ReservationReason.NOMINATED, owner))
        if devices is not None and hold is not None and hold.node == node:
            devices.hold(hold._replace(uid=pod.uid, priority=pod.priority))

    def _passed_on(self, devices: DeviceBook, instead: str, hold: DeviceHold | None) -> DeviceHold | None:
        """The devices held under a uid; for a second replacement, those that are free."""
        if hold is None:
            earlier = self._passed.get(instead)
            return earlier if earlier is not None and are_free(devices.taken, earlier) else None
        self._passed.pop(instead, None)
        if len(self._passed) >= MOST_PASSED:
            del self._passed[next(iter(self._passed))]
        self._passed[instead] = hold
        return hold

    def reserve_in_stead(
        self,
        holder: Holder,
        pod: PodInfo,
        node: str,
        reason: ReservationReason,
        owner: str,
        *,
        priority: int | None = None,
        until: float | None = None,
        leaving: Iterable[str] = (),
    ) -> None:
        """Reserve room with a stand-in that has the shape of a pod.

        Args:
            holder: The future holder of the room.
            pod: The pod whose shape the stand-in has.
            node: The node's name.
            reason: Why it is reserved.
            owner: The owner of the reservation.
            priority: ``FIRM`` for targets of moves; None: the pod's own priority.
            until: Monotonic seconds at which it expires.
            leaving: Uids of pods that leave before the holder comes.
        """
        stand_in = self.cache.cluster.templates.stand_in(pod, holder, priority)
        self.reserve(Reservation(holder, stand_in, node, reason, owner, until), leaving)

    def release_uid(self, uid: str) -> None:
        """End the reservation with this uid: a pod's, or that of a stand-in."""
        reservation = self._by_uid.pop(uid, None)
        if reservation is not None:
            self.nominator.remove(uid)
            devices = self.cache.cluster.objects.known_ledger(DeviceBook)
            if devices is not None:
                devices.drop(uid)
            if reservation.until is not None:
                self._timer.cancel(reservation.holder)

    def release_owner(self, owner: str, reason: ReservationReason) -> tuple[Reservation, ...]:
        """End an owner's reservations for one reason; returns them in the order of entry."""
        held = tuple(each for each in self.of_reason(reason) if each.owner == owner)
        for reservation in held:
            self.release_uid(reservation.holder.uid)
        return held

    # -- reading -------------------------------------------------------------------------------------

    def held_by_uid(self, uid: str) -> Reservation | None:
        """The reservation with this uid: a pod's, or that of a stand-in."""
        return self._by_uid.get(uid)

    def of_reason(self, reason: ReservationReason) -> tuple[Reservation, ...]:
        """All reservations for one reason, in the order of entry."""
        return tuple(each for each in self._by_uid.values() if each.reason is reason)

    def awaits_devices(self, uid: str) -> bool:
        """Whether devices held for a pod are still allocated to pods that are leaving or have left."""
        cluster = self.cache.cluster
        devices = cluster.objects.known_ledger(DeviceBook)
        hold = None if devices is None else devices.holds.get(uid)
        if devices is None or hold is None:
            return False
        held = {device_of(each) for given in hold.given.values() for each in given.devices.results}
        leaving = [
            # A group's devices stay allocated while it exists, whichever of its pods leave.
            not user.is_group and ((pod := cluster.pods.get(user.uid)) is None or pod.is_terminating)
            for claim in devices.claims.values()
            if claim.status.allocation is not None
            and not held.isdisjoint(map(device_of, claim.status.allocation.devices.results))
            for user in claim.status.reserved_for
        ]
        return bool(leaving) and all(leaving)

    def claimed(self, without: Container[str] = ()) -> Cluster:
        """A fork of the cluster in which reservations are placed as pods; planners start from it.

        ``without`` are the uids of those that are left out.
        """
        return self.nominator.claimed(self.cache.cluster, without)

    # ------------------------------------------------------------------------------------------------

    def _expire(self, reservation: Reservation) -> None:
        if self._by_uid.get(reservation.holder.uid) is reservation:
            self.release_uid(reservation.holder.uid)
