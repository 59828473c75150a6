"""Tables as kubectl prints them: aligned columns, three spaces between them, no padding at the end.

No cell is cut. If the terminal is narrower than the table, the last column is folded, where allowed.
"""

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plimsoll.commands.printable import printable

#: Spaces between two columns.
GAP = "   "

#: Minimum width of the folded column in characters; below it the terminal wraps the line.
FOLDED = 20


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column, and the layout of its cells.

    Attributes:
        wide: Whether the column appears only in ``-o wide``.
        right: Whether its cells are aligned to the right, as numbers are.
    """

    heading: str
    wide: bool = False
    right: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns.

    Attributes:
        columns: Headings, or :class:`Column` values.
        rows: One cell per column, wide ones included.
        folds: Whether the last column is prose, which a narrow terminal may fold.
        title: A line before the table, "" for none.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[object]]
    folds: bool = False
    title: str = ""

    def lines(self, *, wide: bool = False, width: int | None = None) -> Iterable[str]:
        """The lines of the table, at most ``width`` characters wide if folding the last column allows."""
        columns = [each if isinstance(each, Column) else Column(each) for each in self.columns]
        shown = [place for place, column in enumerate(columns) if wide or not column.wide]
        cells = [
            [columns[place].heading for place in shown],
            *([_text(row[place]) for place in shown] for row in self.rows),
        ]
        widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
        rights = [columns[place].right for place in shown]
        if self.title:
            yield self.title
        for *row, last in cells:
            head = "".join(_aligned(*each) + GAP for each in zip(row, widths, rights, strict=False))
            room = None if width is None or not self.folds else width - width_of(head)
            yield from _folded(head, _aligned(last, widths[-1], rights[-1]).rstrip(), room)


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


def _aligned(text: str, width: int, right: bool) -> str:
    padding = " " * (width - width_of(text))
    return padding + text if right else text + padding


def _folded(head: str, last: str, room: int | None) -> Iterable[str]:
    """The row in one line, or in several if ``room`` characters suffice for the last cell to be readable."""
    if room is None or room < FOLDED or width_of(last) <= room:
        yield head + last
        return
    first, *others = textwrap.wrap(last, room, break_long_words=False, break_on_hyphens=False)
    yield head + first
    yield from (" " * width_of(head) + other for other in others)
