"""Keeps the taken devices: those of allocated claims.

Source: Kubernetes v1.36, ``plugins/dynamicresources/allocateddevices.go``.
"""

from collections.abc import Iterable, MutableMapping

from plimsoll.devices.amounts import Amounts, amount_of, by_full_name
from plimsoll.devices.pools import DeviceID
from plimsoll.model.kinds.resource_claim import AllocatedDevice, AllocationResult
from plimsoll.model.layered_dict import halved


class Taken:
    """Devices that are not free; results with admin access take nothing.

    Attributes:
        whole: Devices that one claim has exclusively, with the number of such results.
        shared: Consumed capacity of devices that several claims may use, by full name.
        shares: Number of results that share them.
    """

    def __init__(self) -> None:
        self.whole: MutableMapping[DeviceID, int] = {}
        self.shared: MutableMapping[DeviceID, Amounts] = {}
        self.shares: MutableMapping[DeviceID, int] = {}

    def add(self, allocation: AllocationResult) -> None:
        """Add an allocation."""
        for each in allocation.devices.results:
            self._count(each, 1)

    def remove(self, allocation: AllocationResult) -> None:
        """Remove an allocation."""
        for each in allocation.devices.results:
            self._count(each, -1)

    def is_consumed(self, device: DeviceID) -> bool:
        """Whether any part of it is taken."""
        return device in self.whole or device in self.shares

    def consumed(self, device: DeviceID) -> Amounts:
        """The consumed capacities of a shared device, by full name."""
        return self.shared.get(device, {})

    def copied(self) -> "Taken":
        """An independent copy, at the cost of the changes since earlier copies."""
        twin = Taken()
        self.whole, twin.whole = halved(self.whole)
        self.shares, twin.shares = halved(self.shares)
        self.shared, twin.shared = halved(self.shared)
        return twin

    def without(self, allocations: Iterable[AllocationResult]) -> "Taken":
        """The same without these allocations, which are counted."""
        twin = self.copied()
        for each in allocations:
            twin.remove(each)
        return twin

    def _count(self, result: AllocatedDevice, sign: int) -> None:
        if result.admin_access:
            return
        device = device_of(result)
        counted = self.whole if result.share_id is None else self.shares
        left = counted.get(device, 0) + sign
        if left:
            counted[device] = left
        else:
            counted.pop(device, None)
        if result.share_id is None:
            return
        if not left:
            self.shared.pop(device, None)
            return
        amounts = dict(self.shared.get(device, {}))
        for name, amount in by_full_name(result.consumed_capacity, result.driver).items():
            amounts[name] = amounts.get(name, 0) + sign * max(0, amount_of(amount))
        self.shared[device] = amounts  # copies have the former amounts


def device_of(result: AllocatedDevice) -> DeviceID:
    """The device of a result."""
    return DeviceID(result.driver, result.pool, result.device)
