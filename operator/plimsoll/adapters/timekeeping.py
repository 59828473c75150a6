"""The real clock, the real dice, and a thread for long computations."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Goes on while the machine sleeps, where there is such a clock: a lease expires meanwhile.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back, and pass while the machine sleeps."""
        return time.clock_gettime(_STEADY)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class SeededRandomness:
    """Dice that roll the same again for the same seed."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - breaks ties and spreads retries

    def below(self, n: int) -> int:
        """A number in 0..n-1."""
        return self._random.randrange(n)

    def fraction(self) -> float:
        """A number in 0..1."""
        return self._random.random()


class ThreadComputer:
    """Computes in a thread, so that pods are placed meanwhile."""

    async def compute(self, function: Callable[[], T]) -> T:
        """The function's result."""
        return await asyncio.to_thread(function)
