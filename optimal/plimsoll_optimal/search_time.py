"""SearchTime is the time that a search has left; each step of a search looks at it."""

from plimsoll.planning.moves import Monotonic


class SearchTime:
    """The time of one search.

    What its parts report counts (the solver's own run time, an allowance for each neighbourhood), or what has
    elapsed since the search began, whichever is more.

    Args:
        seconds: The maximum.
        monotonic: The clock.
    """

    def __init__(self, seconds: float, monotonic: Monotonic) -> None:
        self._seconds, self._monotonic = seconds, monotonic
        self._began, self._reported = monotonic(), 0.0

    def report(self, seconds: float) -> None:
        """Count what a part of the search has taken."""
        self._reported += seconds

    @property
    def spent(self) -> float:
        """Seconds since the search began."""
        return max(self._reported, self._monotonic() - self._began)

    @property
    def left(self) -> float:
        """Seconds that remain; 0 or less when the time is over."""
        return self._seconds - self.spent

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.left <= 0
