"""The pod at which a process ends is known to the next leader."""

import pytest

from plimsoll.leadership.work_under_way import WorkUnderWay


def test_only_an_attempt_that_two_renewals_see_is_noted() -> None:
    """Short attempts are under way at most renewals, a different one each time."""
    attempts = iter(((1, "a"), (2, "b"), (2, "b"), (2, "b"), (0, "b"), (0, "b")))
    work = WorkUnderWay(lambda: next(attempts))

    assert [work.noted() for _ in range(6)] == ["", "", "b/1", "b/1", "", ""]


def test_ends_at_one_pod_are_counted_over_processes() -> None:
    """Each leader takes over what the lease said before it claimed it, and no more once it has written."""
    work = WorkUnderWay(lambda: (1, "a"))
    work.found("a/2")
    assert work.left == {"a": 2}

    assert [work.noted(), work.noted()] == ["", "a/3"]
    work.found("a/3")

    assert work.left == {"a": 2}


@pytest.mark.parametrize(("count", "left"), [("999", {"a": 999}), ("1000", {}), ("0999", {})])
def test_a_count_has_three_digits_at_most(count: str, left: dict[str, int]) -> None:
    """No process ends that often at one pod: somebody else wrote it."""
    work = WorkUnderWay()

    work.found(f"a/{count}")

    assert work.left == left


def test_a_leader_that_finished_the_attempt_leaves_nothing() -> None:
    """A candidate reads the lease while the attempt is under way, and again later."""
    work = WorkUnderWay()

    work.found("a/1")
    work.found("")

    assert work.left == {}


@pytest.mark.parametrize(
    "text", ["", "a", "a/", "a/x", "/1", "a/-1", "a/99999", "a/1.5", "\U0001d7d9/\u00b2"]
)
def test_whatever_the_annotation_says_is_survived(text: str) -> None:
    """Who may write leases may write anything there."""
    work = WorkUnderWay()

    work.found(text)

    assert work.left == {}
