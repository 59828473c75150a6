"""The port through which DynamicResources books allocations and writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from plimsoll.devices.extended_resources import ExtendedRequests
from plimsoll.framework.status import Status
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.devices.resource_claim import AllocationResult, ResourceClaim
from plimsoll.model.kinds.pod_info import PodInfo

#: What PostFilter says once it has decided about a claim that no pod uses; it is carried out afterwards.
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"


@dataclass(frozen=True, slots=True)
class Booking:
    """What a claim of a pod gets.

    Attributes:
        claim: As it was when that was decided.
        allocation: What is allocated now; None for a claim that is allocated, and to be reserved for the pod.
        extended: Of a claim that is made for extended resources: what it is for; it is to be created.
    """

    claim: ResourceClaim
    allocation: AllocationResult | None = None
    extended: ExtendedRequests | None = None


class DeviceBinder(Protocol):
    """Books allocations in memory, and writes them."""

    def share_id(self) -> str:
        """A new name of a share of a device, a UUID."""

    def assume(self, bookings: Sequence[Booking]) -> str:
        """The next decision sees the devices as taken; why that is impossible, "" when it is done."""

    def forget(self, pod: PodInfo, bookings: Sequence[Booking]) -> None:
        """Take that back; what is written is released for others."""

    async def bind(self, pod: PodInfo, node: str, bookings: Sequence[Booking], timeout_s: float) -> Status:
        """Write the bookings, reserve the claims for the pod, and wait until the devices are prepared."""


@dataclass(frozen=True, slots=True)
class DevicesPort:
    """The cluster when Reserve runs, and the binder of devices, as kept in the cycle state."""

    snapshot: Snapshot
    binder: DeviceBinder
