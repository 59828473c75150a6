"""The best rows that are kept equal those found by looking at all rows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.engine.cache.best_rows import BestRows
from plimsoll.engine.cache.filter_results import FEASIBLE

NODES = 6

#: A row that changes: whether a filter refuses it then, and its total.
CHANGE = st.tuples(st.integers(0, NODES - 1), st.booleans(), st.integers(0, 3))


@given(st.lists(st.lists(CHANGE, max_size=4), max_size=8), st.sampled_from([1, 64]))
def test_kept_rows_are_the_best(batches: Any, few: int) -> None:
    """Whatever changes between two questions: ties, a new best, refusals, none of the best left."""
    totals = np.zeros(NODES, dtype=np.int64)
    failed = np.full(NODES, FEASIBLE, dtype=np.int16)
    best = BestRows(few)
    for batch in batches:
        for row, is_refused, total in batch:
            failed[row], totals[row] = (0 if is_refused and row else FEASIBLE), total
            best.note_changed(np.array([row]))
        feasible = np.flatnonzero(failed == FEASIBLE)
        verdicts: Any = SimpleNamespace(failed=failed, feasible=feasible, generation=0)

        rows, highest = best.among(verdicts, totals)

        assert highest == totals[feasible].max()
        assert list(rows) == feasible[totals[feasible] == highest].tolist()


def test_all_rows_are_looked_at_when_verdicts_changed_elsewhere() -> None:
    """A generation of verdicts says so."""
    totals = np.array([1, 2])
    best = BestRows()
    before: Any = SimpleNamespace(failed=np.array([0, FEASIBLE]), feasible=np.array([1]), generation=0)
    after: Any = SimpleNamespace(failed=np.array([FEASIBLE, 0]), feasible=np.array([0]), generation=1)

    assert best.among(before, totals) == ([1], 2)
    assert best.among(after, totals) == ([0], 1)
