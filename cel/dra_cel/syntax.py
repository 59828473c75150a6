"""Decodes the syntax tree of a checked expression from the library's protobuf message.

The message is ``cel.expr.CheckedExpr``. Its fields are few and stable, so they are decoded here rather than
by generated classes, which the library does not ship.

Source: cel-spec, ``proto/cel/expr/syntax.proto`` and ``checked.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

from msgspec import Struct


class UInt(int):
    """An unsigned integer of 64 bits; a plain ``int`` is a signed one."""

    __slots__ = ()


class Constant(Struct, frozen=True):
    """A literal: None, bool, int, UInt, float, str or bytes."""

    id: int
    value: Any


class Name(Struct, frozen=True):
    """A variable, or a type; with dots where the checker resolved a qualified name."""

    id: int
    name: str


class Select(Struct, frozen=True):
    """A field of a value; with ``test`` whether it is there: ``has(operand.field)``."""

    id: int
    operand: Tree
    field: str
    test: bool


class Call(Struct, frozen=True):
    """A function or an operator; the target of a member call is the first argument."""

    id: int
    function: str
    arguments: tuple[Tree, ...]


class ListLiteral(Struct, frozen=True):
    """A list; ``optional`` are the indices of elements that are left out when they have no value."""

    id: int
    elements: tuple[Tree, ...]
    optional: frozenset[int]


class MapLiteral(Struct, frozen=True):
    """A map: key, value, and whether the entry is left out when the value is missing."""

    id: int
    entries: tuple[tuple[Tree, Tree, bool], ...]


class Fold(Struct, frozen=True):
    """A comprehension, to which macros and ``cel.bind`` expand."""

    id: int
    variable: str
    second: str
    over: Tree
    accumulator: str
    start: Tree
    condition: Tree
    step: Tree
    result: Tree


Tree: TypeAlias = Constant | Name | Select | Call | ListLiteral | MapLiteral | Fold
Field: TypeAlias = tuple[int, Any]


class CheckedExpression(Struct, frozen=True):
    """An expression and the types of its nodes, which are decoded on demand."""

    tree: Tree
    encoded: dict[int, bytes]

    def type_of(self, tree: Tree) -> str:
        """The type of a node as CEL writes it, for example ``list(int)``; ``dyn`` is checked at run time."""
        return _type(self.encoded.get(tree.id, b""))


class UnknownSyntaxError(Exception):
    """A construct that has no meaning for devices."""


def nodes(tree: Tree) -> Iterator[Tree]:
    """A tree's nodes: itself and all descendants."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(parts_of(node))


def parts_of(tree: Tree) -> tuple[Tree, ...]:
    """The children of a node."""
    match tree:
        case Select():
            return (tree.operand,)
        case Call():
            return tree.arguments
        case ListLiteral():
            return tree.elements
        case MapLiteral():
            return tuple(part for key, value, _ in tree.entries for part in (key, value))
        case Fold():
            return (tree.over, tree.start, tree.condition, tree.step, tree.result)
        case Constant() | Name():
            return ()


def checked(message: bytes) -> CheckedExpression:
    """Decode the library's output: an ``Any`` with a ``CheckedExpr`` or a ``ParsedExpr``."""
    kind, inner = _first(message, 1), _first(message, 2)
    at = 2 if kind.endswith(b"ParsedExpr") else 4
    tree: Tree | None = None
    types: dict[int, bytes] = {}
    for number, value in _fields(inner):
        if number == at:
            tree = _tree(value)
        elif number == 3 and at == 4:
            entry = dict(_fields(value))
            types[entry.get(1, 0)] = entry.get(2, b"")
    if tree is None:
        raise ValueError("the message has no expression")
    return CheckedExpression(tree, types)


def _fields(message: bytes) -> Iterator[Field]:
    """The fields of a message: number, and an integer or bytes."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
        elif kind == 1:
            yield tag >> 3, message[at : at + 8]
            at += 8
        elif kind == 2:
            size, at = _varint(message, at)
            yield tag >> 3, message[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {kind} does not occur in expressions")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _first(message: bytes, wanted: int) -> bytes:
    return next((value for number, value in _fields(message) if number == wanted), b"")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _tree(message: bytes) -> Tree:
    node, found, content = 0, 0, b""
    for number, value in _fields(message):
        if number == 2:
            node = _signed(value)
        else:
            found, content = number, value
    match found:
        case 3:
            return Constant(node, _constant(content))
        case 4:
            return Name(node, _first(content, 1).decode())
        case 5:
            parts = dict(_fields(content))
            return Select(node, _tree(parts[1]), parts.get(2, b"").decode(), bool(parts.get(3, 0)))
        case 6:
            return _call(node, content)
        case 7:
            return _list(node, content)
        case 8:
            return _map(node, content)
        case 9:
            return _fold(node, content)
    raise UnknownSyntaxError(f"field {found} is no kind of expression")


def _call(node: int, content: bytes) -> Call:
    function, target, arguments = "", [], []
    for number, value in _fields(content):
        if number == 1:
            target = [_tree(value)]
        elif number == 2:
            function = value.decode()
        else:
            arguments.append(_tree(value))
    return Call(node, function, (*target, *arguments))


def _list(node: int, content: bytes) -> ListLiteral:
    elements: list[Tree] = []
    optional: set[int] = set()
    for number, value in _fields(content):
        if number == 1:
            elements.append(_tree(value))
        elif isinstance(value, int):
            optional.add(value)
        else:
            at = 0
            while at < len(value):
                index, at = _varint(value, at)
                optional.add(index)
    return ListLiteral(node, tuple(elements), frozenset(optional))


def _map(node: int, content: bytes) -> MapLiteral:
    entries = []
    for number, value in _fields(content):
        if number == 1 and value:
            raise UnknownSyntaxError(f"a message such as {value.decode()} cannot be created here")
        if number == 2:
            entries.append(_entry(value))
    return MapLiteral(node, tuple(entries))


def _entry(message: bytes) -> tuple[Tree, Tree, bool]:
    parts = dict(_fields(message))
    return _tree(parts[3]), _tree(parts[4]), bool(parts.get(5, 0))


def _fold(node: int, content: bytes) -> Fold:
    parts = dict(_fields(content))
    return Fold(
        node,
        variable=parts.get(1, b"").decode(),
        second=parts.get(8, b"").decode(),
        over=_tree(parts[2]),
        accumulator=parts.get(3, b"").decode(),
        start=_tree(parts[4]),
        condition=_tree(parts[5]),
        step=_tree(parts[6]),
        result=_tree(parts[7]),
    )


def _constant(message: bytes) -> Any:
    for number, value in _fields(message):
        match number:
            case 1:
                return None
            case 2:
                return bool(value)
            case 3:
                return _signed(value)
            case 4:
                return UInt(value)
            case 5:
                return struct.unpack("<d", value)[0]
            case 6:
                return value.decode()
            case 7:
                return bytes(value)
            case _:
                break
    raise UnknownSyntaxError("a literal of a kind that has no syntax")


_PRIMITIVE = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_COMPOSED = {6: "list", 7: "map"}
_WELL_KNOWN = {1: "any", 2: "timestamp", 3: "duration"}


def _type(message: bytes) -> str:
    """A type in CEL's notation; ``dyn`` if it is checked at run time."""
    for number, value in _fields(message):
        match number:
            case 2:
                return "null"
            case 3:
                return _PRIMITIVE.get(value, "dyn")
            case 5:
                return _WELL_KNOWN.get(value, "dyn")
            case 6 | 7 | 14:
                return _composed(number, value)
            case 9:
                return str(value.decode())
    return "dyn"


def _composed(number: int, message: bytes) -> str:
    """A list, a map or an opaque type, with its component types."""
    name = _first(message, 1).decode() if number == 14 else _COMPOSED[number]
    inner = [_type(value) for field, value in _fields(message) if number != 14 or field == 2]
    return f"{name}({', '.join(inner)})" if inner else name
