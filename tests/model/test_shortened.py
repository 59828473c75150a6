"""Texts from elsewhere are cut where they are longer than allowed."""

import pytest

from plimsoll.model.shortened import shortened


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abc", "abc"), ("abcd", "abc…"), ("abcde", "abc…")])
def test_a_text_of_the_longest_length_is_shown_whole(text: str, shown: str) -> None:
    """One character more is too many."""
    assert shortened(text, 3) == shown
