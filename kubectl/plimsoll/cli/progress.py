"""Shows progress after two seconds: a bar with a rate, on stderr, on a terminal only."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.cli.views.progress_bars import ProgressBars

#: Seconds until the bars appear.
PATIENCE_S = 2.0


class Progress:
    """Draws progress bars; draws nothing in the first two seconds, or without a terminal.

    Args:
        bars: The bars; None without a terminal.
    """

    def __init__(self, bars: "ProgressBars | None") -> None:
        self._bars = bars
        self._began = time.monotonic()
        self._is_shown = False

    def __call__(self, what: str, done: int, total: int | None = None) -> None:
        """Update a bar.

        Args:
            what: The bar, such as ``pods``.
            done: Units done.
            total: Units in total, None if unknown.
        """
        if self._bars is None:
            return
        self._bars.update(what, done, total)
        if not self._is_shown and time.monotonic() - self._began >= PATIENCE_S:
            self._bars.start()
            self._is_shown = True

    def close(self) -> None:
        """Remove the bars."""
        if self._bars is not None and self._is_shown:
            self._bars.stop()


@contextmanager
def progress(unit: str = "objects") -> Iterator[Progress]:
    """Shows progress until the end of the block, as in ``bar("reading", 3, 10)``."""
    bars = None
    if sys.stderr.isatty():
        from plimsoll.cli.views.progress_bars import ProgressBars  # noqa: PLC0415 - imports rich

        bars = ProgressBars(unit)
    one = Progress(bars)
    try:
        yield one
    finally:
        one.close()
