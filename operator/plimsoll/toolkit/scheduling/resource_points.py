"""Points for what is left of resources, as kube-scheduler computes them in integers.

Axis letters: N nodes, K resources.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.framework import MAX_SCORE, IntArray

EXACT = 2**53
"""Every integer up to here is a double."""
EXACT_ROOM = 2**46
"""100 times any integer below is a double; and these are the integers without a bit from here on."""


def weighted(columns: NDArray[Any], weights: Sequence[int]) -> NDArray[Any]:
    """The weighted sum of K columns of integers or doubles, (N, K) to (N,)."""
    first, *others = (
        columns[:, position] if weight == 1 else columns[:, position] * np.int64(weight)
        for position, weight in enumerate(weights)
    )
    return sum(others, first)


def least_allocated(room: IntArray, weights: Sequence[int], capacity: NDArray[np.float64]) -> IntArray:
    """The default strategy in doubles, several times as quick as in integers.

    Exact for room below EXACT_ROOM: 100 times that is a double, and the correctly rounded quotient of two
    integers that are doubles reaches no integer that the true one does not.

    Args:
        room: What is left with the pod, shape (N, K), at most the capacity.
        weights: Of the K resources.
        capacity: Shape (N, K), positive.
    """
    points = room.astype(np.float64)
    points *= MAX_SCORE
    points /= capacity
    np.floor(points, out=points)
    score: IntArray = (weighted(points, weights) / sum(weights)).astype(np.int64)
    return score


def divided(numerator: IntArray, divisor: IntArray | int) -> IntArray:
    """The quotient truncated towards zero; products of absurd amounts wrap around and are negative."""
    if len(numerator) and numerator.min() < 0:
        numerator -= np.fmod(numerator, divisor)
    quotient: IntArray = numerator // divisor
    return quotient


def interpolated(shape: Sequence[tuple[int, int]]) -> IntArray:
    """A function's value at 0, 1, ... 100, shape (101,), from its points: linear between them, then flat."""
    xs, ys = zip(*shape, strict=True)
    values = []
    for u in range(101):
        if u <= xs[0]:
            values.append(ys[0])
        elif u >= xs[-1]:
            values.append(ys[-1])
        else:
            upper = next(i for i, x in enumerate(xs) if u <= x)
            rise = (ys[upper] - ys[upper - 1]) * (u - xs[upper - 1])
            # Towards zero, as integers divide upstream: a falling segment is rounded up.
            values.append(ys[upper - 1] + int(rise / (xs[upper] - xs[upper - 1])))
    return np.array(values, dtype=np.int64)
