"""DecidedBookings: devices of pods that are placed together on a fork, kept until they are reserved.

Answers of nodes change as further pods take devices there, so what a pod gets is kept when it is decided.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import msgspec

from plimsoll.devices.book import DeviceBook
from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.devices.ports import Booking
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.devices.resource_claim import ResourceClaim
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.scheduling.pod_devices import PodDevices


@dataclass(frozen=True, slots=True)
class DecidedBookings:
    """What a pod gets that was placed on a fork together with others, as kept in its cycle state.

    Attributes:
        bookings: As decided; shares of devices have no names yet.
    """

    bookings: tuple[Booking, ...]

    def named(self, share_id: Callable[[], str]) -> tuple[Booking, ...]:
        """The bookings, each share with a name of its own."""
        return tuple(_with_shares(each, share_id) for each in self.bookings)


def _with_shares(booking: Booking, share_id: Callable[[], str]) -> Booking:
    if booking.allocation is None:
        return booking
    devices = booking.allocation.devices
    results = tuple(
        each if each.share_id is None else msgspec.structs.replace(each, share_id=share_id())
        for each in devices.results
    )
    devices = msgspec.structs.replace(devices, results=results)
    return replace(booking, allocation=msgspec.structs.replace(booking.allocation, devices=devices))


def decide_on_fork(state: CycleState, pod: PodInfo, node: str, fork: Cluster) -> None:
    """Keep what a pod gets on a node of a fork, and count it there as allocated for the next pods."""
    devices = state.find(PodDevices)
    if devices is None or devices.is_empty:
        return
    numbers = count(1)
    bookings = devices.bookings(fork.rows[node], node, lambda: f"{pod.uid}-{next(numbers)}")
    state.write(DecidedBookings(bookings))
    book = fork.objects.ledger(DeviceBook)
    for each in bookings:
        if each.allocation is not None:
            claim = each.claim if each.extended is None else _named(each.claim, pod)
            book.set_claim(claim.allocated(each.allocation))


def _named(claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
    """A claim that is to be created, told apart from those of other pods."""
    name = f"{claim.name}-{pod.uid}"
    return msgspec.structs.replace(
        claim, metadata=msgspec.structs.replace(claim.metadata, name=name, uid=name)
    )
