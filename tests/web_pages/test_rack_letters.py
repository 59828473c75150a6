"""Groups in the drawing of racks have letters, as far as there are any."""

from string import ascii_uppercase

from plimsoll.web_pages.rack_bars import letter_of


def test_the_largest_groups_have_the_letters_in_their_order() -> None:
    """One after Z has none."""
    assert [letter_of(rank) for rank in range(28)] == [*ascii_uppercase, "", ""]
