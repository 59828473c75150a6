"""Finds the attributes and capacities of a device that an expression may read.

Devices that agree in these have equal results: the same verdict, the same cost and the same error. An
expression that may read more than it names (it iterates over a map, computes a key, or passes a map on) has
no such list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dra_cel.syntax import Call, Constant, Fold, Name, Select, Tree, parts_of

_MAPS = ("attributes", "capacity")
_HARMLESS = ("driver", "allowMultipleAllocations")
_INDEXED = frozenset({"_[_]", "_?._", "_[?_]"})


class ReadNames(NamedTuple):
    """Names under which devices of one driver publish the values that are read.

    Attributes:
        attributes: With and without the domain if that is the driver's own.
        capacity: The same.
    """

    attributes: tuple[str, ...]
    capacity: tuple[str, ...]


class KnownReads:
    """The values that an expression reads, in addition to the driver and ``allow_multiple``.

    Args:
        paths: Map, domain and identifier of each value.
    """

    def __init__(self, paths: frozenset[tuple[str, str, str]]) -> None:
        self.paths = paths
        self._names: tuple[str, ReadNames] | None = None

    def names(self, driver: str) -> ReadNames:
        """The relevant names of a driver's devices."""
        if self._names is None or self._names[0] != driver:
            attributes, capacity = (
                tuple(
                    name
                    for each, domain, identifier in sorted(self.paths)
                    if each == kind
                    for name in (f"{domain}/{identifier}", *([identifier] if domain == driver else []))
                )
                for kind in _MAPS
            )
            self._names = driver, ReadNames(attributes, capacity)
        return self._names[1]


class _UnknownReadsError(Exception):
    """It may read anything."""


def reads_of(tree: Tree) -> KnownReads | None:
    """The values that an expression reads; None if it may read any."""
    found: set[tuple[str, str, str]] = set()
    try:
        _collect(tree, {}, found)
    except _UnknownReadsError:
        return None
    return KnownReads(frozenset(found))


def _collect(tree: Tree, bound: Mapping[str, tuple[str, str]], found: set[tuple[str, str, str]]) -> None:
    """Add the values that a node reads.

    Args:
        tree: The node.
        bound: Variables whose value is a domain of a map: the map and the domain.
        found: Map, domain and identifier of the values read.

    Raises:
        _UnknownReadsError: It may read anything.
    """
    operand, key = _step(tree)
    if operand is not None:
        domain = _domain(operand, bound)
        if domain is not None and key is not None:
            found.add((*domain, key))
            return
    match tree:
        case Name() if tree.name in bound or _field(tree) in _MAPS or tree.name == "device":
            raise _UnknownReadsError
        case Select() if _field(tree) in _HARMLESS:
            return
        case Select() if _field(tree) in _MAPS:
            raise _UnknownReadsError
        case Fold():
            _collect_fold(tree, bound, found)
        case _:
            for part in parts_of(tree):
                _collect(part, bound, found)


def _collect_fold(tree: Fold, bound: Mapping[str, tuple[str, str]], found: set[tuple[str, str, str]]) -> None:
    names = {tree.variable, tree.second, tree.accumulator}
    if "device" in names or not names.isdisjoint(bound):
        raise _UnknownReadsError
    domain = _domain(tree.start, bound)
    is_binding = isinstance(tree.condition, Constant) and tree.condition.value is False
    if domain is not None and is_binding:
        _collect(tree.over, bound, found)
        _collect(tree.result, {**bound, tree.accumulator: domain}, found)
        return
    for part in parts_of(tree):
        _collect(part, bound, found)


def _domain(tree: Tree, bound: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    """The map and the domain whose values a node is; None for everything else."""
    if isinstance(tree, Name) and tree.name in bound:
        return bound[tree.name]
    if isinstance(tree, Select) and tree.test:
        return None
    operand, key = _step(tree, ("_[_]",))
    field = None if operand is None else _field(operand)
    return (field, key) if field in _MAPS and key is not None else None


def _field(tree: Tree) -> str | None:
    """The field of the device that a node is; None for everything else."""
    if isinstance(tree, Name):
        whole, _, field = tree.name.partition(".")
        return field if whole == "device" and field else None
    if isinstance(tree, Select) and isinstance(tree.operand, Name) and tree.operand.name == "device":
        return tree.field
    return None


def _step(tree: Tree, calls: frozenset[str] | tuple[str, ...] = _INDEXED) -> tuple[Tree | None, str | None]:
    """The operand and the key of a field, or of an element with a literal text as its key."""
    if isinstance(tree, Select):
        return tree.operand, tree.field
    if isinstance(tree, Call) and tree.function in calls and len(tree.arguments) == 2:
        operand, key = tree.arguments
        if isinstance(key, Constant) and isinstance(key.value, str):
            return operand, key.value
    return None, None
