"""Numbers and the words after them agree: one function writes them, and no output has ``1 pods``."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import distributions
from syntax_trees import syntax_trees

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

ONE = r"(?:pod|node|move|eviction|candidate|record|disruption|object|kind|finding|budget)"
MANY = rf"(?:{ONE}s|policies)"
PLURAL = re.compile(rf" (?:more |other |further |pending |healthy )?{MANY}\b(?!\()")

#: Places where the number is never one, or the words are another project's, by the beginning of the text.
NEVER_ONE = {
    " nodes are available:",  # kube-scheduler's words
    " pods of ",  # at least two duplicates, or the constant of load moves
    " nodes could share all ",  # duplicates are spread over two or more
    " pods run simultaneously",  # fewer than a Job completes
    " evictions in a row were refused",  # a hundred
    " moves were unsuccessful",  # five
    " moves are about to be sent",  # a fault that validation finds
    " plans hang",  # four
    " pods in scope, others may be moved as well",  # two policies share pods
    " pods exclude each other",  # more than there are domains
    " pods want host port ",  # more than there are nodes
    " nodes write --add-nodes ",
    " moves pods by what nodes use",
    " pods with ",
    " moves ",  # the verb
    " moves it",
    " pods wait unschedulable",
    " plans to move it",
}

#: What no output says; "of 1 pods" and "1 node(s)" are upstream's ways.
WRONG = re.compile(rf"(?<![\w.:/-])(?<!of )1 {MANY}\b(?!\()|\b1 {ONE} (?:are|were|stay|wait|find)\b")


def numbers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each plural noun that follows a formatted value in an f-string."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for place, (left, right) in enumerate(zip(node.values, node.values[1:], strict=False)):
            if not (isinstance(left, ast.FormattedValue) and isinstance(right, ast.Constant)):
                continue
            before = node.values[place - 1] if place else None
            is_share = isinstance(before, ast.Constant) and re.search(r"of (the )?$", str(before.value))
            text = str(right.value)
            if PLURAL.match(text) and not is_share and not text.startswith(tuple(NEVER_ONE)):
                yield node.lineno, text


def choices(tree: ast.Module) -> Iterator[int]:
    """Lines that choose between two words by whether a number is one."""
    for node in ast.walk(tree):
        match node:
            case ast.IfExp(
                test=ast.Compare(
                    ops=[ast.Eq() | ast.NotEq() | ast.Gt()], comparators=[ast.Constant(value=1)]
                ),
                body=ast.Constant(value=str(one)),
                orelse=ast.Constant(value=str(many)),
            ) if one[:1] == many[:1] or "" in (one, many):
                yield node.lineno
            case ast.BinOp(left=ast.Constant(value="s" | "es"), op=ast.Mult()):
                yield node.lineno


def test_numbers_and_their_nouns_are_written_by_one_function() -> None:
    found = []
    for path, tree in syntax_trees(distributions.modules()).items():
        if path.name == "counted.py":
            continue
        found += [f"{path}:{line}: {text!r}" for line, text in numbers(tree)]
        found += [f"{path}:{line}: a choice of its own" for line in choices(tree)]

    assert found == []


def outputs() -> list[Path]:
    """Golden files, and pages with what commands print."""
    return sorted(
        each
        for folder in ("tests", "docs", "examples")
        for each in (ROOT / folder).rglob("*")
        if each.is_file() and ("golden" in each.parts or each.suffix == ".md")
        if "benchmarks" not in each.parts  # figures in a row
    )


def test_no_output_has_a_number_that_does_not_agree() -> None:
    found = []
    for path in outputs():
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {each.group()}" for each in WRONG.finditer(text)]

    assert found == []


@pytest.mark.parametrize("text", ["1 pods wait", "1 pod considered, 1 pod are moved", "0 left, 1 policies"])
def test_what_does_not_agree_is_found(text: str) -> None:
    assert WRONG.search(text)


@pytest.mark.parametrize(
    "text", ["1 of 1 pods", "1 node(s) had", "11 pods", "v1 pods", "1 pod is moved", "2.1 pods"]
)
def test_what_agrees_is_not_found(text: str) -> None:
    assert not WRONG.search(text)
