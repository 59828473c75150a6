"""Checks constraints of a claim: an attribute that all its devices share, or that no two of them share.

A search adds and removes devices. Upstream's constraints forget some of this on the way, and so do these.

Source: Kubernetes v1.36, ``structured/internal/incubating/constraint.go``.
"""

from collections.abc import Iterable
from typing import Protocol

from plimsoll.devices.pools import PooledDevice
from plimsoll.model.kinds.resource_claim import DeviceConstraint
from plimsoll.model.kinds.resource_slice import AttributeValue


class ClaimConstraint(Protocol):
    """A constraint on the devices of a claim."""

    def add(self, request: str, alternative: str, device: PooledDevice) -> bool:
        """Add a device for ``request``, or for its ``request/alternative``; False for a violation."""

    def remove(self, request: str, alternative: str) -> None:
        """Remove a device that was added for it."""


class MatchAttribute:
    """All devices have the attribute with one value, which the first of them sets."""

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self._attribute = attribute
        self._requests = requests
        self._value: AttributeValue | None = None
        self._count = 0

    def add(self, request: str, alternative: str, device: PooledDevice) -> bool:
        """Add a device."""
        if not _concerns(self._requests, request, alternative):
            return True
        value = device.attribute(self._attribute)
        if value is None:
            return False
        if self._count == 0:
            self._value = value
        elif not _is_same(value, self._value):
            return False
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Remove a device."""
        if _concerns(self._requests, request, alternative):
            self._count -= 1


class DistinctAttribute:
    """No two devices have the same value of the attribute.

    Only the latest value of each request is remembered, and none after one of its devices was removed.
    """

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self._attribute = attribute
        self._requests = requests
        self._values: dict[str, AttributeValue] = {}

    def add(self, request: str, alternative: str, device: PooledDevice) -> bool:
        """Add a device."""
        if not _concerns(self._requests, request, alternative):
            return True
        value = device.attribute(self._attribute)
        if value is None or any(_is_same(value, other) for other in self._values.values()):
            return False
        self._values[request] = value
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Remove a device."""
        if _concerns(self._requests, request, alternative):
            self._values.pop(request, None)


def constraints_of(written: Iterable[DeviceConstraint]) -> tuple[ClaimConstraint, ...]:
    """The constraints of a claim, without any device yet."""
    made: list[ClaimConstraint] = []
    for each in written:
        requests = frozenset(each.requests)
        if each.match_attribute is not None:
            made.append(MatchAttribute(each.match_attribute, requests))
        elif each.distinct_attribute is not None:
            made.append(DistinctAttribute(each.distinct_attribute, requests))
    return tuple(made)


def _concerns(requests: frozenset[str], request: str, alternative: str) -> bool:
    return (
        not requests or request in requests or (alternative != "" and f"{request}/{alternative}" in requests)
    )


def _is_same(one: AttributeValue, other: AttributeValue | None) -> bool:
    return type(one) is type(other) and one == other
