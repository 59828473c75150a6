"""Keeps the best feasible rows of one template, and compares again only rows that changed.

A few rows change from one attempt to the next. While one of the best rows is left, or a better one appears,
the other rows are not read, so the cost of an attempt does not grow with the number of nodes.

Axis letter: N nodes.
"""

from bisect import bisect_left
from collections.abc import Sequence

from plimsoll.engine.cache.filter_results import FEASIBLE, FilterResults
from plimsoll.framework import IntArray
from plimsoll.model.columns.columns import RowArray

#: Number of rows whose individual evaluation takes as long as evaluating all rows together.
FEW = 64


class BestRows:
    """The feasible rows with the highest total, ascending, and that total.

    Args:
        few: Maximum number of changed rows that are evaluated individually.
    """

    def __init__(self, few: int = FEW) -> None:
        self._few = few
        self._rows: list[int] | None = None
        self._highest = 0
        self._changed: list[RowArray] = []
        self._generation = -1

    def forget(self) -> None:
        """Drop everything that is kept."""
        self._rows = None
        self._changed = []

    def note_changed(self, rows: RowArray) -> None:
        """Record rows whose verdicts or totals may have changed."""
        if self._rows is not None:
            self._changed.append(rows)

    def among(self, verdicts: FilterResults, totals: IntArray) -> tuple[Sequence[int], int]:
        """The best of all feasible rows, of which there is at least one; ``totals`` has shape (N,)."""
        kept, changed = self._rows, self._changed
        if kept is None or verdicts.generation != self._generation:
            return self._look_at_all(verdicts, totals)
        self._changed = []
        for rows in changed:
            if len(rows) > self._few:
                return self._look_at_all(verdicts, totals)
            failed = verdicts.failed[rows].tolist()
            for row, total, verdict in zip(rows.tolist(), totals[rows].tolist(), failed, strict=True):
                at = bisect_left(kept, row)
                is_kept = at < len(kept) and kept[at] == row
                if verdict != FEASIBLE or total < self._highest:
                    if is_kept:
                        del kept[at]
                elif total > self._highest:
                    self._highest = total
                    kept[:] = [row]
                elif not is_kept:
                    kept.insert(at, row)
        return (kept, self._highest) if kept else self._look_at_all(verdicts, totals)

    def _look_at_all(self, verdicts: FilterResults, totals: IntArray) -> tuple[Sequence[int], int]:
        feasible = verdicts.feasible
        whole = len(feasible) == len(totals)
        judged = totals if whole else totals[feasible]
        highest = judged.item(judged.argmax())
        best = (judged == highest).nonzero()[0]
        self._rows = (best if whole else feasible[best]).tolist()
        self._highest = highest
        self._changed = []
        self._generation = verdicts.generation
        return self._rows, highest
