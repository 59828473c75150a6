"""Slots limit the number of things in flight.

A waiter for one slot precedes the waiter for several, which begins several things in one go.
"""

import asyncio
from collections import deque
from types import TracebackType

#: Seconds to wait for more slots after the first one is free.
LINGER_S = 0.01


class Slots:
    """Slots that are taken before something begins and released when it ends."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._wanted = 1
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._several: asyncio.Future[None] | None = None
        self._patience: asyncio.TimerHandle | None = None

    @property
    def are_taken(self) -> bool:
        """Whether no slot is free."""
        return self._free <= 0

    def take(self) -> None:
        """Take a free slot."""
        self._free -= 1

    def release(self) -> None:
        """Release a slot: to the first waiter, else it becomes free."""
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
        """Wait for a free slot and take it."""
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
        """Wait until ``wanted`` slots are free, or LINGER_S after the first one is; one caller at a time."""
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
