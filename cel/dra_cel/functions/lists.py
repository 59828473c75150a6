"""Functions of lists and sets.

Source: Kubernetes v1.36, ``apiserver/pkg/cel/library/lists.go`` and ``cost.go``; cel-go ``ext/lists.go``
version 3 and ``ext/sets.go``.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from dra_cel.functions.table import FunctionTable
from dra_cel.syntax import UInt
from dra_cel.values import (
    NONE,
    Budget,
    DomainMap,
    Duration,
    EvaluationError,
    Optional,
    checked_int,
    checked_uint,
    contains,
    equal,
    is_less,
    long_cost,
    size_of,
)

_CREATED = 11
"""What a call that makes a list costs apart from the list's elements."""


def _length(values: list[Any]) -> int:
    return len(values) + long_cost(*values)


def _product(left: list[Any], right: list[Any]) -> int:
    return 1 + len(left) * len(right)


def _self_product(values: list[Any]) -> int:
    factor = 2.1 if values and isinstance(values[0], str | bytes) else 2.0
    return _CREATED + int(len(values) ** 2 * factor)


def _is_sorted(values: list[Any]) -> bool:
    return not any(is_less(right, left) for left, right in itertools.pairwise(values))


def _least(values: list[Any]) -> Any:
    if not values:
        raise EvaluationError("min called on empty list")
    return functools.reduce(lambda one, other: other if is_less(other, one) else one, values)


def _greatest(values: list[Any]) -> Any:
    if not values:
        raise EvaluationError("max called on empty list")
    return functools.reduce(lambda one, other: other if is_less(one, other) else one, values)


def _sum(values: list[Any]) -> Any:
    kinds = set(map(type, values))
    if len(kinds) > 1 or not kinds <= {int, UInt, float, Duration}:
        raise EvaluationError("no such overload: sum")
    if kinds == {Duration}:
        return Duration(checked_int(sum(value.nanoseconds for value in values)))
    if kinds == {float}:
        return functools.reduce(lambda one, other: one + other, values)
    total = sum(map(int, values))
    return checked_uint(total) if kinds == {UInt} else checked_int(total)


def _index_of(budget: Budget, values: list[Any], wanted: Any) -> int:
    budget.charge(len(values))
    return next((index for index, value in enumerate(values) if equal(value, wanted, budget)), -1)


def _last_index_of(budget: Budget, values: list[Any], wanted: Any) -> int:
    budget.charge(len(values))
    found = (index for index in range(len(values) - 1, -1, -1) if equal(values[index], wanted, budget))
    return next(found, -1)


def _slice(budget: Budget, values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(values):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    budget.charge(_CREATED + end - start)
    return values[start:end]


def _range(budget: Budget, count: int) -> list[int]:
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    budget.charge(_CREATED + count)
    return list(range(count))


def _reverse(budget: Budget, values: list[Any]) -> list[Any]:
    budget.charge(_CREATED + len(values))
    return values[::-1]


def _flatten(budget: Budget, values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    budget.charge(_CREATED + len(values))
    if depth == 0 or not any(type(value) is list for value in values):
        return values
    flat: list[Any] = []
    for value in values:
        inner = _flatten(budget, value, depth - 1) if type(value) is list else (value,)
        budget.charge(len(inner))
        flat.extend(inner)
    return flat


def _distinct(budget: Budget, values: list[Any]) -> list[Any]:
    budget.charge(_self_product(values))
    found: list[Any] = []
    for value in values:
        if not contains(found, value, budget):
            found.append(value)
    return found


def _sort(budget: Budget, values: list[Any]) -> list[Any]:
    return _sort_by(budget, values, values)


def _sort_by(budget: Budget, values: list[Any], keys: list[Any]) -> list[Any]:
    budget.charge(_self_product(keys))
    if len(set(map(type, keys))) > 1:
        raise EvaluationError("list elements must have the same type")

    def order(one: int, other: int) -> int:
        return -1 if is_less(keys[one], keys[other]) else int(is_less(keys[other], keys[one]))

    try:
        return [values[index] for index in sorted(range(len(keys)), key=functools.cmp_to_key(order))]
    except EvaluationError as error:
        raise EvaluationError("list elements must be comparable") from error


def _set_contains(budget: Budget, values: list[Any], wanted: list[Any]) -> bool:
    budget.charge(_product(values, wanted))
    return all(contains(values, value, budget) for value in wanted)


def _set_equivalent(budget: Budget, left: list[Any], right: list[Any]) -> bool:
    return _set_contains(budget, left, right) and _set_contains(budget, right, left)


def _set_intersects(budget: Budget, left: list[Any], right: list[Any]) -> bool:
    budget.charge(_product(left, right))
    return any(contains(right, value, budget) for value in left)


def _in_list(budget: Budget, wanted: Any, values: list[Any]) -> bool:
    budget.charge(size_of(values))
    return contains(values, wanted, budget)


def _concatenation(left: list[Any], right: list[Any]) -> list[Any]:
    return left + right


TABLE = FunctionTable()
TABLE.add("size", (list,), len)
TABLE.add("size", (dict,), len)
TABLE.add("size", (DomainMap,), len)
# Upstream keeps both lists and charges one unit; here the elements are copied.
TABLE.add("_+_", (list, list), _concatenation, lambda left, right: 1 + len(left) + len(right))
TABLE.add("isSorted", (list,), _is_sorted, _length)
TABLE.add("min", (list,), _least, _length)
TABLE.add("max", (list,), _greatest, _length)
TABLE.add("sum", (list,), _sum, _length)
TABLE.add("first", (list,), lambda values: Optional((values[0],)) if values else NONE)
TABLE.add("last", (list,), lambda values: Optional((values[-1],)) if values else NONE)
TABLE.add_metered("slice", (list, int, int), _slice)
TABLE.add_metered("lists.range", (int,), _range)
TABLE.add_metered("reverse", (list,), _reverse)
TABLE.add_metered("flatten", (list,), _flatten)
TABLE.add_metered("flatten", (list, int), _flatten)
TABLE.add_metered("distinct", (list,), _distinct)
TABLE.add_metered("sort", (list,), _sort)
TABLE.add_metered("@sortByAssociatedKeys", (list, list), _sort_by)
TABLE.add_metered("sets.contains", (list, list), _set_contains)
TABLE.add_metered("sets.equivalent", (list, list), _set_equivalent)
TABLE.add_metered("sets.intersects", (list, list), _set_intersects)

WITH_ANY = {
    ("indexOf", list): _index_of,
    ("lastIndexOf", list): _last_index_of,
}
"""Functions whose second argument may be of any type, keyed by name and type of the first."""
IN_LIST = _in_list
