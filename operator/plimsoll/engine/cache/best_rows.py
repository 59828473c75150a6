"""Keeps the best feasible rows of one template, and looks again only at rows that changed.

From one attempt to the next a few rows change. As long as one of the best is left, or a better one came,
the others are left alone: the cost of an attempt does not grow with the nodes.

Axis letter: N nodes.
"""

from bisect import bisect_left
from collections.abc import Sequence

from plimsoll.engine.cache.filter_results import FEASIBLE, FilterResults
from plimsoll.framework import IntArray
from plimsoll.model.columns.columns import RowArray

#: As many rows as are looked at one by one in the time of all.
FEW = 64


class BestRows:
    """The feasible rows with the highest total, ascending, and that total.

    Args:
        few: So many changed rows at most are looked at one by one.
    """

    def __init__(self, few: int = FEW) -> None:
        self._few = few
        self._rows: list[int] | None = None
        self._highest = 0
        self._changed: list[RowArray] = []
        self._generation = -1

    def forget(self) -> None:
        """Nothing that is kept holds any more."""
        self._rows = None
        self._changed = []

    def note_changed(self, rows: RowArray) -> None:
        """The verdicts and totals of these rows may be other ones."""
        if self._rows is not None:
            self._changed.append(rows)

    def among(self, verdicts: FilterResults, totals: IntArray) -> tuple[Sequence[int], int]:
        """The best of all feasible rows, of which there is one at least; ``totals`` has shape (N,)."""
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
