"""Times strategies by a clock that the caller injects: the engine itself reads none."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class StrategyTimer:
    """Seconds by strategy, the planner's verdicts on its candidates included.

    A strategy that runs several times in one plan is timed in total. A strategy that another one's candidate
    causes to run is part of the other one's time.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = clock
        self._is_running = False

    @contextmanager
    def timed(self, strategy: str) -> Iterator[None]:
        """Add the time spent inside to the strategy."""
        if self._is_running:
            yield
            return
        self._is_running, began = True, self._clock()
        try:
            yield
        finally:
            self._is_running = False
            self.seconds[strategy] = self.seconds.get(strategy, 0.0) + self._clock() - began


#: The timer of the plan that is made in this context, or None. A thread that makes the plan has a copy of the
#: context, and so the same timer.
TIMER: ContextVar[StrategyTimer | None] = ContextVar("TIMER", default=None)
