"""Conditions: the transition time moves with the status, and only then."""

from datetime import UTC, datetime, timedelta

from plimsoll.api.schema.conditions import ACCEPTED, READY, ConditionStatus, condition, with_condition

NOON = datetime(2026, 1, 31, 12, 0, 0, 999, tzinfo=UTC)
TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE


def test_a_new_condition_comes_last() -> None:
    """The order on the wire is the order of first appearance."""
    one = with_condition((), ACCEPTED, TRUE, reason="Valid", message="All is known.", now=NOON, generation=1)
    two = with_condition(one, READY, FALSE, reason="Starting", message="Not yet.", now=NOON, generation=1)

    assert [each.type for each in two] == ["Accepted", "Ready"]
    assert two[0].last_transition_time == NOON.replace(microsecond=0)
    assert condition(two, READY) is two[1]
    assert condition(one, READY) is None


def test_a_new_message_is_no_transition() -> None:
    """Reason, message and generation change; the transition time stays while the status does."""
    before = with_condition((), READY, FALSE, reason="A", message="a", now=NOON, generation=1)
    later = NOON + timedelta(hours=1)

    (same,) = with_condition(before, READY, FALSE, reason="B", message="b", now=later, generation=2)
    (other,) = with_condition(before, READY, TRUE, reason="C", message="c", now=later, generation=2)

    assert (same.reason, same.message, same.observed_generation) == ("B", "b", 2)
    assert same.last_transition_time == before[0].last_transition_time
    assert other.last_transition_time == later.replace(microsecond=0)


def test_saying_the_same_changes_nothing() -> None:
    """Equal conditions need no write to the API server."""
    before = with_condition((), READY, TRUE, reason="A", message="a", now=NOON, generation=1)

    assert with_condition(before, READY, TRUE, reason="A", message="a", now=NOON, generation=1) == before
