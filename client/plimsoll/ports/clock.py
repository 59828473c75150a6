"""Ports for time, random numbers, threads and processes."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from plimsoll.framework.errors import PlimsollError

T = TypeVar("T")


class Clock(Protocol):
    """Port for time."""

    def now(self) -> float:
        """Seconds since the epoch; for timestamps."""

    def monotonic(self) -> float:
        """Seconds that never go back; for measuring and waiting."""

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""


class Randomness(Protocol):
    """Port for random numbers."""

    def below(self, n: int) -> int:
        """A random integer in 0..n-1."""

    def fraction(self) -> float:
        """A random number in 0..1."""


class Computer(Protocol):
    """Runs long computations outside the event loop."""

    async def compute(self, function: Callable[[], T]) -> T:
        """Return the function's result; the function must not use state that changes meanwhile."""


Ask: TypeAlias = Callable[[bytes], Coroutine[Any, Any, bytes]]
"""Asks another process a question; raises as :meth:`SnapshotComputer.compute` does."""


class SnapshotComputer(Protocol):
    """Runs long computations in another process, on a snapshot of this one."""

    def obstacle(self) -> str:
        """Why no computation can run now; "" when one can."""

    async def compute(self, function: Callable[[], bytes]) -> bytes:
        """Run a function on a copy of all current objects and return its result; its changes are lost.

        When a cancelled call returns, the other process has ended.

        Raises:
            NoRoomForProcess: The system refused another process.
            ComputationFailed: The function raised.
            ComputationLost: The other process ended without a result.
        """

    def conversation(self, function: Callable[[bytes], bytes]) -> AbstractAsyncContextManager[Ask]:
        """Start another process that answers one request after the other; it ends with the context.

        Raises:
            NoRoomForProcess: The system refused another process.
        """


class NoRoomForProcess(PlimsollError):
    """The system refused another process."""


class ComputationFailed(PlimsollError):
    """A function raised in another process; the text is the ``repr`` of the exception."""


class ComputationLost(PlimsollError):
    """The process that ran a computation ended without a result."""
