"""LocalNames maps the variables of macros to slots of the frame, innermost first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class LocalNames:
    """The local variables at one place of an expression.

    Attributes:
        size: slots that a frame needs: as many as are in use at one place.
    """

    def __init__(self) -> None:
        self.size = 0
        self._names: list[str] = []

    def slot_of(self, name: str) -> int | None:
        """The slot of the innermost variable of that name, None if there is no such variable."""
        for slot in range(len(self._names) - 1, -1, -1):
            if self._names[slot] == name:
                return slot
        return None

    @contextmanager
    def inside(self, *names: str) -> Iterator[list[int]]:
        """Declare variables and return their slots; they end with the block."""
        start = len(self._names)
        self._names.extend(names)
        self.size = max(self.size, len(self._names))
        yield list(range(start, len(self._names)))
        del self._names[start:]
