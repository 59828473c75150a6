"""Holds the state of one evaluation: the device, local variables and the remaining budget.

LocalNames maps the variables of macros to slots of the frame, innermost first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from dra_cel.device_view import DeviceView
from dra_cel.values import Budget, DomainMap, EvaluationError


class Frame(Budget):
    """The state of one evaluation."""

    __slots__ = ("attributes", "capacity", "device", "slots")

    def __init__(self, device: DeviceView, slots: int, left: int) -> None:
        self.left = left
        self.device = device
        self.attributes: DomainMap
        self.capacity: DomainMap
        self.attributes, self.capacity = device.by_domain()
        self.slots: list[Any] = [None] * slots


Evaluate: TypeAlias = Callable[[Frame], Any]
"""One node of an expression.

Raises:
    EvaluationError: an error of the language.
    CostError: the budget is spent.
"""


class FailedValue:
    """An error in place of a value: a variable of a macro whose step failed."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def constant(value: Any) -> Evaluate:
    """A node that is a constant and costs nothing."""

    def run(_: Frame) -> Any:
        return value

    return run


class LocalNames:
    """The local variables at one place of an expression.

    Attributes:
        size: The number of slots that a frame needs: the maximum in use at one place.
    """

    def __init__(self) -> None:
        self.size = 0
        self._names: list[str] = []

    def slot_of(self, name: str) -> int | None:
        """The slot of the innermost variable of that name, None if there is no such variable."""
        for slot in range(len(self._names) - 1, -1, -1):
            if self._names[slot] == name:
                return slot
        return None

    @contextmanager
    def inside(self, *names: str) -> Iterator[list[int]]:
        """Declare variables and return their slots; they end with the block."""
        start = len(self._names)
        self._names.extend(names)
        self.size = max(self.size, len(self._names))
        yield list(range(start, len(self._names)))
        del self._names[start:]
