"""Defines holds: devices reserved for a future pod, as room on its node is."""

from collections.abc import Mapping
from typing import NamedTuple

from plimsoll.devices.pools import PoolKey
from plimsoll.devices.taken import Taken, device_of
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim


class DeviceHold(NamedTuple):
    """Devices that no pod of the same or a lower priority gets, except the holder.

    Attributes:
        uid: The holder's uid: a pod's, or a stand-in's.
        priority: Pods of a higher priority may take the devices.
        node: The node that uses the devices.
        given: The future allocations of the holder's claims, by key; the former pod's claim if another one
            will be created from the same template.
        former: By key, the present allocations of claims that will be allocated again once their users have
            left.
    """

    uid: str
    priority: int
    node: str
    given: Mapping[str, AllocationResult]
    former: Mapping[str, AllocationResult] = {}

    @property
    def pools(self) -> frozenset[PoolKey]:
        """The pools of the devices."""
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
    """Whether the devices of an earlier hold can be assigned again, as far as known without a search."""
    return all(
        each.admin_access or (each.share_id is None and not taken.is_consumed(device_of(each)))
        for allocation in hold.given.values()
        for each in allocation.devices.results
    )
