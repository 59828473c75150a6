"""The real clock, real random numbers, and a thread for long computations."""

import asyncio
import contextlib
import contextvars
import random
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

T = TypeVar("T")

#: A clock that goes on while the machine sleeps, if there is one, because leases expire meanwhile.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    #: Seconds that never go back, and pass while the machine sleeps; read a dozen times for each pod.
    monotonic = staticmethod(partial(time.clock_gettime, _STEADY))

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        await asyncio.sleep(seconds)


class SeededRandomness:
    """Random numbers that are reproducible by their seed."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - breaks ties and spreads retries

    def below(self, n: int) -> int:
        """A random integer in 0..n-1."""
        return self._random.randrange(n)

    def fraction(self) -> float:
        """A random number in 0..1."""
        return self._random.random()


#: Seconds after which a computing thread releases the GIL when the loop requests it, which happens several
#: times for each pod (5 ms by default).
SWITCH_S = 0.0005


class ThreadComputer:
    """Runs each computation in its own thread, so that pods are scheduled meanwhile.

    The threads are daemons and do not belong to a pool: an endless one does not take a slot from later ones,
    and does not prevent the process from exiting. While a thread computes, the GIL is switched more often.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._interval_s = 0.0

    async def compute(self, function: Callable[[], T]) -> T:
        """Return the function's result."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def settle(value: T | None, problem: BaseException | None) -> None:
            if result.cancelled():
                return
            if problem is not None:
                result.set_exception(problem)
            else:
                result.set_result(cast("T", value))

        def work() -> None:
            value, problem = None, None
            try:
                value = context.run(function)
            except BaseException as exc:  # noqa: BLE001 - it is raised where the result is awaited
                problem = exc
            self._count(-1)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(settle, value, problem)

        context = contextvars.copy_context()
        self._count(+1)
        threading.Thread(target=work, name="plan", daemon=True).start()
        return await result

    def _count(self, change: int) -> None:
        with self._lock:
            if not self._running:
                self._interval_s = sys.getswitchinterval()
                sys.setswitchinterval(min(self._interval_s, SWITCH_S))
            self._running += change
            if not self._running:
                sys.setswitchinterval(self._interval_s)
