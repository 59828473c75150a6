"""Finds devices that another scheduler allocated too, between a decision and its binding."""

from collections.abc import Mapping

from plimsoll.devices.amounts import amounts_of, by_full_name
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pools import DeviceID, PoolKey
from plimsoll.devices.taken import Taken, device_of
from plimsoll.model.kinds.resource_claim import AllocatedDevice, ResourceClaim
from plimsoll.model.kinds.resource_slice import Device


def contested(book: DeviceBook, claim: ResourceClaim) -> str:
    """The device of an allocated claim that other claims have as well; "" if it has all to itself.

    Args:
        book: The book, which has the claim with its allocation.
        claim: The allocated claim.
    """
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    taken = book.taken
    if book.holds:  # devices held for future pods may have been open to this one
        held = (given for hold in book.holds.values() for given in hold.given.values())
        taken = taken.without(held)
    for each in results:
        if each.admin_access:
            continue
        if _is_taken_twice(book, taken, each) or _is_exhausted(book, taken, each):
            rival = _rival(book, claim, each)
            return f"device {device_of(each)} of resource claim {claim.key} is allocated to {rival} as well"
    return ""


def _is_taken_twice(book: DeviceBook, taken: Taken, result: AllocatedDevice) -> bool:
    device = device_of(result)
    if result.share_id is None:
        return taken.whole.get(device, 0) > 1 or device in taken.shares
    if device in taken.whole:
        return True
    published = book.slices.published(PoolKey(result.driver, result.pool)).get(device.device)
    if published is None:
        return False
    has = amounts_of(by_full_name(published.capacity, result.driver))
    return any(amount > has.get(name, amount) for name, amount in taken.consumed(device).items())


def _is_exhausted(book: DeviceBook, taken: Taken, result: AllocatedDevice) -> bool:
    """Whether a device's counters are overdrawn."""
    key = PoolKey(result.driver, result.pool)
    devices = book.slices.published(key)
    own = devices.get(result.device)
    if own is None or not own.consumes_counters:
        return False
    drawn: dict[tuple[str, str], int] = {}
    for each in devices.values():
        if each.consumes_counters and taken.is_consumed(DeviceID(*key, each.name)):
            for counter, amount in _draws(each).items():
                drawn[counter] = drawn.get(counter, 0) + amount
    counters = {
        (one.name, name): amount
        for each in book.slices.newest(key)
        for one in each.spec.shared_counters
        for name, amount in amounts_of(one.counters).items()
    }
    return any(drawn[counter] > counters.get(counter, drawn[counter]) for counter in _draws(own))


def _draws(device: Device) -> Mapping[tuple[str, str], int]:
    return {
        (one.counter_set, name): amount
        for one in device.consumes_counters
        for name, amount in amounts_of(one.counters).items()
    }


def _rival(book: DeviceBook, claim: ResourceClaim, result: AllocatedDevice) -> str:
    """Another claim that has the device, or one of its pool."""
    device, neighbour = device_of(result), ""
    for each in book.claims.values():
        allocation = each.status.allocation
        if each.uid == claim.uid or allocation is None:
            continue
        for other in allocation.devices.results:
            if not other.admin_access and device_of(other) == device:
                return f"resource claim {each.key}"
            if (other.driver, other.pool) == (result.driver, result.pool):
                neighbour = each.key
    return f"resource claim {neighbour}" if neighbour else "another resource claim"
