"""Small values on the wire: durations as Go writes them."""

import pytest

from plimsoll.api.schema.fields import duration_s


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
