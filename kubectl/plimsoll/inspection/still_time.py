"""StillClock is a clock that stands at the time of a snapshot."""


class StillClock:
    """A clock that always shows the same moment, in seconds since the epoch."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        """The moment."""
        return self._now

    def monotonic(self) -> float:
        """The same."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Unused: nothing waits in a snapshot."""
        raise AssertionError(f"a snapshot does not wait, not even {seconds} s")
