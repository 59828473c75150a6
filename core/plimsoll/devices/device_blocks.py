"""DeviceBlocks counts the groups of free devices on nodes, such as eight of one link group.

The groups of a node are found one by one, each by the search that a claim for such a group starts; every
counted group can therefore be allocated. Counts are cached until a pool of the node changes.
"""

from typing import NamedTuple

from msgspec import Struct

from plimsoll.devices.allocator import first_found
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.by_node import ByNode
from plimsoll.devices.pools import Pool, PoolKey, PoolState, node_key
from plimsoll.devices.requests import MissingClassError, WantedClaim, wanted_claim
from plimsoll.devices.results import allocations
from plimsoll.devices.selectors import is_selected
from plimsoll.devices.taken import Taken
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.resource_claim import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from plimsoll.model.kinds.resource_slice import CELSelector, DeviceSelector

#: Pools beyond two for each counted node, after which names of nodes that have gone are looked for.
FEWEST_POOLS = 256


class DeviceGroup(Struct, frozen=True):
    """A kind of group of devices that are useful together.

    Attributes:
        device_class: The name of their class.
        count: Number of devices.
        selector: The requirement on each device, in CEL; "" for any.
        match_attribute: An attribute with one value for all of them, such as a link group; "" for none.
    """

    device_class: str
    count: int
    selector: str = ""
    match_attribute: str = ""

    @property
    def claim(self) -> ResourceClaim:
        """A claim for such a group."""
        cel = (DeviceSelector(cel=CELSelector(expression=self.selector)),) if self.selector else ()
        asked = ExactDeviceRequest(device_class_name=self.device_class, count=self.count, selectors=cel)
        alike = (DeviceConstraint(match_attribute=self.match_attribute),) if self.match_attribute else ()
        devices = DeviceClaim(
            requests=(DeviceRequest(name="block", exactly=asked),),
            constraints=alike,
        )
        return ResourceClaim(metadata=ObjectMeta(name="block"), spec=ResourceClaimSpec(devices=devices))


class BlockCount(NamedTuple):
    """Number of groups on one node.

    Attributes:
        free: Number of free groups.
        most: Number of groups if no device were taken.
    """

    free: int
    most: int


class DeviceBlocks:
    """Counts the groups of one kind, by node.

    Args:
        group: The kind of group.
    """

    def __init__(self, group: DeviceGroup) -> None:
        self._group = group
        self._wanted: WantedClaim | None = None
        self._counts: ByNode[BlockCount] = ByNode()
        self._most: ByNode[int] = ByNode()  #: as if no device were taken
        self._names_of: dict[PoolKey, set[str]] = {}  #: counted nodes, by the pools that they reach
        self._version = self._shape_version = -1

    def on(self, node: Node, book: DeviceBook) -> BlockCount:
        """The groups of a node."""
        self._forget(book)
        known = self._counts.find(node)
        if known is None:
            pools = book.slices.pools_of(node)
            keys = frozenset({node_key(node.name), *(pool.key for pool in pools)})
            for key in keys:
                self._names_of.setdefault(key, set()).add(node.name)
            most = self._most.find(node)
            if most is None:
                most = self.if_taken(node, book, Taken())
                self._most.put(node, most)
            known = BlockCount(self.if_taken(node, book, book.taken), most)
            self._counts.put(node, known)
            if len(self._names_of) > 2 * len(self._counts) + FEWEST_POOLS:
                self._forget_names()
        return known

    def if_taken(self, node: Node, book: DeviceBook, taken: Taken) -> int:
        """The number of free groups on a node if these devices were taken."""
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
                break  # shares are unlimited
            for each in allocations((self._wanted,), found, node.name, str):
                taken.add(each)
        return count

    def copied(self) -> "DeviceBlocks":
        """An independent copy."""
        twin = DeviceBlocks(self._group)
        twin._wanted, twin._counts = self._wanted, self._counts.copied()
        twin._most = self._most.copied()
        twin._names_of = {key: set(names) for key, names in self._names_of.items()}
        twin._version, twin._shape_version = self._version, self._shape_version
        return twin

    def _forget_names(self) -> None:
        """Drop the names of nodes that have gone."""
        found = {
            key: {each for each in names if each in self._counts} for key, names in self._names_of.items()
        }
        self._names_of = {key: names for key, names in found.items() if names}

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
                    self._counts.pop(name)
                    if key == node_key(name):
                        self._most.pop(name)
        self._version, self._shape_version = book.version, book.shape_version


def _wanted(group: DeviceGroup, book: DeviceBook) -> WantedClaim | None:
    try:
        return wanted_claim(group.claim, book.classes.get)
    except MissingClassError:
        return None


def usable_devices(pools: tuple[Pool, ...]) -> int:
    """The number of devices that can be allocated at all."""
    return sum(len(pool.devices) for pool in pools if pool.state is PoolState.COMPLETE)


def open_devices(pools: tuple[Pool, ...], taken: Taken) -> int:
    """The number of these that are free or can be shared if ``taken`` are taken."""
    return sum(
        each.device.allow_multiple_allocations or not taken.is_consumed(each.id)
        for pool in pools
        if pool.state is PoolState.COMPLETE
        for each in pool.devices
    )


def blocks_of(group: DeviceGroup, book: DeviceBook) -> DeviceBlocks:
    """The groups of one kind, with the counts cached so far."""
    return book.kept(group, lambda: DeviceBlocks(group))
