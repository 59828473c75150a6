"""Exchanges and Streams are what is under way on the network: requests with their answers, and watches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from roadstead.server.request_handler import Request
from simulation.faults import FaultKind
from simulation.loop import VirtualLoop

Answer = tuple[int, bytes]


@dataclass(eq=False, slots=True)
class Exchange:
    """One request on its way; a key of what is due at it, also when it has never taken effect.

    Attributes:
        sender: The life of a replica that sent it.
        answer: What the sender waits for.
        upon: What happens right before the answer arrives.
    """

    sender: str
    request: Request
    answer: asyncio.Future[Answer]
    fault: FaultKind | None
    sent_at: float
    upon: Callable[[], None] | None = None


@dataclass(eq=False, slots=True)
class Stream:
    """One watch on its way to its client, in order.

    Attributes:
        fault: What is the matter with it as a whole.
        lag_s: How late its next parts are.
        behind_s: How late all of them are.
        is_silent: Whether its connection is half-open.
    """

    sender: str
    path: str
    loop: VirtualLoop
    status: int = 200
    last: float = 0.0
    lag_s: float = 0.0
    behind_s: float = 0.0
    is_silent: bool = False
    fault: FaultKind | None = None
    coming: deque[bytes] = field(default_factory=deque)
    arrived: list[bytes] = field(default_factory=list)
    broken: Exception | None = None
    is_over: bool = False
    waiter: asyncio.Future[None] | None = None
    pump: asyncio.Task[None] | None = None

    def arrive(self) -> None:
        """The next part has come."""
        if self.coming:
            self.arrived.append(self.coming.popleft())
        self.wake()

    def end(self, problem: Exception | None = None) -> None:
        """No further part comes."""
        if not self.is_over:
            self.is_over, self.broken = True, problem
        self.wake()

    def wake(self) -> None:
        """Something has changed for the client."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def parts(self, silence_s: float) -> AsyncIterator[bytes]:
        """What arrives."""
        while True:
            if self.arrived:
                parts, self.arrived = self.arrived, []
                yield b"".join(parts)
            elif self.is_over:
                if self.broken is not None:
                    raise self.broken
                return
            else:
                self.waiter = self.loop.create_future()
                async with asyncio.timeout(silence_s):
                    await self.waiter
