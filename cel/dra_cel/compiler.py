"""Checks an expression as the API server of Kubernetes does, and compiles it.

The library parses and checks types. This module adds the checks of Kubernetes: literals of lists and maps
have elements of one type; literal patterns, durations and times are valid; the result may be a bool. Limits
keep hostile expressions from the library: with some macros and types, its time grows exponentially with the
text.

Source: Kubernetes v1.36, ``dynamic-resource-allocation/cel/compile.go``, ``apiserver/pkg/cel/environment``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dra_cel import library, syntax
from dra_cel.frames import Evaluate
from dra_cel.functions.regular_expressions import PATTERN_FUNCTIONS, fault_of
from dra_cel.functions.times import parse_duration, parse_timestamp
from dra_cel.programs import ExpressionFault, program
from dra_cel.reads import KnownReads, reads_of
from dra_cel.syntax import (
    Call,
    CheckedExpression,
    Constant,
    ListLiteral,
    MapLiteral,
    Tree,
    nodes,
)
from dra_cel.values import EvaluationError

LONGEST = 10 * 1024
"""Bytes of an expression, as the API server limits it."""
MOST_COPIES = 8
"""Macros that copy what they are called on, which doubles the expression each time."""
MOST_COMPUTED_KEYS = 8
"""Keys of map literals that are computed: the type of a map of maps is twice as long each time."""
_COPYING = re.compile(r"\bopt(?:Flat)?Map\b")
_HAS_DEVICE = re.compile(r"\bhas\s*\(\s*device\s*\.\s*\w+\s*\)")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")


class CompileError(Exception):
    """Why an expression does not compile."""


def compiled(expression: str) -> tuple[Evaluate, int, KnownReads | None]:
    """The compiled expression, its number of local variables, and the attributes that it reads.

    Raises:
        CompileError: it is too long, does not parse, its types do not fit, or it cannot be a bool.
    """
    try:
        checked = _checked(expression)
        for fault in _faults(checked):
            raise CompileError(f"compilation failed: {fault}")
        return *program(checked.tree), reads_of(checked.tree)
    except ExpressionFault as error:
        raise CompileError(f"compilation failed: {error}") from error
    except library.MissingLibraryError as error:
        raise CompileError(str(error)) from error
    except syntax.UnknownSyntaxError as error:
        raise CompileError(f"compilation failed: {error}") from error


def _checked(expression: str) -> CheckedExpression:
    try:
        size = len(expression.encode())
    except UnicodeEncodeError as error:
        raise CompileError("compilation failed: the text is not valid Unicode") from error
    if size > LONGEST:
        raise CompileError(f"the expression has {size} bytes, at most {LONGEST} are allowed")
    if len(_COPYING.findall(expression)) > MOST_COPIES:
        raise CompileError(f"too complex: at most {MOST_COPIES} calls of optMap and optFlatMap are allowed")
    checker = library.checker(typed=not _HAS_DEVICE.search(expression))
    parsed = syntax.checked(_attempt(checker, expression, disable_check=True).serialize())
    keys = sum(
        not isinstance(key, Constant)
        for node in nodes(parsed.tree)
        if isinstance(node, MapLiteral)
        for key, _, _ in node.entries
    )
    if keys > MOST_COMPUTED_KEYS:
        raise CompileError(f"too complex: at most {MOST_COMPUTED_KEYS} keys of maps may be computed")
    found = _attempt(checker, expression)
    result = found.return_type().name()
    if result not in {"BOOL", "DYN"}:
        raise CompileError(f"must evaluate to bool or the unknown type, not {result.lower()}")
    return syntax.checked(found.serialize())


def _attempt(checker: Any, expression: str, *, disable_check: bool = False) -> Any:
    try:
        return checker.compile(expression, disable_check=disable_check)
    except (RuntimeError, ValueError) as error:
        raise CompileError(f"compilation failed: {_STATUS.sub('', str(error))}") from error


def _faults(checked: CheckedExpression) -> Iterator[str]:
    """Violations of Kubernetes' checks in addition to types."""
    for node in nodes(checked.tree):
        if isinstance(node, ListLiteral):
            yield from _mixed(checked, node.elements)
        elif isinstance(node, MapLiteral):
            yield from _mixed(checked, tuple(key for key, _, _ in node.entries))
            yield from _mixed(checked, tuple(value for _, value, _ in node.entries))
        elif isinstance(node, Call):
            yield from _bad_literal(node)


def _mixed(checked: CheckedExpression, elements: tuple[Tree, ...]) -> Iterator[str]:
    types = dict.fromkeys(checked.type_of(element) for element in elements)
    known = [name for name in types if "dyn" not in name]
    if len(known) > 1:
        yield f"expected type '{known[0]}' but found '{known[1]}'"


def _bad_literal(node: Call) -> Iterator[str]:
    texts = [argument.value for argument in node.arguments if isinstance(argument, Constant)]
    if not texts or not isinstance(node.arguments[-1], Constant) or not isinstance(texts[-1], str):
        return
    if node.function in PATTERN_FUNCTIONS and len(node.arguments) == 2:
        fault = fault_of(texts[-1])
        if fault:
            yield f"invalid matches argument: {fault}"
    elif node.function in {"duration", "timestamp"}:
        try:
            (parse_duration if node.function == "duration" else parse_timestamp)(texts[-1])
        except EvaluationError as error:
            yield str(error)
