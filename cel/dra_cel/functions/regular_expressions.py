"""Regular expressions: ``matches``, ``find``, ``findAll``, evaluated by RE2, which takes linear time.

Empty matches are missing from ``findAll``; Go lists them.
Source: Kubernetes v1.36, ``apiserver/pkg/cel/library/regex.go`` and ``cost.go``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dra_cel import library
from dra_cel.functions.table import FunctionTable
from dra_cel.values import Budget, EvaluationError, traversal

PATTERN_FUNCTIONS = ("matches", "find", "findAll")
_PIECE = re.compile(
    r"\\Q.*?(?:\\E|\Z)"  # quoted text
    r"|\\."  # an escaped character
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]"  # a class of characters
    r"|(\(\?P?<\w+>|\((?!\?))",  # a group that captures
    re.DOTALL,
)


def fault_of(pattern: str) -> str:
    """Why a pattern is not a regular expression, "" for a valid one."""
    try:
        library.matches("", pattern)
    except library.PatternError as error:
        return str(error)
    return ""


@lru_cache(maxsize=256)
def without_captures(pattern: str) -> str:
    """The pattern with groups that do not capture."""
    return _PIECE.sub(lambda piece: "(?:" if piece[1] else piece[0], pattern)


def _cost(text: str, pattern: str, *_: int) -> int:
    return traversal(1 + len(text)) * -(-len(pattern) // 4)


def _matches(text: str, pattern: str) -> bool:
    try:
        return library.matches(text, pattern)
    except library.PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from error


def _find(text: str, pattern: str) -> str:
    try:
        return library.found(text, without_captures(pattern))
    except library.PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from error


def _find_all(budget: Budget, text: str, pattern: str, limit: int = -1) -> list[str]:
    budget.charge(_cost(text, pattern) + len(text))
    try:
        found = library.all_found(text, without_captures(pattern))
    except library.PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from error
    return found if limit < 0 else found[:limit]


TABLE = FunctionTable()
TABLE.add("matches", (str, str), _matches, _cost)
TABLE.add("find", (str, str), _find, _cost)
TABLE.add_metered("findAll", (str, str), _find_all)
TABLE.add_metered("findAll", (str, str, int), _find_all)
