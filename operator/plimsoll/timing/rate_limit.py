"""A bounded rate: so many turns a second, and a store of them for a start."""

from plimsoll.ports.clock import Clock

#: The least part of a turn that is waited for: time has a grain.
SOME = 0.1


class Pace:
    """A token bucket.

    Args:
        clock: Time.
        per_s: Turns a second in the long run.
        burst: Turns that may be taken at once after a rest.
    """

    def __init__(self, clock: Clock, per_s: float, burst: int) -> None:
        self._clock = clock
        self._per_s = per_s
        self._burst = burst
        self._left = float(burst)
        self._at = clock.monotonic()

    def has_turn(self) -> bool:
        """Take a turn if there is one."""
        now = self._clock.monotonic()
        self._left = min(float(self._burst), self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    async def turn(self) -> None:
        """Wait for a turn and take it."""
        while not self.has_turn():
            await self._clock.sleep(max(1.0 - self._left, SOME) / self._per_s)
