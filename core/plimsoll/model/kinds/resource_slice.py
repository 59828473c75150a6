"""ResourceSlice and DeviceClass (resource.k8s.io/v1): the devices of a driver, and kinds of devices.

Quantities stay as written.
"""

from datetime import datetime
from typing import TypeAlias

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64
from plimsoll.model.read_only_dict import NO_ENTRIES
from plimsoll.model.selectors import NodeSelector

AmountText: TypeAlias = str | Int64 | float
"""A quantity as written."""


class Version(str):
    """An attribute that is a semantic version."""

    __slots__ = ()


AttributeValue: TypeAlias = int | bool | str
"""The value of an attribute: a version is a :class:`Version`."""


class DeviceAttribute(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One property of a device; exactly one field is set."""

    integer: Int64 | None = msgspec.field(default=None, name="int")
    boolean: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None

    @property
    def value(self) -> AttributeValue | None:
        """The field that is set; None for an unknown type."""
        if self.version is not None:
            return Version(self.version)
        for each in (self.string, self.boolean, self.integer):
            if each is not None:
                return each
        return None


class CapacityRange(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The range of valid requests: minimum, maximum and step."""

    min: AmountText = 0
    max: AmountText | None = None
    step: AmountText | None = None


class CapacityPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The rules by which a request for capacity becomes consumption."""

    default: AmountText | None = None
    valid_values: tuple[AmountText, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The amount of a capacity of a device."""

    value: AmountText = 0
    request_policy: CapacityPolicy | None = None


class DeviceTaint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A reason to keep claims away from a device."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class Counter(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An amount that devices share, or consume."""

    value: AmountText = 0


class CounterConsumption(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A device's consumption of one set of counters."""

    counter_set: str = ""
    counters: dict[str, Counter] = NO_ENTRIES


class CounterSet(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = NO_ENTRIES


class Device(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One device, or one partition of hardware."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = NO_ENTRIES
    capacity: dict[str, DeviceCapacity] = NO_ENTRIES
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The pool of a slice."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Devices or counters, and the nodes that reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A part of a pool of devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class CELSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An expression about a device."""

    expression: str = ""


class DeviceSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A condition that devices must satisfy."""

    cel: CELSelector | None = None


class DeviceClassSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The selectors of the class, its configuration, and the extended resource that it serves."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[dict[str, object], ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A kind of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()
