"""Report is a page in one file about a plan, a replay, a what-if or past moves.

The tables are those of the command; the report adds drawings, and explanations that open with a click.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from plimsoll.inspection.state_words import STATE_WORDS
from plimsoll.web_pages.heat_map import HeatMap
from plimsoll.web_pages.html_page import rendered
from plimsoll.web_pages.move_arrows import MoveArrows
from plimsoll.web_pages.rack_bars import RackBars
from plimsoll.web_pages.time_line import TimeLine


class ReportTable(Struct, frozen=True):
    """A sortable, searchable table.

    Attributes:
        title: "" for none.
        numeric: Indices of the columns that are aligned to the right.
        rows: Text of each cell.
        states: Indices of the columns whose words are good or bad news.
    """

    title: str
    headings: Sequence[str]
    numeric: frozenset[int]
    rows: Sequence[Sequence[str]]
    states: frozenset[int] = frozenset()


class PodsForReason(Struct, frozen=True):
    """Pods without a node for one reason.

    Attributes:
        count: Number of pods; ``pods`` may list fewer.
    """

    reason: str
    count: int
    pods: Sequence[str]


class ReportSection(Struct, frozen=True):
    """A part of the page: sentences, drawings, tables.

    Attributes:
        body: Lines and tables in their order.
    """

    title: str
    body: Sequence[ReportTable | str] = ()
    maps: Sequence[HeatMap] = ()
    arrows: MoveArrows | None = None
    racks: RackBars | None = None
    lines: Sequence[TimeLine] = ()
    waiting: Sequence[PodsForReason] = ()


class Report(Struct, frozen=True):
    """The page.

    Attributes:
        source: Where it was read, without paths and addresses: a page is mailed.
        command: The command line that gives the same answer, likewise.
        figures: The three figures that matter: names and numbers.
        explanations: Texts keyed by node name, or by namespace/name of a pod.
        pods: The index of placed pods (``web_pages.pod_index``); may be empty.
        verdict: The answer in a sentence.
    """

    title: str
    source: str
    taken: str
    command: str
    sections: Sequence[ReportSection]
    explanations: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[tuple[str, str]] = ()
    pods: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = ""

    def html(self) -> str:
        """The page as HTML."""
        explained = {*self.explanations, *(row[0] for row in self.pods.get("pods", ()))}
        data = {"explanations": dict(self.explanations), "index": dict(self.pods)}
        return rendered(
            "report.html", {"report": self, "explained": explained, "data": data, "look": STATE_WORDS}
        )
