"""The numbers of indexed Jobs, as their status writes them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.controllers.workloads import job_indexes


@given(st.sets(st.integers(0, 200)))
def test_what_is_written_is_read_again(numbers: Any) -> None:
    """Writing and reading are inverse."""
    assert job_indexes.parsed(job_indexes.written(numbers)) == numbers


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((3,), "3"), ((0, 1, 2, 5), "0-2,5"), ((1, 3, 4), "1,3-4")]
)
def test_runs_are_written_as_ranges(numbers: Any, text: Any) -> None:
    """Neighbours become a range, as upstream writes them."""
    assert job_indexes.written(numbers) == text


def test_the_lowest_free_numbers_are_used() -> None:
    """Numbers that are completed, or have an active pod, are not given again."""
    job = {"spec": {"completions": 6}}
    busy = {
        "metadata": {"annotations": {job_indexes.INDEX: "2"}},
        "status": {"phase": "Running"},
    }

    assert job_indexes.free(job, "0,4", [busy], 5) == [1, 3, 5]
