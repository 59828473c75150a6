"""Small values on the wire: ceilings as number or share, durations as Go writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.schema.fields import ceiling, duration_s


@pytest.mark.parametrize(
    ("amount", "of", "expected"),
    [
        (5, 100, 5),
        (0, 100, 0),
        (5, 2, 5),
        ("10%", 100, 10),
        ("10%", 19, 1),
        ("10%", 5, 1),
        ("0%", 100, 0),
        ("100%", 7, 7),
        ("33%", 10, 3),
    ],
)
def test_a_share_is_rounded_down_but_never_to_nothing(amount: int | str, of: int, expected: int) -> None:
    """10 % of five pods allow one; 0 % allow none."""
    assert ceiling(amount, of) == expected


@given(st.integers(1, 100), st.integers(1, 10**6))
def test_a_share_never_exceeds_the_whole(percent: int, of: int) -> None:
    """And grows with it."""
    assert 1 <= ceiling(f"{percent}%", of) <= of
    assert ceiling(f"{percent}%", of) <= ceiling(f"{percent}%", of + 1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("1h30m", 5400),
        ("0s", 0),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("1h1m1s", 3661),
        ("10us", 1e-5),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    """Terms add up; fractions are exact before they become a float."""
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "1d", "-5m", "5 m", "m", "1h-30m", "10m\n"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """The sentence says how to write one."""
    with pytest.raises(ValueError, match="is no duration"):
        duration_s(text)
