"""DeviceBlocks counts the groups of free devices on nodes, such as eight of one link group.

The groups of a node are found one after the other, each by the search that a claim for such a group starts,
so what is counted can be had. Counts are kept until something changes on a pool of the node.
"""

from dataclasses import dataclass
from typing import NamedTuple

from plimsoll.devices.allocator import first_found
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pools import Pool, PoolKey, PoolState, node_key
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
    """

    free: int
    most: int


class DeviceBlocks:
    """The groups of one kind, by node.

    Args:
        group: What makes a group.
    """

    def __init__(self, group: DeviceGroup) -> None:
        self._group = group
        self._wanted: WantedClaim | None = None
        self._counts: dict[str, tuple[Node, BlockCount]] = {}
        self._most: dict[str, tuple[Node, int]] = {}  #: if nothing were taken
        self._names_of: dict[PoolKey, set[str]] = {}  #: nodes that were counted, by what they reach
        self._version = self._shape_version = -1

    def on(self, node: Node, book: DeviceBook) -> BlockCount:
        """The groups of a node."""
        self._forget(book)
        known = self._counts.get(node.name)
        if known is None or known[0] is not node:
            pools = book.slices.pools_of(node)
            keys = frozenset({node_key(node.name), *(pool.key for pool in pools)})
            for key in keys:
                self._names_of.setdefault(key, set()).add(node.name)
            most = self._most.get(node.name)
            if most is None or most[0] is not node:
                most = self._most[node.name] = node, self.if_taken(node, book, Taken())
            count = BlockCount(self.if_taken(node, book, book.taken), most[1])
            known = self._counts[node.name] = node, count
        return known[1]

    def if_taken(self, node: Node, book: DeviceBook, taken: Taken) -> int:
        """How many groups would be free on a node if that were taken."""
        pools = book.slices.pools_of(node)
        least = self._group.count
        if self._wanted is None or open_devices(pools, taken) < least:
            return 0
        found, count, taken = None, 0, taken.copied()
        while open_devices(pools, taken) >= least and (
            found := first_found((self._wanted,), pools, taken, is_selected)
        ):
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
        twin._most = dict(self._most)
        twin._names_of = {key: set(names) for key, names in self._names_of.items()}
        twin._version, twin._shape_version = self._version, self._shape_version
        return twin

    def _forget(self, book: DeviceBook) -> None:
        if self._version == book.version:
            return
        changed = book.changed_pools(self._version)
        if changed is None or self._shape_version != book.shape_version:
            self._counts.clear()
            self._most.clear()
            self._names_of.clear()
            self._wanted = _wanted(self._group, book)
        else:
            for key in changed:
                names = self._names_of.pop(key, set())
                for name in names:
                    self._counts.pop(name, None)
                    if key == node_key(name):
                        self._most.pop(name, None)
        self._version, self._shape_version = book.version, book.shape_version


def _wanted(group: DeviceGroup, book: DeviceBook) -> WantedClaim | None:
    try:
        return wanted_claim(group.claim, book.classes.get)
    except MissingClassError:
        return None


def usable_devices(pools: tuple[Pool, ...]) -> int:
    """How many devices may be handed out at all."""
    return sum(len(pool.devices) for pool in pools if pool.state is PoolState.COMPLETE)


def open_devices(pools: tuple[Pool, ...], taken: Taken) -> int:
    """How many of these are free or may be shared, if that is taken."""
    return sum(
        each.device.allow_multiple_allocations or not taken.is_consumed(each.id)
        for pool in pools
        if pool.state is PoolState.COMPLETE
        for each in pool.devices
    )


def blocks_of(group: DeviceGroup, book: DeviceBook) -> DeviceBlocks:
    """The groups of one kind, as far as they are counted."""
    return book.kept(group, lambda: DeviceBlocks(group))
