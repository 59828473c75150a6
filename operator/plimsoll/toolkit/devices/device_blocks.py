"""DeviceBlocks counts the groups of free devices on nodes, such as eight of one link group.

The groups of a node are found one after the other, each by the search that a claim for such a group starts,
so what is counted can be had. Counts are kept until something changes on a pool of the node.
"""

from dataclasses import dataclass
from typing import NamedTuple

from plimsoll.devices.allocator import first_found
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pools import Pool, PoolKey, PoolState
from plimsoll.devices.requests import MissingClassError, WantedClaim, wanted_claim
from plimsoll.devices.results import allocations
from plimsoll.devices.selectors import is_selected
from plimsoll.devices.taken import Taken
from plimsoll.model.kinds.devices.resource_claim import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from plimsoll.model.kinds.devices.resource_slice import CELSelector, DeviceSelector
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.node import Node


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Devices that are of use together.

    Attributes:
        device_class: The name of their class.
        count: How many.
        selector: What each must be like, in CEL; "" for any.
        match_attribute: What all of them have in common, such as a link group; "" for nothing.
    """

    device_class: str
    count: int
    selector: str = ""
    match_attribute: str = ""

    @property
    def claim(self) -> ResourceClaim:
        """A claim for them."""
        cel = (DeviceSelector(cel=CELSelector(expression=self.selector)),) if self.selector else ()
        asked = ExactDeviceRequest(device_class_name=self.device_class, count=self.count, selectors=cel)
        alike = (DeviceConstraint(match_attribute=self.match_attribute),) if self.match_attribute else ()
        devices = DeviceClaim(
            requests=(DeviceRequest(name="block", exactly=asked),),
            constraints=alike,
        )
        return ResourceClaim(metadata=ObjectMeta(name="block"), spec=ResourceClaimSpec(devices=devices))


class BlockCount(NamedTuple):
    """Groups of one node.

    Attributes:
        free: Those that are free.
        most: Those that are there.
        pools: What the node reaches.
    """

    free: int
    most: int
    pools: frozenset[PoolKey]


class DeviceBlocks:
    """The groups of one kind, by node.

    Args:
        group: What makes a group.
    """

    def __init__(self, group: DeviceGroup) -> None:
        self._group = group
        self._wanted: WantedClaim | None = None
        self._counts: dict[str, tuple[Node, BlockCount]] = {}
        self._version = self._shape_version = -1

    def on(self, node: Node, book: DeviceBook) -> BlockCount:
        """The groups of a node."""
        self._forget(book)
        known = self._counts.get(node.name)
        if known is None or known[0] is not node:
            pools = book.slices.pools_of(node)
            keys = frozenset(pool.key for pool in pools)
            free, most = self.if_taken(node, book, book.taken), self.if_taken(node, book, Taken())
            known = self._counts[node.name] = node, BlockCount(free, most, keys)
        return known[1]

    def if_taken(self, node: Node, book: DeviceBook, taken: Taken) -> int:
        """How many groups would be free on a node if that were taken."""
        pools = book.slices.pools_of(node)
        if self._wanted is None or usable_devices(pools) < self._group.count:
            return 0
        found, count, taken = None, 0, taken.copied()
        while found := first_found((self._wanted,), pools, taken, is_selected):
            count += 1
            if any(each.capacity is not None for given in found.given for each in given):
                break  # of shares there is no end
            for each in allocations((self._wanted,), found, node.name, str):
                taken.add(each)
        return count

    def copied(self) -> "DeviceBlocks":
        """An independent copy."""
        twin = DeviceBlocks(self._group)
        twin._wanted, twin._counts = self._wanted, dict(self._counts)
        twin._version, twin._shape_version = self._version, self._shape_version
        return twin

    def _forget(self, book: DeviceBook) -> None:
        if self._version == book.version:
            return
        changed = book.changed_pools(self._version)
        if changed is None or self._shape_version != book.shape_version:
            self._counts.clear()
            self._wanted = _wanted(self._group, book)
        elif changed:
            stale = [name for name, (_, count) in self._counts.items() if not changed.isdisjoint(count.pools)]
            for name in stale:
                del self._counts[name]
        self._version, self._shape_version = book.version, book.shape_version


def _wanted(group: DeviceGroup, book: DeviceBook) -> WantedClaim | None:
    try:
        return wanted_claim(group.claim, book.classes.get)
    except MissingClassError:
        return None


def usable_devices(pools: tuple[Pool, ...]) -> int:
    """How many devices may be handed out at all."""
    return sum(len(pool.devices) for pool in pools if pool.state is PoolState.COMPLETE)


def blocks_of(group: DeviceGroup, book: DeviceBook) -> DeviceBlocks:
    """The groups of one kind, as far as they are counted."""
    return book.kept(group, lambda: DeviceBlocks(group))
