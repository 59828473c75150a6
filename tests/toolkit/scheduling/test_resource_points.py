"""The points of a shape, against upstream's whole numbers."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.toolkit.scheduling.resource_points import interpolated

SHAPES = st.dictionaries(st.integers(0, 100), st.integers(0, 100), min_size=2, max_size=5)


@given(SHAPES)
@example({0: 0, 50: 100, 100: 30})
@example({10: 7, 13: 0, 90: 100, 97: 1})
def test_between_two_points_the_line_is_followed_in_whole_numbers(points: dict[int, int]) -> None:
    """``helper.BuildBrokenLinearFunction`` of Kubernetes: Go divides towards zero."""
    shape = sorted(points.items())
    found = interpolated(shape).tolist()

    assert [found[max(0, shape[0][0] - 1)], found[min(100, shape[-1][0] + 1)]] == [shape[0][1], shape[-1][1]]
    for (x, y), (end, last) in pairwise(shape):
        for u in range(x, end + 1):
            steps = abs(last - y) * (u - x) // (end - x)
            assert found[u] == (y + steps if last > y else y - steps)
