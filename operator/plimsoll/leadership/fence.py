"""Limits writes to the time in which the lease is surely ours: the fence.

Every write of every adapter passes it (``plimsoll.kube.session.session``), so that a leader which was paused,
cut off or is about to be replaced stops writing before another one may begin. A write is given no more
time than the lease is surely ours, so that none is under way afterwards, either.
"""

import math
from collections.abc import Callable, Mapping

from plimsoll.ports.clock import Clock
from plimsoll.timing.signal import Signal


class RoleFence:
    """The fence of a process, for writes that belong to one of its roles: closed while that is not held."""

    def __init__(self, fence: "Fence", is_held: Callable[[], bool]) -> None:
        self._fence = fence
        self._is_held = is_held

    def seconds_left(self) -> float:
        """Seconds that a write which is sent now may take, 0 when none may be sent."""
        return self._fence.seconds_left() if self._is_held() else 0.0

    def begin(self) -> None:
        """A write is sent."""
        self._fence.begin()

    def end(self, *, answered: bool) -> None:
        """A write was answered, or its caller has stopped waiting."""
        self._fence.end(answered=answered)


class Fence:
    """Closed until it is opened; once shut it stays shut. The clock must go on while the machine sleeps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = -math.inf
        self._leases: Mapping[str, float] = {}
        self._is_shut = False
        self.under_way = 0
        self._unheard_at = -math.inf
        self._ended = Signal()

    def open(self, until: float, lease: str = "") -> None:
        """Let writes pass until this monotonic time, as far as this lease is concerned.

        A process with several leases writes only while every one of them is surely its own.
        """
        if not self._is_shut:
            self._leases = {**self._leases, lease: until}
            self._until = min(self._leases.values())

    def leave(self, lease: str) -> None:
        """A lease is given away, after the last write that belongs to it; the others decide."""
        if not self._is_shut:
            self._leases = {name: until for name, until in self._leases.items() if name != lease}
            self._until = min(self._leases.values(), default=-math.inf)

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

    def is_answered(self, for_s: float) -> bool:
        """Whether every write that ended in the last seconds was answered."""
        return self._clock.monotonic() - self._unheard_at >= for_s

    def is_quiet(self, for_s: float) -> bool:
        """Whether no write is under way, and none was left without an answer in the last seconds."""
        return not self.under_way and self.is_answered(for_s)
