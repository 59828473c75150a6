"""Fakes of time, randomness and computation that a test controls."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


#: Seconds by which a wall clock is ahead of the monotonic one, unless a test says otherwise.
AHEAD_S = 5_000_000.0


class FakeClock:
    """A clock that stands still until a test advances it.

    Its wall clock is far ahead of its monotonic one, as on any machine, so that a mix-up of both shows.

    Attributes:
        time: The monotonic time in seconds.
        ahead_s: The seconds that the wall clock shows on top.
    """

    def __init__(self, now: float = 1_000_000.0, *, ahead_s: float = AHEAD_S) -> None:
        self.time = now
        self.ahead_s = ahead_s
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.time + self.ahead_s

    def monotonic(self) -> float:
        """Seconds since a moment of the past."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Wait until the time is advanced that far."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers = [each for each in self._sleepers if not each[1].done()]  # but those cancelled since
        self._sleepers.append((self.time + seconds, over))
        await over

    async def advance(self, seconds: float) -> None:
        """Advance the time, wake the sleepers that are due, and let all tasks settle."""
        await settled()
        until = self.time + seconds
        while due := sorted(each for each, over in self._sleepers if each <= until and not over.done()):
            self.time = max(self.time, due[0])
            for each, over in self._sleepers:
                if each <= self.time and not over.done():
                    over.set_result(None)
            self._sleepers = [(each, over) for each, over in self._sleepers if not over.done()]
            await settled()
        self.time = until
        await settled()


#: Turns of the loop that tasks may take to settle, and turns without a task after which they have.
_MOST_TURNS, _QUIET_TURNS = 50, 4


async def settled() -> None:
    """Let every task run until it waits for something that only the test can do."""
    loop, quiet = asyncio.get_running_loop(), 0
    # asyncio has no public way to see what is due; a loop of another kind is given all turns.
    ready = vars(loop)["_ready"] if isinstance(loop, asyncio.BaseEventLoop) else [loop]
    for _ in range(_MOST_TURNS):
        await asyncio.sleep(0)
        quiet = 0 if ready else quiet + 1
        if quiet == _QUIET_TURNS:
            return


class FakeRandomness:
    """Random numbers that are always the lowest."""

    def below(self, n: int) -> int:
        """0."""
        assert n > 0
        return 0

    def fraction(self) -> float:
        """0."""
        return 0.0


class InlineComputer:
    """Computes immediately, in the caller."""

    async def compute(self, function: Callable[[], T]) -> T:
        """The function's result."""
        return function()
