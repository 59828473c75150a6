"""Backoff says how long to wait after failures in a row, and when they are no longer in a row."""

from http import HTTPStatus

#: Seconds: doubled from the first to the last.
FIRST_S, LAST_S = 0.2, 30.0

#: The last pause after a 403. A right that comes back is of use immediately: a leader that may not read nodes
#: goes on placing pods by what it saw before, and to ask costs the API server next to nothing.
FORBIDDEN_LAST_S = 5.0


class Backoff:
    """The pauses of one watch; each is drawn around its length.

    A server that was away for a minute makes pauses long. Once it has answered that is over: the next failure
    is the first of another row. Failures that are answers (429, 500) go on being in a row, although each may
    follow a list that succeeded.
    """

    def __init__(self) -> None:
        self._next_s = FIRST_S
        self._was_away = False

    def progressed(self) -> None:
        """What was wrong is over."""
        self._next_s = FIRST_S

    def pause_s(self, status: int, fraction: float, *, answered: bool) -> float:
        """Seconds to wait after one more failure.

        Args:
            status: Of the answer, 0 without one.
            fraction: Drawn, from 0 to 1.
            answered: Whether the server has answered anything since the last failure.
        """
        if answered and self._was_away:
            self._next_s = FIRST_S
        self._was_away = status == 0
        now_s, self._next_s = self._next_s, min(2 * self._next_s, LAST_S)
        return (min(now_s, FORBIDDEN_LAST_S) if status == HTTPStatus.FORBIDDEN else now_s) * (0.5 + fraction)
