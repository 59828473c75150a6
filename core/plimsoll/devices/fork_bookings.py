"""DecidedBookings hold the devices of pods that are placed together on a fork until they are reserved.

Results of searches change as further pods take devices there, so the bookings are stored when decided.
"""

from collections.abc import Callable
from itertools import count

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.bookings import Booking
from plimsoll.devices.pod_devices import PodDevices
from plimsoll.framework.cycle_state import CycleState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.resource_claim import ResourceClaim


class DecidedBookings(Struct, frozen=True):
    """The bookings of a pod that was placed on a fork together with others, stored in its cycle state.

    Attributes:
        bookings: The decided bookings; shares of devices have no ids yet.
    """

    bookings: tuple[Booking, ...]

    def named(self, share_id: Callable[[], str]) -> tuple[Booking, ...]:
        """The bookings, with an id for each share."""
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
    """Store the bookings of a pod on a node of a fork, and allocate them there for the next pods."""
    devices = state.find(PodDevices)
    if devices is None or devices.is_empty:
        return
    numbers = count(1)
    row = fork.rows[node]
    bookings = devices.bookings(row, fork.nodes[row], lambda: f"{pod.uid}-{next(numbers)}")
    state.write(DecidedBookings(bookings))
    book_again(state, pod, fork)


def book_again(state: CycleState, pod: PodInfo, fork: Cluster) -> None:
    """Allocate the stored bookings of a pod on one more fork."""
    decided = state.find(DecidedBookings)
    if decided is None:
        return
    book = fork.objects.ledger(DeviceBook)
    for each in decided.bookings:
        if each.allocation is not None:
            claim = each.claim if each.extended is None else _named(each.claim, pod)
            book.set_claim(claim.allocated(each.allocation))


def _named(claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
    """A claim to create, with a name that distinguishes it from those of other pods."""
    name = f"{claim.name}-{pod.uid}"
    return msgspec.structs.replace(
        claim, metadata=msgspec.structs.replace(claim.metadata, name=name, uid=name)
    )
