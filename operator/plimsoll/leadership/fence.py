"""Limits writes to the time in which the lease is surely ours: the fence.

Every write of every adapter passes it (``plimsoll.kube.session.session``), so that a leader which was paused,
cut off or is about to be replaced stops writing before another one may begin. A write is given no more
time than the lease is surely ours, so that none is under way afterwards, either.
"""

import math

from plimsoll.ports.clock import Clock
from plimsoll.timing.signal import Signal


class Fence:
    """Closed until it is opened; once shut it stays shut. The clock must go on while the machine sleeps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = -math.inf
        self._is_shut = False
        self.under_way = 0
        self._unheard_at = -math.inf
        self._ended = Signal()

    def open(self, until: float) -> None:
        """Let writes pass until this monotonic time."""
        if not self._is_shut:
            self._until = until

    def shut(self) -> None:
        """Let no write pass, for ever."""
        self._is_shut = True
        self._until = -math.inf

    def seconds_left(self) -> float:
        """Seconds that a write which is sent now may take, 0 when none may be sent."""
        # The election opens it in another thread: whatever it stores last, a shut fence stays shut.
        return 0.0 if self._is_shut else max(0.0, self._until - self._clock.monotonic())

    def begin(self) -> None:
        """A write is sent."""
        self.under_way += 1

    def end(self, *, answered: bool) -> None:
        """A write was answered, or its caller has stopped waiting: then it may still happen."""
        self.under_way -= 1
        self._ended.notify()
        if not answered:
            self._unheard_at = self._clock.monotonic()

    async def until_answered(self) -> None:
        """Wait until no write waits for its answer; in the thread that sends them."""
        await self._ended.until(lambda: not self.under_way)

    def is_quiet(self, for_s: float) -> bool:
        """Whether no write is under way, and none was left without an answer in the last seconds."""
        return not self.under_way and self._clock.monotonic() - self._unheard_at >= for_s
