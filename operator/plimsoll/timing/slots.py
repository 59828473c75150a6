"""Slots limit how many things are in flight.

Who waits for one slot comes before the one that waits for several, to begin several things in one go.
"""

import asyncio
from collections import deque
from types import TracebackType

#: Seconds after the first free slot in which more of them are waited for.
LINGER_S = 0.01


class Slots:
    """Slots to take before something begins, and to give back at its end."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._wanted = 1
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._several: asyncio.Future[None] | None = None
        self._patience: asyncio.TimerHandle | None = None

    @property
    def are_taken(self) -> bool:
        """Whether none is free."""
        return self._free <= 0

    def take(self) -> None:
        """Take a free slot."""
        self._free -= 1

    def release(self) -> None:
        """Give a slot back: to who has waited longest, else it is free."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1
        if self._several is None:
            return
        if self._free >= self._wanted:
            self._go_on()
        elif self._patience is None:
            self._patience = asyncio.get_running_loop().call_later(LINGER_S, self._go_on)

    async def acquire(self) -> None:
        """Take a slot as soon as one is free."""
        if self._free > 0:
            self._free -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.release()
            raise

    async def until_free(self, wanted: int) -> None:
        """Wait until so many slots are free, or fewer, but one, for a moment; one caller at a time."""
        self._wanted = wanted
        while self._free <= 0:
            self._several = asyncio.get_running_loop().create_future()
            try:
                await self._several
            finally:
                self._several = None
                if self._patience is not None:
                    self._patience.cancel()
                    self._patience = None

    def _go_on(self) -> None:
        if self._several is not None and not self._several.done():
            self._several.set_result(None)

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        self.release()
