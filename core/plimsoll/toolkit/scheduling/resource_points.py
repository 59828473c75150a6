"""Arithmetic of NodeResourcesFit's scoring strategies, in integers as in kube-scheduler, and their args.

Axis letters: N nodes, K resources.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from plimsoll.framework import MAX_SCORE, IntArray, PluginArgs

EXACT = 2**53
"""Every integer up to here is a double."""

ONE_EACH = (1, 1)


def weighted(columns: NDArray[Any], weights: Sequence[int]) -> NDArray[Any]:
    """The weighted sum of K columns of integers or doubles, (N, K) to (N,)."""
    first, *others = (
        columns[:, position] if weight == 1 else columns[:, position] * np.int64(weight)
        for position, weight in enumerate(weights)
    )
    return sum(others, first)


def least_allocated(
    room: IntArray, weights: Sequence[int], capacity: NDArray[np.float64], points: NDArray[np.float64]
) -> IntArray:
    """The default strategy in doubles, several times as fast as in integers.

    Exact for capacities below 2**46: 100 times such a capacity is a double, and if the quotient of two
    integers is below an integer, so is the correctly rounded quotient.

    Args:
        room: The remaining amounts with the pod, shape (K, N), at most the capacity; overwritten.
        weights: The weights of the K resources.
        capacity: Shape (K, N), positive.
        points: Working memory, shape (K, N).
    """
    np.maximum(room, 0, out=room)
    np.multiply(room, float(MAX_SCORE), out=points)
    points /= capacity
    np.floor(points, out=points)
    total: NDArray[np.float64]
    if weights == ONE_EACH:
        total = points[0]
        total += points[1]
        total *= 0.5
    else:
        total = weighted(points.T, weights) / sum(weights)
    return total.astype(np.int64)


def divided(numerator: IntArray, divisor: IntArray | int) -> IntArray:
    """The quotient truncated towards zero; products of absurd amounts wrap around and become negative."""
    if len(numerator) and numerator.min() < 0:
        numerator -= np.fmod(numerator, divisor)
    return numerator // divisor


def interpolated(shape: Sequence[tuple[int, int]]) -> IntArray:
    """A function's values at 0, 1, ... 100, shape (101,): linear between its points, constant beyond them."""
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
            # Truncated towards zero, as integers divide upstream: a falling segment is rounded up.
            values.append(ys[upper - 1] + int(rise / (xs[upper] - xs[upper - 1])))
    return np.array(values, dtype=np.int64)


class ScoredResource(PluginArgs):
    """A resource and its weight in the score."""

    name: str = Field(description="Name of the resource, such as cpu.")
    weight: Annotated[int, Field(ge=0, le=100, description="1 to 100; 0 means 1.")] = 1


class ShapePoint(PluginArgs):
    """A point of the function from utilisation to score."""

    utilization: Annotated[int, Field(ge=0, le=100, description="Percent of the node.")]
    score: Annotated[int, Field(ge=0, le=10, description="0 to 10.")]


class RequestedToCapacityRatio(PluginArgs):
    """The function from utilisation to score, linear between its points."""

    shape: Annotated[tuple[ShapePoint, ...], Field(min_length=1, description="Points by rising utilisation.")]

    @field_validator("shape")
    @classmethod
    def _ascending(cls, shape: tuple[ShapePoint, ...]) -> tuple[ShapePoint, ...]:
        utilization = [point.utilization for point in shape]
        if any(later <= earlier for earlier, later in pairwise(utilization)):
            raise ValueError("utilization must rise from point to point")
        return shape


class ScoringStrategy(PluginArgs):
    """How nodes are scored."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = Field(
        default="LeastAllocated", description="Spread, pack, or by a function of one's own."
    )
    resources: tuple[ScoredResource, ...] = Field(
        default=(ScoredResource(name="cpu"), ScoredResource(name="memory")),
        description="The resources that are scored.",
    )
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = Field(
        default=None, description="Needed with RequestedToCapacityRatio, and refused without."
    )

    @field_validator("resources")
    @classmethod
    def _some(cls, resources: tuple[ScoredResource, ...]) -> tuple[ScoredResource, ...]:
        return resources or (ScoredResource(name="cpu"), ScoredResource(name="memory"))

    @model_validator(mode="after")
    def _shape_where_it_belongs(self) -> "ScoringStrategy":
        if (self.type == "RequestedToCapacityRatio") is (self.requested_to_capacity_ratio is None):
            raise ValueError("requestedToCapacityRatio belongs to the type of that name, which requires it")
        return self
