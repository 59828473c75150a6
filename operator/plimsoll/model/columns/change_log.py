"""Which rows changed since when: a log that names what to look at again."""

import numpy as np

from plimsoll.model.columns.columns import RowArray, distinct

#: The log is cut to half when it grows longer than this; older readers look at all rows again.
LOG_LENGTH = 65_536


class ChangeLog:
    """Changes in order; a tick is how many there have been.

    Attributes:
        tick: Rises with every change.
    """

    __slots__ = ("_rows", "_start", "tick")

    def __init__(self, tick: int = 0) -> None:
        self.tick = tick
        self._rows: list[int] = []
        self._start = tick

    def note(self, row: int) -> None:
        """A row changed."""
        self._rows.append(row)
        self.tick += 1
        if len(self._rows) > LOG_LENGTH:
            cut = LOG_LENGTH // 2
            del self._rows[:cut]
            self._start += cut

    def since(self, tick: int) -> RowArray | None:
        """Rows that changed after ``tick``, ascending; None when the log does not reach back."""
        if tick >= self.tick:
            return np.empty(0, dtype=np.intp)
        if tick < self._start:
            return None
        return distinct(self._rows[tick - self._start :])
