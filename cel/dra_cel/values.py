"""Defines values of expressions, their equality and order, and the budget of an evaluation.

null, bool, int, double, string, bytes and list are Python's; an unsigned integer is a ``UInt``, a map is a
dict with keys as :func:`key_of` makes them. The types that Kubernetes adds are classes of this package.

Source: cel-spec ``doc/langdef.md``; cel-go ``common/types``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from msgspec import Struct

from dra_cel.syntax import UInt

COST_LIMIT = 1_000_000
"""Units that one evaluation may cost (Kubernetes' ``CELSelectorExpressionMaxCost``)."""
TRAVERSAL = 10
"""Characters that cost one unit."""
LONG = 256
"""Characters above which comparing two texts is charged where upstream counts the comparison alone."""
LEAST_INT, GREATEST_INT, GREATEST_UINT = -(2**63), 2**63 - 1, 2**64 - 1


class EvaluationError(Exception):
    """An error of the language: ``||`` and ``&&`` absorb it if the other side decides."""


class CostError(Exception):
    """The evaluation exceeds its budget; nothing absorbs this error."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Budget:
    """The remaining budget of one evaluation, in units."""

    __slots__ = ("left",)

    def __init__(self, left: int = COST_LIMIT) -> None:
        self.left = left

    def charge(self, units: int) -> None:
        """Subtract a cost.

        Raises:
            CostError: The budget is exhausted.
        """
        self.left -= units
        if self.left < 0:
            raise CostError


def traversal(*sizes: int) -> int:
    """The cost of scanning that many characters, in units."""
    return -(-sum(sizes) // TRAVERSAL)


class BoolKey(NamedTuple):
    """True or false as the key of a map; Python would treat it as a number."""

    value: bool


def key_of(value: Any) -> Any:
    """A value as the key of a dict; numbers of different types that are equal are one key."""
    return BoolKey(value) if value is True or value is False else value


def value_of(key: Any) -> Any:
    """The value that a key of a dict is."""
    return key.value if type(key) is BoolKey else key


class DomainMap(dict[str, Mapping[str, Any]]):
    """Attributes or capacity by domain. An unknown domain is an empty map.

    ``size``, ``in`` and iteration use only the existing ones.
    """

    __slots__ = ()

    def __missing__(self, key: Any) -> Mapping[str, Any]:
        return _NOTHING


_NOTHING: dict[str, Any] = {}


class Optional(Struct, frozen=True):
    """A value that may be missing."""

    values: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        """The value.

        Raises:
            EvaluationError: it is missing.
        """
        if not self.values:
            raise EvaluationError("optional.none() dereference")
        return self.values[0]


NONE = Optional()


class Duration(Struct, frozen=True, order=True):
    """A span of time, in nanoseconds."""

    nanoseconds: int


class Timestamp(Struct, frozen=True, order=True):
    """A point in time, in nanoseconds since 1970 in UTC."""

    nanoseconds: int


class TypeValue(Struct, frozen=True):
    """A type as a value, for example what ``type(1)`` returns."""

    name: str


class OpaqueValue:
    """A value of a type that Kubernetes adds, for example a quantity; its class names the type."""

    __slots__ = ()
    cel_type: ClassVar[str]


_NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    DomainMap: "map",
    Optional: "optional_type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
}


def type_name(value: Any) -> str:
    """The name of a value's type in CEL."""
    if isinstance(value, OpaqueValue):
        return value.cel_type
    return _NAMES[type(value)]


def no_such_overload(function: str = "", *arguments: Any) -> EvaluationError:
    """The error for arguments of types that the function does not have."""
    if not function or not function[0].isalpha():
        return EvaluationError("no such overload")
    return EvaluationError(f"no such overload: {function}({', '.join(map(type_name, arguments))})")


def checked_int(value: int) -> int:
    """A signed result.

    Raises:
        EvaluationError: it does not fit 64 bits.
    """
    if not LEAST_INT <= value <= GREATEST_INT:
        raise EvaluationError("integer overflow")
    return value


def checked_uint(value: int) -> UInt:
    """An unsigned result.

    Raises:
        EvaluationError: it does not fit 64 bits.
    """
    if not 0 <= value <= GREATEST_UINT:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


_NUMBERS = frozenset({int, UInt, float})
_TEXTS = frozenset({str, bytes})
_CONTAINERS = frozenset({list, dict, DomainMap, Optional})


def equal(left: Any, right: Any, budget: Budget) -> bool:
    """Whether two values are equal; values of different types are not, except numbers.

    Each compared element of a list and entry of a map costs one unit, because lists can share elements:
    comparing two short ones may take long.
    """
    kind, other = type(left), type(right)
    if kind not in _CONTAINERS:
        if kind is other:
            budget.charge(long_cost(left))
            return bool(left == right)
        return kind in _NUMBERS and other in _NUMBERS and bool(left == right)
    if kind is list:
        if other is not list or len(left) != len(right):
            return False
        budget.charge(len(left))
        return all(equal(one, two, budget) for one, two in zip(left, right, strict=True))
    if kind is Optional:
        return other is Optional and equal(list(left.values), list(right.values), budget)
    if (other is not dict and other is not DomainMap) or len(left) != len(right):
        return False
    budget.charge(len(left))
    return all(key in right and equal(value, right[key], budget) for key, value in left.items())


def contains(values: list[Any], wanted: Any, budget: Budget) -> bool:
    """Whether a list has an element that is equal to a value."""
    kind = type(wanted)
    if kind is str:
        budget.charge(len(values) * long_cost(wanted))
        return any(type(value) is str and value == wanted for value in values)
    return any(equal(value, wanted, budget) for value in values)


def long_cost(*values: Any) -> int:
    """The cost of scanning the long texts among the values, in units."""
    return sum(traversal(len(value)) for value in values if type(value) in _TEXTS and len(value) > LONG)


def parsing(text: str) -> int:
    """The cost of parsing a text, for which upstream charges one unit: one per character of a long one."""
    return 1 if len(text) <= LONG else len(text)


def size_of(value: Any) -> int:
    """The size by which costs are counted: of a string, a list, a map; 1 for everything else."""
    return len(value) if isinstance(value, str | bytes | list | dict) else 1


def least(left: Any, right: Any) -> int:
    """The smaller of two sizes, as the cost of comparing them, in units."""
    return traversal(min(size_of(left), size_of(right)))


_ORDERED = frozenset({bool, str, bytes, Timestamp, Duration})


def is_less(left: Any, right: Any) -> bool:
    """Whether a value sorts before another.

    Raises:
        EvaluationError: values of these types have no order.
    """
    kind, other = type(left), type(right)
    if (kind in _NUMBERS and other in _NUMBERS) or (kind is other and kind in _ORDERED):
        return bool(left < right)
    raise no_such_overload()


def is_number(value: Any) -> bool:
    """Whether a value is an int, a uint or a double."""
    return type(value) in _NUMBERS
