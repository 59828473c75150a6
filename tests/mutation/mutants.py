"""Mutants are copies of a module with one slip each.

A comparison says the opposite, or is off by its boundary; a condition is negated; ``and`` and ``or`` change
places; something that would have been reported is not.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: What each comparison becomes: its opposite, and for an order the neighbour that includes or leaves out the
#: boundary.
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
}

#: A change of one node, in place.
Slip = Callable[[ast.AST], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One slip.

    Attributes:
        line: Where.
        change: What the code says instead.
        tree: The whole module with it.
    """

    line: int
    change: str
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    """Those of a module."""
    tree = ast.parse(source)
    for position, node in enumerate(ast.walk(tree)):
        for slip in slips(node):
            twin = copy.deepcopy(tree)
            changed = next(each for index, each in enumerate(ast.walk(twin)) if index == position)
            slip(changed)
            text = ast.unparse(changed).splitlines()[0]
            yield Mutant(getattr(node, "lineno", 0), text, ast.fix_missing_locations(twin))


def slips(node: ast.AST) -> Iterator[Slip]:
    """What may go wrong with a node."""
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    yield _compares(index, other)
        case ast.BoolOp():
            yield _joins
        case ast.If() | ast.IfExp() | ast.While() if not isinstance(node.test, ast.Compare):
            yield _negates
        case ast.comprehension():
            yield from (_leaves_out(index) for index in range(len(node.ifs)))
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            yield _is_silent
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="violated"))):
            yield _is_silent


def _compares(index: int, other: type[ast.cmpop]) -> Slip:
    def slip(node: ast.AST) -> None:
        assert isinstance(node, ast.Compare)
        node.ops[index] = other()

    return slip


def _joins(node: ast.AST) -> None:
    assert isinstance(node, ast.BoolOp)
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def _negates(node: ast.AST) -> None:
    assert isinstance(node, ast.If | ast.IfExp | ast.While)
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _leaves_out(index: int) -> Slip:
    def slip(node: ast.AST) -> None:
        assert isinstance(node, ast.comprehension)
        del node.ifs[index]

    return slip


def _is_silent(node: ast.AST) -> None:
    """Never reached, but still there: without its only yield a function is no generator."""
    assert isinstance(node, ast.Expr)
    node.value = ast.IfExp(ast.Constant(value=False), node.value, ast.Constant(value=None))
