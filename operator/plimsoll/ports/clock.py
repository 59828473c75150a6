"""Ports for time, random numbers and threads."""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Time."""

    def now(self) -> float:
        """Seconds since the epoch; for what is written down."""

    def monotonic(self) -> float:
        """Seconds that never go back; for measuring and waiting."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class Randomness(Protocol):
    """Dice."""

    def below(self, n: int) -> int:
        """A number in 0..n-1."""

    def fraction(self) -> float:
        """A number in 0..1."""


class Computer(Protocol):
    """Runs long computations outside the event loop."""

    async def compute(self, function: Callable[[], T]) -> T:
        """The function's result; it must not use state that changes meanwhile."""
