"""Prepares requests of claims for the search: their classes, selectors, tolerations and amounts.

Source: Kubernetes v1.36, ``structured/internal/incubating/allocator_incubating.go``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from plimsoll.devices.amounts import Amounts, amount_of
from plimsoll.devices.search_limits import LONGEST_MESSAGE
from plimsoll.model.kinds.pod import Toleration
from plimsoll.model.kinds.resource_claim import (
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from plimsoll.model.kinds.resource_slice import DeviceClass, DeviceSelector, DeviceTaint
from plimsoll.model.read_once import ReadOnce
from plimsoll.model.shortened import shortened
from plimsoll.model.taints import HARD_EFFECTS, tolerates

#: Maximum number of devices of a claim.
MOST_DEVICES = 32

#: ``allocationMode`` of requests for all matching devices.
ALL = "All"
MODES = (ALL, "ExactCount")


class Expression(Struct, frozen=True):
    """A selector, and the prefix of its error messages.

    Attributes:
        text: As written.
        where: Its field path; for a claim's selector, the part after the claim's name.
        claim: The claim whose selector it is, with its namespace; "" for a class.
    """

    text: str
    where: str
    claim: str = ""


class WantedDevices(Struct, frozen=True, eq=False):
    """A request, or one of its alternatives.

    Attributes:
        request: The name of the request.
        alternative: The name of the alternative, or "".
        device_class: The class.
        expressions: Of the class, then of the request.
        fault: Why it cannot be searched, without the name of the claim; "" if it can.
        takes_all: Whether every matching device is wanted.
        count: The wanted number, otherwise.
        is_admin: Whether devices in use may be allocated.
        tolerations: Tolerations of taints.
        capacity: The wanted capacity of each device, under the names as written.
    """

    request: str
    alternative: str
    device_class: DeviceClass
    expressions: tuple[Expression, ...]
    fault: str
    takes_all: bool
    count: int
    is_admin: bool
    tolerations: tuple[Toleration, ...]
    capacity: Amounts

    @property
    def name(self) -> str:
        """``request``, or ``request/alternative``."""
        return f"{self.request}/{self.alternative}" if self.alternative else self.request

    @property
    def own_name(self) -> str:
        """Its name in error messages."""
        return self.alternative or self.request

    def tolerates(self, taints: Sequence[DeviceTaint]) -> bool:
        """Whether it tolerates all taints that keep a device from being allocated."""
        return all(
            taint.effect not in HARD_EFFECTS or any(tolerates(each, taint) for each in self.tolerations)
            for taint in taints
        )


class Request(Struct, frozen=True, eq=False):
    """One request: one kind of devices, or a list of alternatives."""

    name: str
    alternatives: tuple[WantedDevices, ...]
    is_list: bool


class WantedClaim(Struct, frozen=True, eq=False):
    """A claim to be allocated.

    Attributes:
        claim: The claim.
        requests: Its requests.
        constraints: The constraints as written.
    """

    claim: ResourceClaim
    requests: tuple[Request, ...]
    constraints: tuple[DeviceConstraint, ...]

    @property
    def classes(self) -> Iterator[DeviceClass]:
        """The classes of its requests."""
        return (each.device_class for request in self.requests for each in request.alternatives)

    @property
    def least(self) -> int:
        """The minimum number of devices; a request for all counts as one."""
        return sum(
            min((1 if each.takes_all else each.count for each in request.alternatives), default=0)
            for request in self.requests
        )


class MissingClassError(ValueError):
    """A request names no class, an unknown class, or is of an unknown kind.

    Attributes:
        is_unnamed: Whether it names none.
    """

    def __init__(self, message: str, *, is_unnamed: bool = False) -> None:
        super().__init__(shortened(message, LONGEST_MESSAGE))
        self.is_unnamed = is_unnamed


ClassOf: TypeAlias = Callable[[str], DeviceClass | None]
"""Finds a class by name."""


def wanted_claim(claim: ResourceClaim, class_of: ClassOf) -> WantedClaim:
    """Look up the classes of a claim's requests.

    Raises:
        MissingClassError: In upstream's words.
    """
    requests = tuple(_request(each, claim, class_of) for each in claim.spec.devices.requests)
    return WantedClaim(claim, requests, claim.spec.devices.constraints)


def _request(request: DeviceRequest, claim: ResourceClaim, class_of: ClassOf) -> Request:
    if request.exactly is not None:
        only = _wanted(request.name, "", request.exactly, claim, class_of)
        return Request(request.name, (only,), is_list=False)
    if not request.first_available:
        raise MissingClassError(f"resource claim {claim.key}, request {request.name}: unknown request type")
    alternatives = (
        _wanted(request.name, each.name, each, claim, class_of) for each in request.first_available
    )
    return Request(request.name, tuple(alternatives), is_list=True)


def _wanted(
    request: str, alternative: str, asked: ExactDeviceRequest, claim: ResourceClaim, class_of: ClassOf
) -> WantedDevices:
    name = f"{request}/{alternative}" if alternative else request
    if not asked.device_class_name:
        raise MissingClassError(f"request {name}: unsupported request type", is_unnamed=True)
    found = class_of(asked.device_class_name)
    if found is None:
        raise MissingClassError(f"request {name}: device class {asked.device_class_name} does not exist")
    return WantedDevices(
        request,
        alternative,
        found,
        (
            *_expressions(found.spec.selectors, f"class {found.name}"),
            *_expressions(asked.selectors, claim=claim.key),
        ),
        _fault(asked, alternative or request),
        asked.allocation_mode == ALL,
        asked.count,
        asked.admin_access and not alternative,
        asked.tolerations,
        _capacity_of(asked.capacity.requests),
    )


def _fault(asked: ExactDeviceRequest, name: str) -> str:
    """A feature of a later API version that is not known here, in upstream's words."""
    for position, each in enumerate(asked.selectors):
        if each.cel is None:
            empty = "CEL expression empty (unsupported selector type?)"
            return f", request {name}, selector #{position}: {empty}"
    if asked.allocation_mode not in MODES:
        return f", request {name}: unsupported count mode {asked.allocation_mode}"
    return ""


def _capacity(written: Mapping[str, str | int | float]) -> Amounts:
    return {name: max(0, amount_of(each)) for name, each in written.items()}


_capacity_of = ReadOnce(_capacity)


def _expressions(
    selectors: tuple[DeviceSelector, ...], where: str = "", claim: str = ""
) -> tuple[Expression, ...]:
    return tuple(
        Expression("" if each.cel is None else each.cel.expression, f"{where}: selector #{position}", claim)
        for position, each in enumerate(selectors)
    )
