"""DeviceHold: devices that are held for a pod which is to come, as room on its node is reserved for it."""

from collections.abc import Mapping
from typing import NamedTuple

from plimsoll.devices.pools import PoolKey
from plimsoll.devices.taken import Taken, device_of
from plimsoll.model.kinds.devices.resource_claim import AllocationResult, ResourceClaim


class DeviceHold(NamedTuple):
    """Devices that no pod of the same or a lower priority gets, except the holder.

    Attributes:
        uid: Of the holder: a pod, or what stands in for one.
        priority: Pods of a higher one may take the devices.
        node: The node from which they are used.
        given: What the holder's claims are to get, by key; that of the former pod's claim where another one
            will be made of the same template.
        former: What claims have that are to be allocated again once their users have left, by key.
    """

    uid: str
    priority: int
    node: str
    given: Mapping[str, AllocationResult]
    former: Mapping[str, AllocationResult] = {}

    @property
    def pools(self) -> frozenset[PoolKey]:
        """Where the devices are."""
        return frozenset(
            PoolKey(each.driver, each.pool)
            for allocation in self.given.values()
            for each in allocation.devices.results
        )

    def waits_for(self, claim: ResourceClaim) -> bool:
        """Whether a claim is to be allocated again for the holder, and its former users still have it."""
        before = self.former.get(claim.key)
        return before is not None and claim.status.allocation == before


def are_free(taken: Taken, hold: DeviceHold) -> bool:
    """Whether the devices of an earlier hold can be given again, as far as that is seen without a search."""
    return all(
        each.admin_access or (each.share_id is None and device_of(each) not in taken.whole)
        for allocation in hold.given.values()
        for each in allocation.devices.results
    )
