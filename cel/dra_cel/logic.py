"""Compiles operators that do not evaluate all of their operands.

``||`` and ``&&`` absorb an error if the other side decides, on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dra_cel.frames import Evaluate, Frame
from dra_cel.values import EvaluationError, Optional, no_such_overload


def _deciding(decides: bool) -> Callable[[Evaluate, Evaluate], Evaluate]:
    """``||``, which true decides, and ``&&``, which false decides."""

    def operator(left: Evaluate, right: Evaluate) -> Evaluate:
        def run(frame: Frame) -> Any:
            try:
                first = left(frame)
            except EvaluationError as error:
                return _only_right(right, frame, error)
            if first is decides:
                return decides
            if type(first) is not bool:
                return _only_right(right, frame, no_such_overload())
            second = right(frame)
            if type(second) is not bool:
                raise no_such_overload()
            return second

        return run

    def _only_right(right: Evaluate, frame: Frame, fault: EvaluationError) -> Any:
        """The right side decides, or the fault of the left one is the result."""
        try:
            second = right(frame)
        except EvaluationError:
            raise fault from None
        if second is not decides:
            raise fault
        return decides

    return operator


def _conditional(condition: Evaluate, true: Evaluate, false: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return true(frame)
        if value is False:
            return false(frame)
        raise no_such_overload()

    return run


def _not_strictly_false(operand: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(1)
        try:
            return operand(frame) is not False
        except EvaluationError:
            return True

    return run


def _or_value(operand: Evaluate, default: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        frame.charge(1)
        if type(value) is not Optional:
            raise no_such_overload()
        return value.values[0] if value.values else default(frame)

    return run


def _or(operand: Evaluate, default: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        frame.charge(1)
        if type(value) is not Optional:
            raise no_such_overload()
        return value if value.values else default(frame)

    return run


LAZY: Mapping[str, Callable[..., Evaluate]] = {
    "_||_": _deciding(decides=True),
    "_&&_": _deciding(decides=False),
    "_?_:_": _conditional,
    "@not_strictly_false": _not_strictly_false,
    "orValue": _or_value,
    "or": _or,
}
