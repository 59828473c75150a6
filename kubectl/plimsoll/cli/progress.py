"""Shows progress after one second: bars with a rate, or the name of the step; on a terminal, on stderr."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.cli.views.progress_bars import ProgressBars

#: Seconds until the bars appear.
PATIENCE_S = 1.0


class Progress:
    """Draws a bar for each thing that is counted; a timer shows them, also during a step without news.

    Args:
        unit: What the bars count.
    """

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._state: dict[str, tuple[int, int | None]] = {}
        self._bars: ProgressBars | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE_S, self.show)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, what: str, done: int, total: int | None = None) -> None:
        """Update a bar.

        Args:
            what: The bar, such as ``pods``.
            done: Units done.
            total: Units in total, None if unknown.
        """
        with self._lock:
            self._state[what] = (done, total)
            if self._bars is not None:
                self._bars.update(what, done, total)

    def show(self) -> None:
        """Show what is known so far, and from now on."""
        from plimsoll.cli.views.progress_bars import ProgressBars  # noqa: PLC0415 - imports rich

        with self._lock:
            self._bars = ProgressBars(self._unit)
            for what, (done, total) in self._state.items():
                self._bars.update(what, done, total)
            self._bars.start()

    def close(self) -> None:
        """Remove the bars."""
        self._timer.cancel()
        with self._lock:
            if self._bars is not None:
                self._bars.stop()


class Unseen(Progress):
    """Draws nothing: stderr is no terminal."""

    def __init__(self) -> None:
        """Start no timer."""

    def __call__(self, what: str, done: int, total: int | None = None) -> None:
        """Ignore it."""

    def close(self) -> None:
        """Nothing is there."""


@contextmanager
def progress(unit: str = "objects", what: str = "") -> Iterator[Progress]:
    """Shows progress until the end of the block, as in ``bar("reading", 3, 10)``.

    Args:
        unit: What is counted.
        what: What is being done, where nothing is counted.
    """
    one = Progress(unit) if sys.stderr.isatty() else Unseen()
    if what:
        one(what, 0)
    try:
        yield one
    finally:
        one.close()
