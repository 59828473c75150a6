"""Slips are what a developer gets wrong at one place of a module: one expression or statement.

The kinds of slips are those that pass a review: the rest of the line looks right.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

#: An order, and the one that also includes the boundary, or does not.
BOUNDARIES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
#: Functions that are taken for each other.
TWINS = {"any": "all", "all": "any", "min": "max", "max": "min"}
#: Calls without a result that decide nothing.
UNNOTICED = {"append", "debug", "error", "exception", "info", "warning", "write", "writelines"}
#: Compound expressions, which need parentheses where a simple one was.
COMPOUND = (ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.UnaryOp)


@dataclass(frozen=True, slots=True)
class Slip:
    """One.

    Attributes:
        kind: What the developer did, in a few words.
        node: What it replaces.
        text: What is there instead.
    """

    kind: str
    node: ast.expr | ast.stmt
    text: str


def slips(node: ast.AST) -> Iterator[Slip]:
    """What may go wrong with a node, apart from the nodes below it."""
    match node:
        case ast.If() | ast.While():
            if not isinstance(node.test, ast.Constant):
                yield Slip("condition negated", node.test, ast.unparse(_negated(node.test)))
            yield from _early_return(node)
        case ast.IfExp():
            yield Slip("condition negated", node.test, _text(_negated(node.test)))
        case ast.comprehension():
            yield from (Slip("filter left out", each, "True") for each in node.ifs)
        case ast.BoolOp():
            yield from _operand_dropped(node)
        case ast.Compare():
            yield from _boundary(node)
            yield from _name_for_uid(node, [node.left, *node.comparators])
        case ast.Subscript():
            yield from _name_for_uid(node, [node.slice])
        case ast.Call():
            yield from _call(node)
        case ast.Break():
            yield Slip("continue for break", node, "continue")
        case ast.Continue():
            yield Slip("break for continue", node, "break")
        case ast.stmt() if _is_left_out_easily(node):
            yield Slip("statement left out", node, "pass")


def _negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
    return ast.UnaryOp(ast.Not(), test)


def _operand_dropped(node: ast.BoolOp) -> Iterator[Slip]:
    for index, dropped in enumerate(node.values):
        if index:
            left = [each for each in node.values if each is not dropped]
            kind = "namespace dropped" if "namespace" in ast.unparse(dropped) else "second condition dropped"
            yield Slip(kind, node, _text(ast.BoolOp(node.op, left) if len(left) > 1 else left[0]))


def _early_return(node: ast.If | ast.While) -> Iterator[Slip]:
    last = node.body[-1]
    if isinstance(node, ast.If) and not node.orelse and isinstance(last, ast.Return):
        yield Slip("early return removed", last, "pass")


def _boundary(node: ast.Compare) -> Iterator[Slip]:
    for index, operator in enumerate(node.ops):
        if (other := BOUNDARIES.get(type(operator))) is not None:
            changed = copy.copy(node)
            changed.ops = [other() if place == index else each for place, each in enumerate(node.ops)]
            yield Slip("boundary", node, _text(changed))


def _name_for_uid(node: ast.expr, parts: list[ast.expr]) -> Iterator[Slip]:
    """All of the node's at a time: comparing a name with a uid is found by every test."""
    uids = [each for each in parts if isinstance(each, ast.Attribute) and each.attr == "uid"]
    if uids and (not isinstance(node, ast.Compare) or len(uids) == len(parts)):
        changed = copy.deepcopy(node)
        for each in ast.iter_child_nodes(changed):
            if isinstance(each, ast.Attribute) and each.attr == "uid":
                each.attr = "name"
        yield Slip("name for uid", node, _text(changed))


def _call(node: ast.Call) -> Iterator[Slip]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in TWINS:
        yield Slip(f"{TWINS[function.id]} for {function.id}", function, TWINS[function.id])
    if isinstance(function, ast.Attribute) and function.attr == "get" and len(node.args) == 2:
        yield from _default(node.args[1])
    for keyword in node.keywords:
        if keyword.arg == "default":
            yield from _default(keyword.value)


def _default(node: ast.expr) -> Iterator[Slip]:
    match node:
        case ast.Constant(value=bool() as value):
            yield Slip("wrong default", node, str(not value))
        case ast.Constant(value=int() | float() as value):
            yield Slip("wrong default", node, "0" if value else "1")


def _is_left_out_easily(node: ast.stmt) -> bool:
    """Whether the module still makes sense without a statement: it changes something that is there anyway."""
    match node:
        case ast.Delete() | ast.AugAssign():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr=name))
            | ast.Await(value=ast.Call(func=ast.Attribute(attr=name)))
        ):
            return name not in UNNOTICED
    return False


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, COMPOUND) else text
