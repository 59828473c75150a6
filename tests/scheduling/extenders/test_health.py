"""Tests that an extender that keeps failing is asked less often, and that its policy says so."""

from plimsoll.scheduling.extenders.health import FAILURES, PAUSE_S, SENTENCE, ExtenderHealth
from plimsoll.timing.signal import Signal


def failing(times: int = FAILURES, now: float = 0.0, sentence: str = "no answer") -> ExtenderHealth:
    health = ExtenderHealth(Signal())
    for _ in range(times):
        health.failed("s", "http://x", sentence, now)
    return health


def test_some_failures_are_forgiven() -> None:
    """Anybody may stumble."""
    health = failing(FAILURES - 1)

    assert health.obstacle("s", "http://x", 0.0) == ""
    assert health.of("s") == []


def test_failures_in_a_row_stop_the_asking_for_a_while() -> None:
    """Then one ask finds out, while the others wait no longer than before."""
    health = failing()

    assert health.obstacle("s", "http://x", PAUSE_S - 0.1) == "no answer"
    assert health.obstacle("s", "http://x", PAUSE_S) == ""
    assert health.obstacle("s", "http://x", PAUSE_S) == "no answer"
    health.succeeded("s", "http://x")
    assert health.obstacle("s", "http://x", PAUSE_S) == ""


def test_a_probe_without_an_end_stops_no_pod_permanently() -> None:
    """Its pod may have been deleted meanwhile."""
    health = failing()

    assert [health.obstacle("s", "http://x", PAUSE_S * turn) for turn in (1, 2, 3)] == ["", "", ""]


def test_an_answer_in_between_begins_a_new_count() -> None:
    """Failures count in a row only."""
    health = failing(FAILURES - 1)
    health.succeeded("s", "http://x")
    health.failed("s", "http://x", "again", 0.0)

    assert health.of("s") == []


def test_profiles_and_extenders_are_judged_apart() -> None:
    """The same URL may do well for another policy, with another CA."""
    health = failing()

    assert health.obstacle("other", "http://x", 0.0) == ""
    assert health.obstacle("s", "http://y", 0.0) == ""
    assert health.of("other") == []


def test_a_changed_policy_has_another_chance() -> None:
    """All of its extenders."""
    health = failing()
    health.forgive("s")

    assert health.of("s") == []


def test_the_sentence_names_the_extender_and_is_bounded() -> None:
    """It stands in a condition."""
    (said,) = failing(sentence="x" * 10_000).of("s")

    assert said.startswith('extender "http://x" has failed 3 times in a row: xxx')
    assert len(said) < SENTENCE + 100


def test_conditions_change_when_it_begins_and_when_it_ends() -> None:
    """Not with every failure."""
    conditions = Signal()
    health = ExtenderHealth(conditions)

    for _ in range(FAILURES + 4):
        health.failed("s", "http://x", "no answer", 0.0)
    assert conditions.count == 1
    assert health.of("s")
    health.succeeded("s", "http://x")
    health.succeeded("s", "http://x")
    assert conditions.count == 2
    assert health.of("s") == []
