"""The check of commit messages."""

import pytest

from commit_message import problems_of


def test_a_subject_and_a_reason_pass() -> None:
    """Comments that git adds do not count."""
    assert (
        list(problems_of("Cache filter results per template\n\nThe filters of one shape agree.\n# x\n")) == []
    )
    assert list(problems_of("Merge branch P\n")) == []


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        pytest.param("A" * 73 + "\n\nReason.\n", "the subject has 73 characters", id="long"),
        pytest.param("Cache results.\n\nReason.\n", "ends with a period", id="period"),
        pytest.param("cache results\n\nReason.\n", "capital", id="lower-case"),
        pytest.param("Cache results\nReason.\n", "line after the subject", id="no-empty-line"),
        pytest.param("Cache results\n", "give the reason", id="no-body"),
        pytest.param("# only comments\n", "empty", id="empty"),
    ],
)
def test_a_bad_message_is_refused(message: str, problem: str) -> None:
    """Each rule by itself."""
    assert any(problem in found for found in problems_of(message))
