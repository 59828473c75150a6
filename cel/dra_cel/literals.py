"""Compiles literal lists and maps.

Those of constants are built once and cost nothing; others cost 10 units (a list) or 30 (a map).
"""

from __future__ import annotations

from typing import Any

from dra_cel.frames import Evaluate, Frame, constant
from dra_cel.syntax import Constant, ListLiteral, MapLiteral, Tree, UInt
from dra_cel.values import EvaluationError, Optional, key_of, no_such_overload

LIST_COST, MAP_COST = 10, 30
_KEYS = frozenset({bool, int, UInt, str})


def is_constant(tree: Tree) -> bool:
    """Whether a literal has the same value in every evaluation."""
    match tree:
        case Constant():
            return True
        case ListLiteral():
            return not tree.optional and all(map(is_constant, tree.elements))
        case MapLiteral():
            return all(
                not kept and is_constant(key) and is_constant(value) for key, value, kept in tree.entries
            )
        case _:
            return False


def list_of(elements: list[Evaluate], optional: frozenset[int], *, is_constant: bool) -> Evaluate:
    """A list; the elements at these indices are left out when they have no value."""

    def build(frame: Any) -> Any:
        return [element(frame) for element in elements]

    def run(frame: Frame) -> Any:
        frame.charge(LIST_COST)
        return build(frame)

    def run_with_optional(frame: Frame) -> Any:
        frame.charge(LIST_COST)
        found: list[Any] = []
        for at, element in enumerate(elements):
            value = element(frame)
            if at in optional:
                found += _optional(value).values
            else:
                found.append(value)
        return found

    if is_constant:
        return constant(build(None))
    return run_with_optional if optional else run


def map_of(entries: list[tuple[Evaluate, Evaluate, bool]], *, is_constant: bool) -> Evaluate:
    """A map; a marked entry is left out when it has no value."""

    def build(frame: Any) -> Any:
        found: dict[Any, Any] = {}
        for key, value, is_optional in entries:
            name, inner = key(frame), value(frame)
            if type(name) not in _KEYS:
                raise EvaluationError("unsupported key type")
            if is_optional and not _optional(inner).values:
                continue
            if key_of(name) in found:
                raise EvaluationError(f"Failed with repeated key: {name}")
            found[key_of(name)] = inner.value if is_optional else inner
        return found

    def run(frame: Frame) -> Any:
        frame.charge(MAP_COST)
        return build(frame)

    if is_constant:
        try:
            return constant(build(None))
        except EvaluationError:
            return run  # fails in each evaluation
    return run


def _optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise no_such_overload()
    return value
