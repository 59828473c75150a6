"""Turns a checked expression into nested Python functions that count their cost.

The library checks expressions and does not evaluate them. The quirks of a device's maps, values that the
library cannot carry (quantities, versions) and an exact cost limit need an evaluation of our own. A node
becomes a function that takes the :class:`Frame` of one evaluation and returns a value.

Source: cel-go ``interpreter`` and ``interpreter/runtimecost.go``; Kubernetes v1.36,
``dynamic-resource-allocation/cel/compile.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dra_cel import access, calls, folds, literals, logic
from dra_cel.frames import Evaluate, LocalNames, constant
from dra_cel.syntax import Call, Constant, Fold, ListLiteral, MapLiteral, Name, Select, Tree
from dra_cel.values import TypeValue

_FIELDS = ("driver", "attributes", "capacity", "allowMultipleAllocations")
_TYPES: Mapping[str, TypeValue] = {
    name: TypeValue(name)
    for name in (
        *("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"),
        *("optional_type", "google.protobuf.Duration", "google.protobuf.Timestamp"),
    )
}


class ExpressionFault(Exception):
    """An expression that the checker accepts and Kubernetes does not."""


def program(tree: Tree) -> tuple[Evaluate, int]:
    """The compiled expression, and its number of local variables.

    Raises:
        ExpressionFault: it names a field that a device does not have.
    """
    scope = LocalNames()
    return _node(tree, scope), scope.size


def _node(tree: Tree, scope: LocalNames) -> Evaluate:
    match tree:
        case Constant():
            return constant(tree.value)
        case Name():
            return _name(tree, scope)
        case Select():
            return _select(tree, scope)
        case Call():
            return _call(tree, scope)
        case ListLiteral():
            return literals.list_of(
                [_node(element, scope) for element in tree.elements],
                tree.optional,
                is_constant=literals.is_constant(tree),
            )
        case MapLiteral():
            entries = [(_node(key, scope), _node(value, scope), kept) for key, value, kept in tree.entries]
            return literals.map_of(entries, is_constant=literals.is_constant(tree))
        case Fold():
            return folds.fold(tree, scope, _node)


def _name(tree: Name, scope: LocalNames) -> Evaluate:
    slot = scope.slot_of(tree.name)
    if slot is not None:
        return access.variable(slot)
    whole, dot, field = tree.name.partition(".")
    if whole == "device" and not dot:
        return access.whole_device()
    if whole == "device" and field in _FIELDS:
        return access.device_field(field)
    if tree.name in _TYPES:
        return constant(_TYPES[tree.name])
    raise ExpressionFault(f"undeclared reference to '{tree.name}'")


def _select(tree: Select, scope: LocalNames) -> Evaluate:
    if isinstance(tree.operand, Name) and tree.operand.name == "device" and scope.slot_of("device") is None:
        if tree.field not in _FIELDS:
            raise ExpressionFault(f"undefined field '{tree.field}'")
        return constant(value=True) if tree.test else access.device_field(tree.field)
    if tree.test:
        return access.has_field(_node(tree.operand, scope), tree.field)
    known = access.known_path(tree, scope)
    return known or access.field(_node(tree.operand, scope), tree.field)


def _call(tree: Call, scope: LocalNames) -> Evaluate:
    arguments: list[Any] = [_node(argument, scope) for argument in tree.arguments]
    lazy = logic.LAZY.get(tree.function)
    if lazy is not None:
        return lazy(*arguments)
    if tree.function == "_[_]":
        return access.known_path(tree, scope) or access.index(*arguments)
    if tree.function in {"_?._", "_[?_]"}:
        return access.optional_index(*arguments)
    return calls.call(tree.function, arguments)
