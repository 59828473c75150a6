"""Compiles access to variables, fields and elements.

Costs: one unit for a variable, for each field and for each index.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from dra_cel.frames import Evaluate, FailedValue, Frame, LocalNames
from dra_cel.syntax import Call, Constant, Name, Select, Tree, UInt
from dra_cel.values import (
    NONE,
    CostError,
    DomainMap,
    EvaluationError,
    Optional,
    is_number,
    key_of,
    no_such_overload,
)

_MAPS = frozenset({dict, DomainMap})
_FIELDS_OF_DEVICE = {
    "driver": attrgetter("device.driver"),
    "attributes": attrgetter("attributes"),
    "capacity": attrgetter("capacity"),
    "allowMultipleAllocations": attrgetter("device.allow_multiple"),
}
_MAPS_OF_DEVICE = {f"device.{name}": _FIELDS_OF_DEVICE[name] for name in ("attributes", "capacity")}
_KEYS = frozenset({bool, int, UInt, float, str})


def variable(slot: int) -> Evaluate:
    """A variable of a macro."""

    def run(frame: Frame) -> Any:
        frame.left -= 1
        if frame.left < 0:
            raise CostError
        value = frame.slots[slot]
        if type(value) is FailedValue:
            raise value.error
        return value

    return run


def whole_device() -> Evaluate:
    """The device as a map of its four fields."""

    def run(frame: Frame) -> Any:
        frame.charge(1)
        return {
            "driver": frame.device.driver,
            "attributes": frame.attributes,
            "capacity": frame.capacity,
            "allowMultipleAllocations": frame.device.allow_multiple,
        }

    return run


def device_field(name: str) -> Evaluate:
    """One of the four fields."""
    field_of = _FIELDS_OF_DEVICE[name]

    def run(frame: Frame) -> Any:
        frame.charge(2)
        return field_of(frame)

    return run


def known_path(tree: Tree, scope: LocalNames) -> Evaluate | None:
    """``device.attributes["domain"].id`` in one step; None for everything else."""
    identifier, operand = _constant_key(tree)
    domain, root = _constant_key(operand)
    if (
        identifier is None
        or domain is None
        or not isinstance(root, Name)
        or scope.slot_of(root.name) is not None
    ):
        return None

    field_of = _MAPS_OF_DEVICE.get(root.name)
    if field_of is None:
        return None

    def run(frame: Frame) -> Any:
        frame.left -= 4
        if frame.left < 0:
            raise CostError
        try:
            return field_of(frame)[domain][identifier]
        except KeyError:
            raise EvaluationError(f"no such key: {identifier}") from None

    return run


def _constant_key(tree: Tree | None) -> tuple[str | None, Tree | None]:
    """The key of a field or an index that is a literal text, and the node that it applies to."""
    if isinstance(tree, Select) and not tree.test:
        return tree.field, tree.operand
    if isinstance(tree, Call) and tree.function == "_[_]":
        operand, key = tree.arguments
        if isinstance(key, Constant) and isinstance(key.value, str):
            return key.value, operand
    return None, None


def field(operand: Evaluate, name: str) -> Evaluate:
    """A field of a map, or of a map that may be missing."""

    def run(frame: Frame) -> Any:
        value = operand(frame)
        frame.charge(1)
        if type(value) is Optional:
            return _optional(value, name)
        if type(value) not in _MAPS:
            raise no_such_overload()
        try:
            return value[name]
        except KeyError:
            raise EvaluationError(f"no such key: {name}") from None

    return run


def has_field(operand: Evaluate, name: str) -> Evaluate:
    """``has(operand.name)``; a domain always exists, because an unknown one is an empty map."""

    def run(frame: Frame) -> Any:
        value = operand(frame)
        if type(value) is Optional:
            return bool(_optional(value, name).values)
        if type(value) not in _MAPS:
            raise no_such_overload()
        return type(value) is DomainMap or name in value

    return run


def index(operand: Evaluate, key: Evaluate) -> Evaluate:
    """An element of a list or a map, or of one that may be missing."""

    def run(frame: Frame) -> Any:
        value = operand(frame)
        wanted = key(frame)
        frame.charge(1)
        if type(value) is Optional:
            return _optional(value, wanted)
        return element(value, wanted)

    return run


def element(value: Any, key: Any) -> Any:
    """The element of a list or a map.

    Raises:
        EvaluationError: It does not exist.
    """
    kind = type(value)
    if kind in _MAPS:
        if type(key) not in _KEYS:
            raise no_such_overload()
        try:
            return value[key_of(key)]
        except KeyError:
            raise EvaluationError(f"no such key: {key}") from None
    if kind is not list or not is_number(key):
        raise no_such_overload()
    if key != key // 1:
        raise EvaluationError(f"unsupported index value: {key}")
    if not 0 <= key < len(value):
        raise EvaluationError(f"index out of bounds: {int(key)}")
    return value[int(key)]


def optional_index(operand: Evaluate, key: Evaluate) -> Evaluate:
    """``operand.?key`` and ``operand[?key]``."""

    def run(frame: Frame) -> Any:
        value = operand(frame)
        wanted = key(frame)
        frame.charge(1)
        return _optional(value if type(value) is Optional else Optional((value,)), wanted)

    return run


def _optional(value: Optional, key: Any) -> Optional:
    """The element of a value that may be missing, as a value that may be missing."""
    if not value.values:
        return NONE
    inner = value.values[0]
    kind = type(inner)
    if kind is DomainMap or (kind is dict and type(key) in _KEYS and key_of(key) in inner):
        return Optional((element(inner, key),))
    if kind is list and is_number(key) and key == key // 1 and 0 <= key < len(inner):
        return Optional((inner[int(key)],))
    if kind is dict or kind is list:
        return NONE
    raise no_such_overload()
