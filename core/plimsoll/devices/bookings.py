"""The port through which DynamicResources books allocations and writes them."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from plimsoll.devices.extended_resources import ExtendedRequests
from plimsoll.framework.status import Status
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim

#: PostFilter's message when it has decided about a claim that no pod uses; carried out afterwards.
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"


class Booking(Struct, frozen=True):
    """A decided allocation of a pod's claim.

    Attributes:
        claim: The claim as of the decision.
        allocation: The new allocation; None for a claim that is allocated, and to be reserved for the pod.
        extended: For a claim to create for extended resources: the resources that it serves.
    """

    claim: ResourceClaim
    allocation: AllocationResult | None = None
    extended: ExtendedRequests | None = None


class DeviceBinder(Protocol):
    """Books allocations in memory, and writes them."""

    def share_id(self) -> str:
        """A new name for a share of a device, a UUID."""

    def assume(self, bookings: Sequence[Booking]) -> str:
        """Book the devices: the next decision sees them as taken; returns why that is impossible, or ""."""

    def forget(self, pod: PodInfo, bookings: Sequence[Booking]) -> None:
        """Undo the bookings; allocations that are written are released."""

    async def bind(self, pod: PodInfo, node: str, bookings: Sequence[Booking], timeout_s: float) -> Status:
        """Write the bookings, reserve the claims for the pod, and wait until the devices are prepared."""


class DevicesPort(Struct, frozen=True):
    """The cluster as of Reserve, and the binder of devices; stored in the cycle state."""

    snapshot: Snapshot
    binder: DeviceBinder
