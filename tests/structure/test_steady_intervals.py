"""Intervals are measured by a clock that is not set: no two of our own wall-clock times are subtracted.

Times that others have written, in objects and readings, have to be compared with the wall clock.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

import distributions

Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_wall(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is the present time of the wall clock, or a variable that has it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "now":
        return "clock" in ast.unparse(node.func.value)
    return isinstance(node, ast.Name) and node.id in names


def assignments(within: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets and values."""
    for node in ast.walk(within):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                yield from zip(target.elts, value.elts, strict=False)
            else:
                yield target, value


def fields_of(tree: ast.Module) -> dict[str, list[str]]:
    """The fields of each class, in their order."""
    return {
        each.name: [
            part.target.id
            for part in each.body
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        ]
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef)
    }


def walls_of(function: Function) -> set[str]:
    """Variables that have the present time of the wall clock."""
    return {
        target.id
        for target, value in assignments(function)
        if is_wall(value, set()) and isinstance(target, ast.Name)
    }


def kept_in(function: Function, fields: dict[str, list[str]]) -> Iterator[str]:
    """Attributes in which a function keeps such a time."""
    names = walls_of(function)
    for target, value in assignments(function):
        if is_wall(value, names):
            owner = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(owner, ast.Attribute):
                yield owner.attr
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in fields:
            for name, argument in zip(fields[node.func.id], node.args, strict=False):
                if is_wall(argument, names):
                    yield name


def intervals_by_the_wall(source: str) -> list[str]:
    """Differences between the wall clock's time and one that the same module has kept."""
    tree = ast.parse(source)
    functions = [each for each in ast.walk(tree) if isinstance(each, Function)]
    fields = fields_of(tree)
    kept = {name for each in functions for name in kept_in(each, fields)}
    return [
        ast.unparse(node)
        for each in functions
        for node in ast.walk(each)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and is_wall(node.left, walls_of(each))
        and isinstance(node.right, ast.Attribute)
        and node.right.attr in kept
    ]


def test_no_interval_is_measured_by_the_wall_clock() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in distributions.modules()}
    found = {
        distributions.dotted(path): intervals
        for path, source in sources.items()
        if "clock.now()" in source and (intervals := intervals_by_the_wall(source))
    }

    assert found == {}


@pytest.mark.parametrize(
    "body",
    [
        "self.at = self.clock.now()\n    return self.clock.now() - self.at",
        "source.at, other = self._clock.now(), 1\n    now = self._clock.now()\n    return now - source.at",
        "now = self.clock.now()\n    self.counts.append(Count(now, 2))\n    return now - self.counts[0].at",
    ],
)
def test_each_way_to_measure_one_is_found(body: str) -> None:
    source = f"class Count:\n  at: float\n  many: int\nclass One:\n  def wait(self, source):\n    {body}\n"

    assert len(intervals_by_the_wall(source)) == 1
