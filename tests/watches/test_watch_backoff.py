"""Pauses of a watch grow while failures are in a row, and start again once the server has answered."""

from __future__ import annotations

from plimsoll.watches.watch_backoff import FIRST_S, FORBIDDEN_LAST_S, LAST_S, WatchBackoff


def pauses(*failures: tuple[int, bool]) -> list[float]:
    """The pauses after failures, each with its status and whether something was answered before."""
    backoff = WatchBackoff()
    return [backoff.pause_s(status, 0.5, answered=answered) for status, answered in failures]


def test_pauses_double_while_the_server_is_away() -> None:
    """Up to the last one."""
    assert pauses((0, False), (0, False), (0, False)) == [0.2, 0.4, 0.8]
    assert pauses(*[(0, False)] * 20)[-1] == LAST_S


def test_a_server_that_answers_again_ends_the_row() -> None:
    """One 429 after an outage means a short pause: a watch of pods must not wait half a minute then."""
    assert pauses(*[(0, False)] * 10, (429, True), (429, False))[-2:] == [FIRST_S, 2 * FIRST_S]


def test_refusals_stay_in_a_row_although_lists_succeed() -> None:
    """A list before each refused watch must not make a loop of lists."""
    assert pauses((500, True), (500, True), (500, True)) == [0.2, 0.4, 0.8]


def test_progress_ends_the_row() -> None:
    """A watch was open for a while."""
    backoff = WatchBackoff()
    for _ in range(5):
        backoff.pause_s(500, 0.5, answered=False)
    backoff.progressed()

    assert backoff.pause_s(500, 0.0, answered=False) == FIRST_S / 2


def test_a_right_that_comes_back_is_used_soon() -> None:
    """A leader that may not read nodes sees none change meanwhile."""
    assert pauses(*[(403, True)] * 20)[-1] == FORBIDDEN_LAST_S
    assert pauses(*[(403, True)] * 20, (500, True))[-1] == LAST_S
