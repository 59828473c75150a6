"""Token-bucket rate limiter."""

from plimsoll.ports.clock import Clock

#: Minimum wait, as a share of one token's interval.
SOME = 0.1


class RateLimiter:
    """A token bucket.

    Args:
        per_s: Tokens per second in the long run.
        burst: Tokens in a full bucket; these can be taken without a wait.
    """

    def __init__(self, clock: Clock, per_s: float, burst: int) -> None:
        self._clock = clock
        self._per_s = per_s
        self._burst = burst
        self._left = float(burst)
        self._at = clock.monotonic()

    def try_accept(self) -> bool:
        """Take a token if one is available."""
        now = self._clock.monotonic()
        self._left = min(float(self._burst), self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    async def turn(self) -> None:
        """Wait for a token and take it."""
        while not self.try_accept():
            await self._clock.sleep(max(1.0 - self._left, SOME) / self._per_s)
