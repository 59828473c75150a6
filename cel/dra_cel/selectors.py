"""Compiles expressions into selectors that decide whether a device matches.

``selector(expression)`` compiles each expression once. Errors of an expression or of its evaluation are one
sentence in kube-scheduler's words.

Source: Kubernetes v1.36, ``dynamic-resource-allocation/cel/compile.go``.
"""

from __future__ import annotations

from dra_cel import compiler
from dra_cel.device_view import DeviceView
from dra_cel.frames import Evaluate, Frame
from dra_cel.reads import KnownReads
from dra_cel.values import COST_LIMIT, CostError, EvaluationError, type_name

KEPT_CHARACTERS = 524_288
"""Characters of the expressions that are kept; a compiled one takes fifty bytes for each."""

BESIDES = 64
"""Characters that a compiled expression takes in addition."""


class SelectorError(Exception):
    """An expression that does not compile, or whose evaluation failed.

    Attributes:
        units: The cost until the error.
    """

    def __init__(self, message: str, units: int = 0) -> None:
        super().__init__(message, units)
        self.units = units

    def __str__(self) -> str:
        return str(self.args[0])


class Selector:
    """A compiled expression.

    Attributes:
        expression: as written.
        error: "", or why it cannot be evaluated: ``CEL compile error: …``.
        reads: The attributes and capacities that decide; None if all may.
    """

    __slots__ = ("_evaluate", "_slots", "error", "expression", "reads")

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.error = ""
        self._evaluate: Evaluate | None = None
        self._slots = 0
        self.reads: KnownReads | None = None
        try:
            self._evaluate, self._slots, self.reads = compiler.compiled(expression)
        except compiler.CompileError as error:
            self.error = f"CEL compile error: {error}"

    def matches(self, device: DeviceView) -> bool:
        """Whether a device matches.

        Raises:
            SelectorError: ``CEL compile error: …`` or ``CEL runtime error: …``.
        """
        return self.evaluated(device)[0]

    def evaluated(self, device: DeviceView, limit: int = COST_LIMIT) -> tuple[bool, int]:
        """Whether a device matches, and the cost of the evaluation, in units.

        Raises:
            SelectorError: likewise; also where it would cost more than the limit.
        """
        if self._evaluate is None:
            raise SelectorError(self.error)
        try:
            frame = Frame(device, self._slots, limit)
        except EvaluationError as error:
            raise SelectorError(f"CEL runtime error: {error}") from error
        try:
            result = self._evaluate(frame)
        except (EvaluationError, CostError) as error:
            raise SelectorError(f"CEL runtime error: {error}", limit - frame.left) from error
        if type(result) is not bool:
            kind = type_name(result)
            raise SelectorError(
                f"CEL runtime error: CEL result of type {kind} could not be converted to bool:"
                f" unsupported type conversion from '{kind}' to bool",
                limit - frame.left,
            )
        return result, limit - frame.left


class _Kept:
    """Compiled expressions, the most recently compiled ones."""

    def __init__(self) -> None:
        self.selectors: dict[str, Selector] = {}
        self._characters = 0

    def compile(self, expression: str) -> Selector:
        found = self.selectors[expression] = Selector(expression)
        self._characters += len(expression) + BESIDES
        while self._characters > KEPT_CHARACTERS and len(self.selectors) > 1:
            oldest = next(iter(self.selectors))
            del self.selectors[oldest]
            self._characters -= len(oldest) + BESIDES
        return found


_kept = _Kept()


def selector(expression: str) -> Selector:
    """The selector of an expression, compiled the first time; one that does not compile has an ``error``."""
    return _kept.selectors.get(expression) or _kept.compile(expression)


def is_compiled(expression: str) -> bool:
    """Whether the selector of an expression is kept; compiling takes about 5 µs a character."""
    return expression in _kept.selectors
