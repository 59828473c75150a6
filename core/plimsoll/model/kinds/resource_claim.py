"""ResourceClaim (resource.k8s.io/v1): the wanted devices, the allocated ones, and their users.

Quantities stay as written.
"""

from datetime import datetime
from typing import TypeAlias

import msgspec

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.pod import PodCondition, Toleration
from plimsoll.model.kinds.pod_group import CORE
from plimsoll.model.kinds.resource_slice import AmountText, DeviceSelector
from plimsoll.model.read_only_dict import NO_ENTRIES
from plimsoll.model.selectors import NodeSelector

Configuration: TypeAlias = dict[str, object]
"""An opaque configuration, with the names of the requests that it is for."""


class CapacityRequirements(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The wanted amounts of a device's capacities."""

    requests: dict[str, AmountText] = NO_ENTRIES


class ExactDeviceRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A number of devices of a class; in a list of alternatives also a name."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements = CapacityRequirements()


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Devices of one class, or the first available one of several alternatives."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[ExactDeviceRequest, ...] = ()


class DeviceConstraint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A property that devices of some or all requests must share, or must not share."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The wanted devices."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[Configuration, ...] = ()


class ResourceClaimSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The spec of a claim."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True
):
    """One device for one request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, AmountText] = NO_ENTRIES


class AllocatedDevices(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True
):
    """All devices of a claim, and their configuration."""

    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[Configuration, ...] = ()


class AllocationResult(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True
):
    """The allocated devices, and the nodes that can use them."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class Consumer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """A user of a claim: a pod, or a PodGroup of the core API with all of its members."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""

    @property
    def is_group(self) -> bool:
        """Whether it is a PodGroup."""
        return (self.api_group, self.resource) == (CORE, "podgroups")


class AllocatedDeviceStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A driver's report about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[PodCondition, ...] = ()


class ResourceClaimStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The allocation of a claim, and its users."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[Consumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A claim on devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def is_allocated(self) -> bool:
        """Whether devices are allocated to it."""
        return self.status.allocation is not None

    def allocated(
        self, allocation: AllocationResult | None, users: tuple[Consumer, ...] = ()
    ) -> "ResourceClaim":
        """The same claim with that allocation, for these users."""
        status = msgspec.structs.replace(self.status, allocation=allocation, reserved_for=users)
        return msgspec.structs.replace(self, status=status)
