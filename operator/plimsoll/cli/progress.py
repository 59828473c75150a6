"""Shows progress after two seconds: a bar with a rate, on stderr, on a terminal only."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

#: Seconds until the bars appear.
PATIENCE_S = 2.0


class RateColumn(ProgressColumn):
    """Units per second."""

    def render(self, task: Task) -> Text:
        """The rate of one bar."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {task.fields['unit']}/s")


class Progress:
    """Draws progress bars; draws nothing in the first two seconds, or without a terminal."""

    def __init__(self, console: Console, unit: str) -> None:
        self._unit = unit
        self._began = time.monotonic()
        self._shows = console.is_terminal
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._is_shown = False

    def __call__(self, what: str, done: int, total: int | None = None) -> None:
        """Update a bar.

        Args:
            what: The bar, such as ``pods``.
            done: Units done.
            total: Units in total, None if unknown.
        """
        if not self._shows:
            return
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total, unit=self._unit)
        self._bars.update(self._tasks[what], completed=done, total=total)
        if not self._is_shown and time.monotonic() - self._began >= PATIENCE_S:
            self._bars.start()
            self._is_shown = True

    def close(self) -> None:
        """Remove the bars."""
        if self._is_shown:
            self._bars.stop()


@contextmanager
def progress(unit: str = "objects") -> Iterator[Progress]:
    """Shows progress until the end of the block, as in ``bar("reading", 3, 10)``."""
    one = Progress(Console(file=sys.stderr, highlight=False), unit)
    try:
        yield one
    finally:
        one.close()
