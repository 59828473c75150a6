"""Report: a page in one file about a plan, a replay, a change or past moves.

The tables are those of the command; the report adds pictures, and explanations that open with a click.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.inspection.picture import HomelessPods
from plimsoll.web_pages.heat_map import HeatMap
from plimsoll.web_pages.html_page import rendered
from plimsoll.web_pages.move_arrows import MoveArrows
from plimsoll.web_pages.time_line import TimeLine


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table that sorts and can be searched.

    Attributes:
        title: "" for none.
        numeric: Places of the columns that are aligned to the right.
        rows: Text of each cell.
    """

    title: str
    headings: Sequence[str]
    numeric: frozenset[int]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A part of the page: sentences, pictures, tables.

    Attributes:
        body: Lines and tables in their order.
    """

    title: str
    body: Sequence[ReportTable | str] = ()
    maps: Sequence[HeatMap] = ()
    arrows: MoveArrows | None = None
    lines: Sequence[TimeLine] = ()
    waiting: Sequence[HomelessPods] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The page.

    Attributes:
        command: The command line that makes the same answer, for people to repeat.
        explanations: Text by what it explains: the name of a node, or namespace/name of a pod.
    """

    title: str
    source: str
    taken: str
    command: str
    sections: Sequence[ReportSection]
    explanations: Mapping[str, str] = field(default_factory=dict)

    def html(self) -> str:
        """The page as HTML."""
        return rendered("report.html", {"report": self, "explanations": dict(self.explanations)})
