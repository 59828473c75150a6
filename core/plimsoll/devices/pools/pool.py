"""Defines pools of devices: the devices that a node reaches, in the order of allocation.

Source: Kubernetes v1.36, ``dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go``.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from plimsoll.devices.amounts import Amounts, amounts_of, by_full_name
from plimsoll.devices.cel import is_sound, view_of
from plimsoll.model.kinds.resource_slice import (
    AttributeValue,
    Device,
    DeviceCapacity,
    ResourceSlice,
)

if TYPE_CHECKING:
    from dra_cel import DeviceView


#: In place of a driver in the keys of nodes.
NO_DRIVER = ""


class DeviceID(NamedTuple):
    """The name of a device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        """The name in messages."""
        return "/".join(self)


class PoolKey(NamedTuple):
    """The name of a pool in the cluster."""

    driver: str
    name: str


def node_key(name: str) -> PoolKey:
    """A key for other slices that a node reaches; no driver has that name."""
    return PoolKey(NO_DRIVER, name)


class PoolState(Enum):
    """Whether devices of a pool may be allocated."""

    COMPLETE = "complete"
    INCOMPLETE = "currently being updated"
    INVALID = "currently invalid"


class PooledDevice:
    """A device that a node may reach; its contents are decoded on first use.

    Attributes:
        id: Its name.
        device: The published device.
        slice: Its slice.
        is_reached: Whether the node of the pools reaches it; known after its selectors were evaluated.
    """

    __slots__ = (
        *("_amounts", "_attributes", "_capacity", "_consumes", "_is_sound", "_view"),
        *("device", "id", "is_reached", "slice"),
    )

    def __init__(self, published: ResourceSlice, device: Device, *, is_reached: bool) -> None:
        spec = published.spec
        self.id = DeviceID(spec.driver, spec.pool.name, device.name)
        self.device = device
        self.slice = published
        self.is_reached = is_reached
        self._attributes: Mapping[str, AttributeValue] | None = None
        self._amounts: Amounts | None = None
        self._capacity: Mapping[str, DeviceCapacity] | None = None
        self._consumes: Mapping[tuple[str, str], int] | None = None if device.consumes_counters else {}
        self._view: DeviceView | None = None
        self._is_sound: bool | None = None

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Its attributes under their published names."""
        if self._attributes is None:
            self._attributes = {
                name: value
                for name, attribute in self.device.attributes.items()
                if (value := attribute.value) is not None
            }
        return self._attributes

    @property
    def capacity(self) -> Mapping[str, DeviceCapacity]:
        """Its capacities by full name."""
        if self._capacity is None:
            self._capacity = by_full_name(self.device.capacity, self.id.driver)
        return self._capacity

    @property
    def amounts(self) -> Amounts:
        """The amounts of its capacities by full name."""
        if self._amounts is None:
            self._amounts = amounts_of(self.capacity)
        return self._amounts

    @property
    def published_names(self) -> Mapping[str, str]:
        """The names of its capacities as published, by full name."""
        return by_full_name({name: name for name in self.device.capacity}, self.id.driver)

    @property
    def consumes(self) -> Mapping[tuple[str, str], int]:
        """Its consumption of the pool's counters, by set and counter."""
        if self._consumes is None:
            self._consumes = {
                (one.counter_set, name): max(0, amount)
                for one in self.device.consumes_counters
                for name, amount in amounts_of(one.counters).items()
            }
        return self._consumes

    @property
    def view(self) -> "DeviceView":
        """The view for selectors, which decodes its values once."""
        if self._view is None:
            self._view = view_of(
                self.id.driver,
                self.attributes,
                {name: str(has.value) for name, has in self.device.capacity.items()},
                self.device.allow_multiple_allocations,
            )
        return self._view

    @property
    def is_sound(self) -> bool:
        """Whether selectors can decode all of its values."""
        if self._is_sound is None:
            self._is_sound = is_sound(self.device.attributes, self.device.capacity)
        return self._is_sound

    def attribute(self, name: str) -> AttributeValue | None:
        """The attribute of that full name; in the driver's own domain also without the domain."""
        found = self.attributes.get(name)
        if found is None:
            domain, _, short = name.partition("/")
            if domain == self.id.driver:
                found = self.attributes.get(short)
        return found


class Pool(Struct, frozen=True, eq=False):
    """A pool as one node sees it.

    Attributes:
        key: Its name.
        state: Whether its devices may be allocated.
        devices: Devices of the slices that concern the node, in order.
        others: Devices of its other slices, which consume counters too; empty if all slices concern the node.
        counters: The amounts of its counters, by set and counter.
    """

    key: PoolKey
    state: PoolState
    devices: tuple[PooledDevice, ...]
    others: tuple[PooledDevice, ...] = ()
    counters: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def waits_to_bind(self) -> bool:
        """Whether some device must be prepared before a pod is bound."""
        return any(each.device.binding_conditions for each in self.devices)


def pool_of(each: ResourceSlice) -> PoolKey:
    """The pool that a slice belongs to."""
    return PoolKey(each.spec.driver, each.spec.pool.name)
