"""Wakes coroutines when something has changed.

A signal is created before its writer and its readers and is passed to both. It carries no value: a reader
looks at the state itself. Notifications between two waits are counted, so a reader that passes the count it
has seen misses none; several notifications wake it once.
"""

import asyncio
from collections.abc import Callable


class Signal:
    """Notifies waiting coroutines of a change."""

    def __init__(self) -> None:
        self.count = 0
        self._waiters: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        """Wake all waiting coroutines; never blocks."""
        self.count += 1
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seen: int | None = None) -> int:
        """Wait for a notification after the ``seen``-th, or the next if None; returns the current count."""
        last = self.count if seen is None else seen
        while self.count == last:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:  # cancelled
                    self._waiters.remove(waiter)
        return self.count

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked immediately and after each notification."""
        while not holds():
            await self.wait()
