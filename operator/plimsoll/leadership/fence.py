"""Limits writes to the time in which this process certainly holds the lease: the fence.

Every write of every adapter passes it (``plimsoll.kube.session.session``). A leader that was paused, cut off
or is about to be replaced thus stops writing before another one may begin. The timeout of a write ends with
the certain time, so that no write is under way afterwards either.
"""

import math

from plimsoll.ports.clock import Clock
from plimsoll.timing.signal import Signal


class Fence:
    """Closed until opened; stays shut after ``shut``. Its clock must go on while the machine sleeps."""

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
        """Close permanently."""
        self._is_shut = True
        self._until = -math.inf

    def seconds_left(self) -> float:
        """Seconds that a write sent now may take; 0 when no write may be sent."""
        # The election opens the fence from another thread; whatever it stores last, a shut fence stays shut.
        return 0.0 if self._is_shut else max(0.0, self._until - self._clock.monotonic())

    def begin(self) -> None:
        """Count a write that is being sent."""
        self.under_way += 1

    def end(self, *, answered: bool) -> None:
        """Count off a write; one without a response, whose caller stopped waiting, may still happen."""
        self.under_way -= 1
        self._ended.notify()
        if not answered:
            self._unheard_at = self._clock.monotonic()

    async def until_answered(self) -> None:
        """Wait until no write awaits its response; call it in the thread that sends them."""
        await self._ended.until(lambda: not self.under_way)

    def is_quiet(self, for_s: float) -> bool:
        """Whether no write is under way, and none lost its response in the last ``for_s`` seconds."""
        return not self.under_way and self._clock.monotonic() - self._unheard_at >= for_s
