"""Progress bars on a terminal; rich draws them."""

import sys

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text


class CountColumn(MofNCompleteColumn):
    """How much is done; nothing where nothing is counted."""

    def render(self, task: Task) -> Text:
        """The numbers of one bar."""
        return super().render(task) if task.completed or task.total else Text("")


class RateColumn(ProgressColumn):
    """Units per second."""

    def render(self, task: Task) -> Text:
        """The rate of one bar."""
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f} {task.fields['unit']}/s")


class ProgressBars:
    """Bars on stderr, keyed by name, shown from ``start`` on; ``unit`` is what they count."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            CountColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr, highlight=False),
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self.start = self._bars.start
        self.stop = self._bars.stop

    def update(self, what: str, done: int, total: int | None) -> None:
        """Update a bar; the first time it is added."""
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total, unit=self._unit)
        self._bars.update(self._tasks[what], completed=done, total=total)
