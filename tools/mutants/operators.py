"""The operators of mutants, each of which changes one place of a function.

The usual ones change a comparison, a condition, a calculation, a constant or what is returned. Ours are
about rare ends and what happens the second time: undo, reset, uid, namespace, event, order of writes, unit,
index, clock, and the slips of the planter (tools/planter/slips.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from planter.slips import Slip, slips

#: What each comparison becomes instead; the planter's slips move the boundary of an order.
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
}
CALCULATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
#: Operators that are not ours.
USUAL = frozenset(
    ("comparison", "boolean", "arithmetic", "constant", "return", "condition negated", "boundary")
)
#: Calls that take back what was done.
UNDOING = re.compile(
    r"^_?(release|forget|discard|remove|pop|popitem|clear|close|cancel|unreserve|undo|restore|give_up|end|drop|delete|stop)"
)
#: Functions that take in what has happened.
HANDLERS = re.compile(
    r"^_?(on|handle|apply|note|notice|observe|receive|add|added|delete|deleted|changed|update)(_|$)"
)
#: Factors that change a unit.
FACTORS = frozenset((60, 100, 1000, 1024, 3600, 1_000_000, 1_000_000_000))
#: Names of times in seconds.
SECONDS = re.compile(r"_(s|seconds)$|^seconds$")
#: Names of what is found by something else.
INDEX = re.compile(r"\bby_|_by_|index|_of$")
#: Readings of a clock, and what reads another kind.
CLOCKS = {"monotonic": "now", "now": "monotonic"}
#: Calls that leave a trace for people, or a text; nothing depends on their arguments.
TOLD = frozenset(("debug", "info", "warning", "error", "exception", "log"))
#: Statements that change something, and after which the next one runs.
SIMPLE = (ast.Assign, ast.AugAssign, ast.Delete, ast.Expr)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def mutations(tree: ast.Module) -> Iterator[Slip]:
    """The slips of all functions of a module; what runs when it is imported has none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.Module):
            for each in node.body:
                if isinstance(each, FUNCTIONS) and not _is_declared_only(each):
                    yield from _of_function(each)


def is_usual(operator: str) -> bool:
    """Whether an operator is not one of ours."""
    return operator in USUAL


def _is_declared_only(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = [each for each in function.body if not _is_text(each)]
    return not body or all(isinstance(each, ast.Pass | ast.Raise) or _is_ellipsis(each) for each in body)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def _of_function(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Slip]:
    yield from _event_ignored(function)
    for statement in function.body:
        yield from _below(statement, undoes=False)
    yield from _blocks(function)


def _below(node: ast.AST, *, undoes: bool) -> Iterator[Slip]:
    """The slips of a node and of those below it.

    Args:
        node: A statement or an expression.
        undoes: Whether it runs when something else has failed.
    """
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.ClassDef() | ast.AnnAssign(value=None):
            return
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Call(func=ast.Attribute(attr=name)) if name in TOLD:
            return
        case ast.keyword(arg="strict"):
            return
    yield from _renamed(node, undoes=undoes)
    yield from _usual(node)
    yield from _ours(node)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        within = undoes or (
            field in ("finalbody", "handlers", "orelse") and isinstance(node, ast.Try | ast.For | ast.While)
        )
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _below(each, undoes=within)


def _renamed(node: ast.AST, *, undoes: bool) -> Iterator[Slip]:
    """The planter's slips; a statement that is left out is of a kind of its own where it is one of ours."""
    for slip in slips(node):
        if slip.kind != "statement left out":
            yield slip
        else:
            yield Slip(_left_out(slip.node, undoes=undoes), slip.node, "pass")
    if isinstance(node, ast.Assign) and undoes and isinstance(node.targets[0], ast.Name):
        yield Slip("undo left out", node, "pass")


def _left_out(node: ast.AST, *, undoes: bool) -> str:
    """What kind of statement it is that is left out."""
    match node:
        case _ if undoes:
            return "undo left out"
        case ast.Assign(targets=[ast.Subscript(value=container)]) if INDEX.search(ast.unparse(container)):
            return "index not renewed"
        case ast.Assign(value=value) if _is_default(value):
            return "reset left out"
        case ast.Delete():
            return "undo left out"
        case ast.Expr(value=ast.Await(value=ast.Call(func=function)) | ast.Call(func=function)):
            name = function.attr if isinstance(function, ast.Attribute) else ""
            if UNDOING.match(name):
                return "undo left out"
            if isinstance(function, ast.Attribute) and INDEX.search(ast.unparse(function.value)):
                return "index not renewed"
    return "statement left out"


def _is_default(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return not value
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return not elts
        case ast.Dict(keys=keys):
            return not keys
        case ast.Call(func=ast.Name(id="set" | "dict" | "list" | "Counter" | "frozenset"), args=[]):
            return True
    return False


def _usual(node: ast.AST) -> Iterator[Slip]:
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                ops = [*node.ops[:index], OPPOSITES[type(operator)](), *node.ops[index + 1 :]]
                yield Slip("comparison", node, _text(ast.Compare(node.left, ops, node.comparators)))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield Slip("boolean", node, _text(ast.BoolOp(other, node.values)))
        case ast.UnaryOp(op=ast.Not()):
            yield Slip("boolean", node, _text(node.operand))
        case ast.BinOp(op=operator) if type(operator) in CALCULATIONS and not _is_said(node):
            changed = ast.BinOp(node.left, CALCULATIONS[type(operator)](), node.right)
            yield Slip("arithmetic", node, _text(changed))
        case ast.AugAssign(op=operator) if type(operator) in CALCULATIONS and not _is_said(node.value):
            changed_statement = ast.AugAssign(node.target, CALCULATIONS[type(operator)](), node.value)
            yield Slip("arithmetic", node, ast.unparse(changed_statement))
        case ast.Constant(value=bool() as value):
            yield Slip("constant", node, str(not value))
        case ast.Constant(value=int() | float() as number):
            yield Slip("constant", node, f"({number + 1})")
        case ast.Return(value=ast.expr() as returned) if not _is_default(returned):
            yield Slip("return", node, "return None")


def _is_said(node: ast.AST) -> bool:
    """Whether a sum is one of texts."""
    return any(
        isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in ast.walk(node)
    )


def _ours(node: ast.AST) -> Iterator[Slip]:
    match node:
        case ast.Tuple(elts=elts) | ast.Call(args=elts):
            for each in elts:
                if isinstance(each, ast.Attribute) and each.attr == "namespace":
                    yield Slip("namespace dropped", each, '""')
        case ast.BinOp(
            op=ast.Mult() | ast.Div() | ast.FloorDiv(), left=left, right=ast.Constant(value=value)
        ):
            if value in FACTORS:
                yield Slip("unit", node, _text(left))
    match node:
        case ast.Call(func=function):
            yield from _clock(function)
            for keyword in node.keywords:
                if keyword.arg == "seconds":
                    yield Slip("unit", keyword.value, f"({ast.unparse(keyword.value)} * 60)")
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Name() | ast.Attribute() as right):
            yield from _unit(right)
        case ast.Compare(comparators=[ast.Name() | ast.Attribute() as right]):
            yield from _unit(right)


def _clock(function: ast.expr) -> Iterator[Slip]:
    if (
        isinstance(function, ast.Attribute)
        and "clock" in ast.unparse(function.value)
        and function.attr in CLOCKS
    ):
        yield Slip("other clock", function, f"{ast.unparse(function.value)}.{CLOCKS[function.attr]}")


def _unit(node: ast.Name | ast.Attribute) -> Iterator[Slip]:
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    if SECONDS.search(name):
        yield Slip("unit", node, f"({ast.unparse(node)} * 1000)")


def _event_ignored(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Slip]:
    returns = function.returns
    body = [each for each in function.body if not _is_text(each)]
    if (
        HANDLERS.match(function.name)
        and isinstance(returns, ast.Constant)
        and returns.value is None
        and isinstance(body[0], SIMPLE)
    ):
        yield Slip("event ignored", body[0], "return")


def _blocks(function: ast.AST) -> Iterator[Slip]:
    """Two writes in the other order, where the second one has to do with the first."""
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if not isinstance(block, list):
                continue
            for first, second in pairwise(block):
                if _depends(first, second):
                    both = ast.Expr(ast.Constant(0))
                    ast.copy_location(both, first)
                    both.end_lineno, both.end_col_offset = second.end_lineno, second.end_col_offset
                    text = f"{ast.unparse(second)}; {ast.unparse(first)}"
                    yield Slip("order of two writes", both, text)


def _depends(first: ast.AST, second: ast.AST) -> bool:
    """Whether two statements change something and have an attribute in common, or both wait."""
    if not (isinstance(first, SIMPLE) and isinstance(second, SIMPLE)) or _is_text(first) or _is_text(second):
        return False
    named = {
        each.id for each in ast.walk(first) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    if any(isinstance(each, ast.Name) and each.id in named for each in ast.walk(second)):
        return False
    if all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Await) for each in (first, second)):
        return True
    written = {
        each.attr
        for each in ast.walk(first)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    return any(isinstance(each, ast.Attribute) and each.attr in written for each in ast.walk(second))


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
