"""The rank of a member by its name."""

import pytest

from plimsoll.engine.gangs.ranks import _index, number_of


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("train-3", 3),
        ("train-worker-12", 12),
        ("train-worker7", 7),
        ("train-3-x7k2p", 3),
        ("train-5sgt2", 0),
        ("train-n4w22", 0),
        ("train-node1", 1),
        ("train", 0),
    ],
)
def test_the_number_of_a_name_is_no_part_of_what_was_generated(name: str, number: int) -> None:
    assert number_of(name) == number


@pytest.mark.parametrize(
    ("text", "index"), [("7", 7), ("999999999", 999_999_999), ("1000000000", None), ("", None), ("-1", None)]
)
def test_an_index_has_nine_digits_at_most(text: str, index: int | None) -> None:
    """A label may say anything; the first one that is an index counts."""
    assert _index({"a": text}, ("a",)) == index
    assert _index({"a": text, "b": "3"}, ("a", "b")) == (3 if index is None else index)
