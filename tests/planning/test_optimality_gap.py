"""The gap of an optimal plan is its distance from the bound, as a share of its value."""

import pytest

from plimsoll.planning.moves import Objective, Optimisation


@pytest.mark.parametrize(
    ("value", "bound", "gap"), [(4.0, 3.0, 0.25), (-4.0, -5.0, 0.25), (3.0, 3.0, 0.0), (3.0, 3.5, 0.0)]
)
def test_the_gap_is_the_distance_from_the_bound(value: float, bound: float, gap: float) -> None:
    """None below zero, where the bound is off by a rounding error."""
    found = Optimisation(Objective.FEWEST_VIOLATIONS, 9.0, value, bound, 9.0, 1, 1.0)

    assert found.gap == gap
