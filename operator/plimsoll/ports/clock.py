"""Ports for time, random numbers, threads and processes."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from plimsoll.framework.errors import PlimsollError

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


Ask: TypeAlias = Callable[[bytes], Coroutine[Any, Any, bytes]]
"""Asks another process a question; raises as :meth:`SnapshotComputer.compute` does."""


class SnapshotComputer(Protocol):
    """Runs long computations on a snapshot of this process, in another one."""

    def obstacle(self) -> str:
        """Why none can be run now, "" when one can."""

    async def compute(self, function: Callable[[], bytes]) -> bytes:
        """What the function returns. It sees all objects as they are now; what it changes is lost.

        One that is cancelled has ended when this returns.

        Raises:
            NoRoomForProcess: The system refused another process.
            ComputationFailed: The function raised.
            ComputationLost: The other process ended without an answer.
        """

    def conversation(self, function: Callable[[bytes], bytes]) -> AbstractAsyncContextManager[Ask]:
        """Ask another process, one question after the other; it ends with the block.

        Raises:
            NoRoomForProcess: The system refused another process.
        """


class NoRoomForProcess(PlimsollError):
    """The system refused another process."""


class ComputationFailed(PlimsollError):
    """A function raised in another process; the text is what ``repr`` says of the exception."""


class ComputationLost(PlimsollError):
    """The process that computed something has ended without an answer."""
