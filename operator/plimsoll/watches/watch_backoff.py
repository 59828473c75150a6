"""Decides how long a watch waits after failures in a row, and when a failure begins a new row."""

from http import HTTPStatus

#: Seconds: the first and the longest pause; the pause doubles with each failure.
FIRST_S, LAST_S = 0.2, 30.0

#: The longest pause after a 403. A restored right is useful immediately, because a leader that may not read
#: nodes continues to place pods by its last state; and a retry costs the API server almost nothing.
FORBIDDEN_LAST_S = 5.0


class WatchBackoff:
    """The pauses of one watch; each is jittered around its length.

    A server that was away for a minute makes pauses long. Once it responds, the row has ended, and the next
    failure begins another. Failures that are responses (429, 500) stay in the row, although each may follow a
    list that succeeded.
    """

    def __init__(self) -> None:
        self._next_s = FIRST_S
        self._was_away = False

    def progressed(self) -> None:
        """End the row: a request succeeded."""
        self._next_s = FIRST_S

    def pause_s(self, status: int, fraction: float, *, answered: bool) -> float:
        """Seconds to wait after one more failure.

        Args:
            status: The HTTP status, 0 without a response.
            fraction: A random number in 0..1.
            answered: Whether the server has responded at all since the last failure.
        """
        if answered and self._was_away:
            self._next_s = FIRST_S
        self._was_away = status == 0
        now_s, self._next_s = self._next_s, min(2 * self._next_s, LAST_S)
        return (min(now_s, FORBIDDEN_LAST_S) if status == HTTPStatus.FORBIDDEN else now_s) * (0.5 + fraction)
