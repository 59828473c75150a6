"""Ceilings: counts, shares, and no ceiling at all."""

import pytest

from plimsoll.engine.limits import Ceiling


@pytest.mark.parametrize(
    ("ceiling", "population", "most"),
    [
        (Ceiling(), 10, None),
        (Ceiling(count=3), 10, 3),
        (Ceiling(percent=25), 10, 2),
        (Ceiling(percent=1), 10, 1),
        (Ceiling(percent=0), 10, 0),
        (Ceiling(percent=100), 10, None),
    ],
)
def test_what_a_ceiling_allows(ceiling, population, most):
    """Shares are rounded down, but allow one if they allow anything."""
    assert ceiling.of(population) == most
