"""Tables as kubectl prints them: aligned columns, three spaces between them, no padding at the end.

No cell is cut. A table that is wider than the terminal is folded: its last column first if that is prose,
then the widest ones; ``-o wide`` folds prose only.
"""

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from plimsoll.cli.colours import HEADING, painted, tone_of
from plimsoll.commands.printable import printable

#: Spaces between two columns.
GAP = "   "

#: Minimum width in characters of a folded column of prose, and of any other.
FOLDED, NARROWEST = 20, 8


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column, and the layout of its cells.

    Attributes:
        wide: Whether the column appears only in ``-o wide``.
        right: Whether its cells are aligned to the right, as numbers are; such a column is never folded.
        status: Whether its words are good or bad news, and coloured so on a terminal.
    """

    heading: str
    wide: bool = False
    right: bool = False
    status: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns.

    Attributes:
        columns: Headings, or :class:`Column` values.
        rows: One cell per column, wide ones included.
        folds: Whether the last column is prose, which a narrow terminal folds first.
        title: A line before the table, "" for none.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[object]]
    folds: bool = False
    title: str = ""

    def first_rows(self, most: int = 20) -> "Table":
        """The first rows; the title gives the total number, and how to see all."""
        if len(self.rows) <= most:
            return self
        subject = self.title.removesuffix(":")
        shown = f"{most} of {len(self.rows)}; -o wide lists all"
        title = f"{subject} ({shown}):" if subject else f"The first {shown}:"
        return replace(self, rows=self.rows[:most], title=title)

    def lines(
        self, *, wide: bool = False, width: int | None = None, is_coloured: bool = False
    ) -> Iterable[str]:
        """The lines of the table, at most ``width`` characters wide if folding allows."""
        columns = [each if isinstance(each, Column) else Column(each) for each in self.columns]
        shown = [place for place, column in enumerate(columns) if wide or not column.wide]
        columns = [columns[place] for place in shown]
        cells = [
            [column.heading for column in columns],
            *([_text(row[place]) for place in shown] for row in self.rows),
        ]
        widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
        if width is not None:
            widths = self._folded(columns, widths, width, is_wide=wide)
        if self.title:
            yield self.title
        for number, row in enumerate(cells):
            tones = [
                HEADING if not number else tone_of(cell) if column.status else ""
                for cell, column in zip(row, columns, strict=True)
            ]
            parts = [_wrapped(cell, room) for cell, room in zip(row, widths, strict=True)]
            for line in zip_longest(*parts, fillvalue=""):
                yield _joined(line, widths, columns, tones if is_coloured else ())

    def _folded(
        self, columns: Sequence[Column], widths: Sequence[int], width: int, *, is_wide: bool
    ) -> list[int]:
        """The widths of the columns in a terminal of that width."""
        found = list(widths)
        excess = sum(found) + len(GAP) * (len(found) - 1) - width
        if excess > 0 and self.folds and found[-1] > FOLDED:
            taken = min(excess, found[-1] - FOLDED)
            if is_wide and taken < excess:
                return found  # fifteen characters are no column of prose
            found[-1] -= taken
            excess -= taken
        foldable = [] if is_wide else [place for place, column in enumerate(columns) if not column.right]
        while excess > 0 and foldable:
            place = max(foldable, key=found.__getitem__)
            if found[place] <= NARROWEST:
                break
            found[place] -= 1
            excess -= 1
        return found


def terminal_width() -> int:
    """Columns of the terminal; 80 if unknown."""
    return shutil.get_terminal_size().columns


def _text(cell: object) -> str:
    """A cell in one line; ``<none>`` if it is empty, as in kubectl."""
    return printable(str(cell)) if cell is not None and cell != "" else "<none>"


def width_of(text: str) -> int:
    """The columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - for texts in other scripts

    return cell_len(text)


def _wrapped(cell: str, room: int) -> list[str]:
    """The lines of a cell."""
    return [cell] if width_of(cell) <= room else textwrap.wrap(cell, room)


def _joined(
    line: Sequence[str], widths: Sequence[int], columns: Sequence[Column], tones: Sequence[str]
) -> str:
    """One line of a row, its cells aligned."""
    last = max((place for place, text in enumerate(line) if text), default=0)
    parts = []
    for place, (text, width, column) in enumerate(zip(line[: last + 1], widths, columns, strict=False)):
        padding = " " * (width - width_of(text))
        shown = painted(text, tones[place]) if tones else text
        parts.append(padding + shown if column.right else shown if place == last else shown + padding)
    return GAP.join(parts).rstrip()
