"""The HTTP status of each outcome of a write."""

import pytest

from plimsoll.ports.writes import WriteOutcome, WriteResult

STATUSES = {
    WriteOutcome.GONE: 404,
    WriteOutcome.CONFLICT: 409,
    WriteOutcome.BUSY: 429,
    WriteOutcome.DEFERRED: 429,
    WriteOutcome.REFUSED: 403,
}


@pytest.mark.parametrize("outcome", WriteOutcome)
def test_an_outcome_has_the_status_of_its_answer_or_none(outcome: WriteOutcome) -> None:
    """What was done, not sent or not answered has none."""
    assert WriteResult(outcome).status == STATUSES.get(outcome, 0)


def test_a_write_that_was_sent_and_did_not_happen_is_a_failure() -> None:
    """As far as is known; a standby sends none."""
    well = {each for each in WriteOutcome if not WriteResult(each).is_failure}

    assert well == {WriteOutcome.DONE, WriteOutcome.FENCED}
    assert {each for each in WriteOutcome if WriteResult(each).is_done} == {WriteOutcome.DONE}
