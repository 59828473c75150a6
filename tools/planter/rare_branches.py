"""Draws faults by seed from the rare branches of all packages, as many from each and of many kinds.

A rare branch is one that a condition, a handler or a loop leads to, and that few test files reach. Coverage
by line does not see into a line: a condition counts by the branch that it leads to.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from coverage_map import CoverageMap, Measured
from distributions import package_of
from planter.faults import Fault, fault_at
from planter.slips import Slip, slips

#: Blocks that run under a condition, by the nodes that have them.
CONDITIONAL = {
    ast.If: ("body", "orelse"),
    ast.For: ("orelse",),
    ast.ExceptHandler: ("body",),
    ast.match_case: ("body",),
}
#: What has a scope of its own.
SCOPES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Site:
    """A slip in a rare branch.

    Attributes:
        slip: What goes wrong.
        scope: The function, with what it is in.
        line: The line by which it is rare: its own, or the first of the branch that it decides about.
    """

    slip: Slip
    scope: str
    line: int


@dataclass(frozen=True, slots=True)
class _Around:
    """What a node is in: the scopes, whether it runs under a condition, the branch that it decides about."""

    scope: tuple[str, ...] = ()
    is_conditional: bool = False
    branch: int | None = None


def sites(measured: Measured, most: int) -> Iterator[Site]:
    """The slips in rare branches of a module: those that one test file reaches, and at most so many."""
    for node, around in _nodes(ast.parse(measured.text), _Around()):
        for slip in slips(node):
            lines = [node.body[0].lineno] if isinstance(node, ast.If | ast.While) else []
            lines += [around.branch] if around.branch else []
            lines += [slip.node.lineno] if around.is_conditional else []
            rare = [line for line in lines if 1 <= len(measured.tests.get(line, ())) <= most]
            if rare:
                yield Site(slip, ".".join(around.scope), rare[0])


def _nodes(node: ast.AST, around: _Around) -> Iterator[tuple[ast.AST, _Around]]:
    yield node, around
    if isinstance(node, SCOPES):
        around = _Around((*around.scope, node.name))
    for field, value in ast.iter_fields(node):
        within = around
        if isinstance(node, ast.If | ast.While) and field == "test":
            within = replace(around, branch=node.body[0].lineno)
        elif field in CONDITIONAL.get(type(node), ()):
            within = replace(around, is_conditional=True)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _nodes(each, within)


def drawn(found: CoverageMap, *, count: int, seed: int, most: int, package: str = "") -> list[Fault]:
    """Faults that are spread over packages and kinds.

    Packages take turns, and so do the kinds within each; a function gets one fault.

    Args:
        found: Which test files cover which lines.
        count: How many faults.
        seed: The same seed draws the same faults from the same map.
        most: A branch is rare that at most so many test files reach.
        package: The only package to draw from, if any.
    """
    chance = random.Random(seed)  # noqa: S311 - the same story for the same seed
    by_package: dict[str, dict[str, list[Fault]]] = defaultdict(lambda: defaultdict(list))
    for path, measured in sorted(found.items()):
        for site in sites(measured, most):
            fault = _fault(path, measured.text, site)
            if fault is not None and package in ("", fault.package):
                by_package[fault.package][fault.kind].append(fault)
    turns = [_alternating(kinds, chance) for _, kinds in sorted(by_package.items())]
    chance.shuffle(turns)
    taken: dict[tuple[str, str], Fault] = {}
    while turns and len(taken) < count:
        turn = turns.pop(0)
        fault = next((each for each in turn if (each.path, each.scope) not in taken), None)
        if fault is not None:
            taken[fault.path, fault.scope] = fault
            turns.append(turn)
    return sorted(taken.values(), key=lambda fault: (fault.path, fault.scope))


def _alternating(kinds: dict[str, list[Fault]], chance: random.Random) -> Iterator[Fault]:
    """The faults of a package, its kinds in turn and in the order of chance."""
    piles = [chance.sample(pile, len(pile)) for _, pile in sorted(kinds.items())]
    chance.shuffle(piles)
    for round_of in zip_longest(*piles):
        yield from (each for each in round_of if each is not None)


def _fault(path: str, text: str, site: Site) -> Fault | None:
    if not package_of(path):
        return None
    node = site.slip.node
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    return fault_at(path, site.scope, site.slip.kind, text, begin, end, site.slip.text)
