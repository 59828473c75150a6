"""The time of a search is the greater of what its parts report and what elapses."""

from plimsoll.planning.moves import standing
from plimsoll_optimal.search_time import SearchTime


def test_with_a_clock_that_stands_still_only_reports_count() -> None:
    """As in simulations."""
    time = SearchTime(5, standing)
    time.report(3)

    assert (time.spent, time.left, time.is_over) == (3, 2, False)
    time.report(2)
    assert (time.spent, time.left, time.is_over) == (5, 0, True)


def test_what_elapses_counts_though_no_part_reports_it() -> None:
    """From the start of the search on, not added to the reports."""
    now = [100.0]
    time = SearchTime(5, lambda: now[0])
    time.report(2)
    now[0] = 101.0

    assert (time.spent, time.is_over) == (2, False)
    now[0] = 105.0
    assert (time.spent, time.is_over) == (5, True)
