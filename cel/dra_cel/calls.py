"""Compiles calls of functions and operators: the argument types select the implementation."""

from __future__ import annotations

from typing import Any

from dra_cel.frames import Evaluate, Frame
from dra_cel.functions import (
    addresses,
    arithmetic,
    lists,
    named_formats,
    quantities,
    regular_expressions,
    texts,
    times,
)
from dra_cel.functions.table import FunctionTable, Overload, Types
from dra_cel.values import (
    NONE,
    CostError,
    DomainMap,
    Duration,
    Optional,
    TypeValue,
    equal,
    key_of,
    least,
    no_such_overload,
    type_name,
)

_TABLE = FunctionTable()
for _each in (
    arithmetic,
    texts,
    lists,
    quantities,
    times,
    addresses,
    named_formats,
    regular_expressions,
):
    _TABLE.merge(_each.TABLE)
_NOTHING: dict[Types, Overload] = {}


def call(function: str, arguments: list[Evaluate]) -> Evaluate:
    """The evaluation of a call."""
    special = _OF_ANYTHING.get(function)
    if special is not None:
        evaluate: Evaluate = special(*arguments)
        return evaluate
    overloads = _TABLE.overloads.get(function, _NOTHING)
    if function in {"indexOf", "lastIndexOf"} and len(arguments) == 2:
        return _index_of(function, overloads, arguments)
    if len(arguments) == 1:
        return _unary(function, overloads, arguments[0])
    if len(arguments) == 2:
        return _binary(function, overloads, *arguments)
    return _general(function, overloads, arguments)


def _unary(function: str, overloads: dict[Types, Overload], argument: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        value = argument(frame)
        found = overloads.get((type(value),))
        if found is None:
            raise no_such_overload(function, value)
        does, cost, is_metered = found
        if is_metered:
            return does(frame, value)
        frame.left -= 1 if cost is None else cost(value)
        if frame.left < 0:
            raise CostError
        return does(value)

    return run


def _binary(function: str, overloads: dict[Types, Overload], left: Evaluate, right: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        one = left(frame)
        other = right(frame)
        found = overloads.get((type(one), type(other)))
        if found is None:
            raise no_such_overload(function, one, other)
        does, cost, is_metered = found
        if is_metered:
            return does(frame, one, other)
        frame.left -= 1 if cost is None else cost(one, other)
        if frame.left < 0:
            raise CostError
        return does(one, other)

    return run


def _general(function: str, overloads: dict[Types, Overload], arguments: list[Evaluate]) -> Evaluate:
    def run(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        found = overloads.get(tuple(map(type, values)))
        if found is None:
            raise no_such_overload(function, *values)
        if found.is_metered:
            return found.does(frame, *values)
        frame.charge(1 if found.cost is None else found.cost(*values))
        return found.does(*values)

    return run


def _index_of(function: str, overloads: dict[Types, Overload], arguments: list[Evaluate]) -> Evaluate:
    """The index of a text in a text, or of any value in a list."""
    of_text = _binary(function, overloads, *arguments)
    of_list = lists.WITH_ANY[function, list]

    def run(frame: Frame) -> Any:
        values = arguments[0](frame)
        if type(values) is list:
            return of_list(frame, values, arguments[1](frame))
        return of_text(frame)

    return run


# -- functions of values of any type -------------------------------------------------------------------


def _equality(left: Evaluate, right: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        one = left(frame)
        other = right(frame)
        frame.left -= least(one, other)
        if frame.left < 0:
            raise CostError
        return equal(one, other, frame)

    return run


def _inequality(left: Evaluate, right: Evaluate) -> Evaluate:
    equality = _equality(left, right)
    return lambda frame: not equality(frame)


def _within(wanted: Evaluate, values: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        one, many = wanted(frame), values(frame)
        kind = type(many)
        if kind is list:
            return lists.IN_LIST(frame, one, many)
        if kind is not dict and kind is not DomainMap:
            raise no_such_overload()
        frame.charge(1)
        return isinstance(one, bool | int | float | str) and key_of(one) in many

    return run


def _same(argument: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        return argument(frame)

    return run


def _type(argument: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        return TypeValue(type_name(argument(frame)))

    return run


def _some(argument: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        return Optional((argument(frame),))

    return run


def _some_unless_zero(argument: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        value = argument(frame)
        is_zero = value == Duration(0) if isinstance(value, Duration) else not value
        return NONE if is_zero else Optional((value,))

    return run


def _none() -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        return NONE

    return run


def _has_value(argument: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        return bool(_optional(argument(frame)).values)

    return run


def _value(argument: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        return _optional(argument(frame)).value

    return run


def _optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise no_such_overload()
    return value


_OF_ANYTHING: dict[str, Any] = {
    "_==_": _equality,
    "_!=_": _inequality,
    "@in": _within,
    "dyn": _same,
    "type": _type,
    "optional.of": _some,
    "optional.ofNonZeroValue": _some_unless_zero,
    "optional.none": _none,
    "hasValue": _has_value,
    "value": _value,
}

NAMES = frozenset(_TABLE.overloads) | frozenset(_OF_ANYTHING)
"""The functions and operators that have an implementation."""
