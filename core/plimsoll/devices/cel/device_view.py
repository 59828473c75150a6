"""Presents a device to expressions: its driver, its attributes and its capacity."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from plimsoll.devices.amounts import by_full_name
from plimsoll.devices.cel.functions.quantities import Quantity, parse_quantity, parse_semver
from plimsoll.devices.cel.values import GREATEST_INT, LEAST_INT, DomainMap, EvaluationError
from plimsoll.model.kinds.devices.resource_slice import (
    AttributeValue,
    DeviceAttribute,
    DeviceCapacity,
    Version,
)

#: Maximum length of amounts and versions that are parsed once for all devices that have them.
SHORT = 64

_known_semver = lru_cache(maxsize=4096)(parse_semver)
_known_quantity = lru_cache(maxsize=4096)(parse_quantity)


class DeviceView:
    """A device of a ResourceSlice as a selector sees it.

    Its maps must not change: their values are parsed once, when the first selector reads them.

    Attributes:
        driver: of the slice; the domain of names without one.
        attributes: under their names as written, with or without a domain.
        capacity: quantities as written, under their names.
        allow_multiple: whether several allocations may share the device.
    """

    __slots__ = ("_by_domain", "allow_multiple", "attributes", "capacity", "driver")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, AttributeValue],
        capacity: Mapping[str, str],
        allow_multiple: bool = False,
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple = allow_multiple
        self._by_domain: tuple[DomainMap, DomainMap] | None = None

    def __repr__(self) -> str:
        return f"DeviceView({self.driver!r}, {self.attributes!r}, {self.capacity!r}, {self.allow_multiple!r})"

    def by_domain(self) -> tuple[DomainMap, DomainMap]:
        """Attributes and capacity as values of expressions, by domain and identifier.

        Raises:
            EvaluationError: a value does not fit its type.
        """
        if self._by_domain is None:
            attributes = {name: _value(name, value) for name, value in self.attributes.items()}
            capacity = {name: _quantity(value) for name, value in self.capacity.items()}
            self._by_domain = (
                _sorted_by_domain(attributes, self.driver),
                _sorted_by_domain(capacity, self.driver),
            )
        return self._by_domain


def is_sound(
    driver: str, attributes: Mapping[str, DeviceAttribute], capacity: Mapping[str, DeviceCapacity]
) -> bool:
    """Whether all values of a device can be parsed, each under one name only.

    If one cannot, every expression fails on the device, whatever it reads. Of two names of one value the one
    with the domain counts.
    """
    for each in attributes.values():
        if each.version is not None and not _is_semver(each.version):
            return False
        if each.integer is not None and not LEAST_INT <= each.integer <= GREATEST_INT:
            return False
    if _has_two_names(driver, attributes) or _has_two_names(driver, capacity):
        return False
    return all(_is_quantity(str(each.value)) for each in capacity.values())


def _has_two_names(driver: str, names: Collection[str]) -> bool:
    """Whether a value exists both with and without the domain of the driver."""
    own = f"{driver}/"
    return any(name.startswith(own) and name.removeprefix(own) in names for name in names)


@lru_cache(maxsize=4096)
def _is_semver(text: str) -> bool:
    try:
        _value("", Version(text))
    except EvaluationError:
        return False
    return True


@lru_cache(maxsize=4096)
def _is_quantity(text: str) -> bool:
    try:
        _quantity(text)
    except EvaluationError:
        return False
    return True


def _value(name: str, value: AttributeValue) -> Any:
    if isinstance(value, Version):
        try:
            return _known_semver(str(value)) if len(value) <= SHORT else parse_semver(str(value))
        except EvaluationError as error:
            raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from error
    if isinstance(value, int) and not LEAST_INT <= value <= GREATEST_INT:
        raise EvaluationError(f"attribute {name}: the number does not fit 64 bits")
    return value


def _quantity(text: str) -> Quantity:
    return _known_quantity(text) if len(text) <= SHORT else parse_quantity(text)


def _sorted_by_domain(values: Mapping[str, Any], driver: str) -> DomainMap:
    found: dict[str, dict[str, Any]] = {}
    for name, value in by_full_name(values, driver).items():
        domain, _, identifier = name.partition("/")
        found.setdefault(domain, {})[identifier] = value
    return DomainMap(found)
