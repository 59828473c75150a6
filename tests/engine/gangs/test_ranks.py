"""The rank of a member by its name."""

import pytest

from plimsoll.engine.gangs.ranks import number_of


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
