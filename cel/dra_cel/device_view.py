"""Presents a device to expressions: its driver, its attributes and its capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from dra_cel.functions.quantities import parse_quantity, parse_semver
from dra_cel.values import GREATEST_INT, LEAST_INT, DomainMap, EvaluationError


class Version(str):
    """An attribute that is a semantic version."""

    __slots__ = ()


AttributeValue: TypeAlias = int | bool | str
"""The value of an attribute: a version is a :class:`Version`."""


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

    @property
    def error(self) -> str:
        """Why every selector fails on this device, whatever it reads: a value that cannot be read; or ""."""
        try:
            self.by_domain()
        except EvaluationError as error:
            return str(error)
        return ""

    def by_domain(self) -> tuple[DomainMap, DomainMap]:
        """Attributes and capacity as values of expressions, by domain and identifier.

        Raises:
            EvaluationError: a value does not fit its type.
        """
        if self._by_domain is None:
            attributes = {name: _value(name, value) for name, value in self.attributes.items()}
            capacity = {name: parse_quantity(value) for name, value in self.capacity.items()}
            self._by_domain = (
                _sorted_by_domain(attributes, self.driver),
                _sorted_by_domain(capacity, self.driver),
            )
        return self._by_domain


def _value(name: str, value: AttributeValue) -> Any:
    if isinstance(value, Version):
        try:
            return parse_semver(str(value))
        except EvaluationError as error:
            raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from error
    if isinstance(value, int) and not LEAST_INT <= value <= GREATEST_INT:
        raise EvaluationError(f"attribute {name}: the number does not fit 64 bits")
    return value


def _sorted_by_domain(values: Mapping[str, Any], driver: str) -> DomainMap:
    """Values by domain and identifier; of two spellings of one name the one with the domain counts."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, has_domain, identifier = name.partition("/")
        if has_domain:
            found.setdefault(domain, {})[identifier] = value
    for name, value in values.items():
        if "/" not in name:
            found.setdefault(driver, {}).setdefault(name, value)
    return DomainMap(found)
