"""Frame holds what one evaluation uses: the device, local variables and the rest of its budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from plimsoll.devices.cel.device_view import DeviceView
from plimsoll.devices.cel.values import Budget, DomainMap, EvaluationError


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
    """An error in the place of a value: a variable of a macro whose step failed."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def constant(value: Any) -> Evaluate:
    """A node that is a constant and costs nothing."""

    def run(_: Frame) -> Any:
        return value

    return run
