"""Moments, windows and selectors, as objects write them."""

from datetime import datetime
from typing import Any

import pytest

from promises.moments import duration_s, is_open, opens, seconds
from promises.selectors import selects


@pytest.mark.parametrize(
    ("text", "expected"), [("10m", 600.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("300ms", 0.3), ("0", 0.0)]
)
def test_durations(text: str, expected: float) -> None:
    """As Go writes them."""
    assert duration_s(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * *", True),
        ("30 8 15 1 5", True),
        ("29,30 * * * *", True),
        ("31 * * * *", False),
        ("* 9 * * *", False),
        ("* * 14 * *", False),
        ("* * * 2 *", False),
        ("* * * * 4", False),
        ("* * * jan fri", True),
        ("* * * JAN FRI", True),
        ("*/15 * * * *", True),
        ("*/20 * * * *", False),
        ("0-30 * * * *", True),
        ("0-29 * * * *", False),
        ("30-59 * * * *", True),
        ("31-59 * * * *", False),
        ("10/20 * * * *", True),
        ("3-59/9 * * * *", True),
        ("3-59/11 * * * *", False),
        ("10/30 * * * *", False),
        ("10-20/10 * * * *", False),
        ("* * * * mon-fri", True),
        ("* * * * sat,sun", False),
    ],
)
def test_cron(cron: str, expected: bool) -> None:
    """Friday, 2027-01-15 08:30."""
    assert opens(cron, datetime.fromisoformat("2027-01-15T08:30:00+00:00")) is expected


@pytest.mark.parametrize(
    ("cron", "expected"), [("* * * * 0", True), ("* * * * 7", True), ("* * * * 1", False)]
)
def test_sunday_has_two_numbers(cron: str, expected: bool) -> None:
    """2027-01-17 is one; no other field knows a 7 for a 0."""
    assert opens(cron, datetime.fromisoformat("2027-01-17T00:00:00+00:00")) is expected
    assert not opens("7 * * * *", datetime.fromisoformat("2027-01-17T00:00:00+00:00"))


@pytest.mark.parametrize(
    ("moment", "zone", "expected"),
    [
        ("2027-01-15T07:59:59Z", None, False),
        ("2027-01-15T08:00:00Z", None, True),
        ("2027-01-15T08:59:59Z", None, True),
        ("2027-01-15T09:00:00Z", None, False),
        ("2027-01-15T07:00:00Z", "Europe/Berlin", True),
    ],
)
def test_windows(moment: str, zone: str | None, expected: bool) -> None:
    """From eight, for an hour."""
    assert is_open("0 8 * * *", "1h", zone, seconds(moment)) is expected


def condition(operator: str, *values: str, key: str = "app") -> dict[str, Any]:
    """A selector of one condition."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, True),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchLabels": {"app": "web", "tier": "x"}}, False),
        (condition("In", "web", "db"), True),
        (condition("In", "db"), False),
        (condition("NotIn", "db"), True),
        (condition("NotIn", "web"), False),
        (condition("NotIn", "web", key="tier"), True),
        (condition("Exists"), True),
        (condition("Exists", key="tier"), False),
        (condition("DoesNotExist", key="tier"), True),
        (condition("DoesNotExist"), False),
        ({"matchLabels": {"app": "web"}, **condition("Exists", key="tier")}, False),
    ],
)
def test_selectors(selector: dict[str, Any] | None, expected: bool) -> None:
    """All of it must match."""
    assert selects(selector, {"app": "web"}) is expected


def test_what_is_no_operator_is_an_error() -> None:
    """It is not taken for one that matches."""
    with pytest.raises(ValueError, match="no operator: Gt"):
        selects(condition("Gt"), None)
