"""NodeResourcesBalancedAllocation: favour the nodes whose resources the pod would use more evenly.

Formula, per node n over the counted resources r (allocatable, and requested by the pod if scalar)::

    fraction[n, r] = min(1, taken[n, r] / allocatable[n, r])
    std[n]         = |f0 - f1| / 2 of two resources; the standard deviation of more; 0 of one
    balance[n]     = int((1 - std[n]) * 100)
    score[n]       = 50 + (50 + balance with the pod - balance without it) // 2

Units: milli-CPU, bytes and counts in; points out, int64, 50..100, higher is better; 75 is no change.
Edges: a pod that requests none of the resources is skipped; what a container takes at least is not assumed.
Source: kube-scheduler v1.36, ``noderesources/balanced_allocation.go``.
Differs: not at all; IEEE doubles, and truncation where it truncates.
"""

from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from plimsoll.framework import (
    MAX_SCORE,
    SKIP,
    SUCCESS,
    BoolArray,
    CycleState,
    IntArray,
    PluginArgs,
    PodInfo,
    PreScorePlugin,
    Reads,
    ScorePlugin,
    Snapshot,
    Status,
    all_feasible,
    columns_of,
    is_scalar,
)

FloatArray: TypeAlias = NDArray[np.float64]


class BalancedResource(PluginArgs):
    """A resource that is to be used evenly."""

    name: str = Field(description="Such as cpu.")
    weight: Literal[1] = Field(default=1, description="All resources weigh the same.")


class NodeResourcesBalancedAllocationArgs(PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    resources: tuple[BalancedResource, ...] = Field(
        default=(BalancedResource(name="cpu"), BalancedResource(name="memory")),
        min_length=1,
        description="The resources that are compared.",
    )

    @field_validator("resources")
    @classmethod
    def _distinct(cls, resources: tuple[BalancedResource, ...]) -> tuple[BalancedResource, ...]:
        if len({each.name for each in resources}) < len(resources):
            raise ValueError("a resource is named twice; name each once")
        return resources


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Favour nodes that the pod brings into balance."""

    name: ClassVar = "NodeResourcesBalancedAllocation"
    args_model: ClassVar = NodeResourcesBalancedAllocationArgs
    reads: ClassVar = Reads.ROW

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._names = tuple(each.name for each in args.resources)

    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Skip a pod that requests none of the resources."""
        return SUCCESS if any(pod.template.requests.get(name) for name in self._names) else SKIP

    def score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Points per node, shape (N,)."""
        axes, amounts = [], []
        for name in self._names:
            axis, amount = snapshot.axis_of(name), pod.template.requests.get(name, 0)
            if axis is None or name == "pods" or (amount == 0 and is_scalar(name)):
                continue
            axes.append(axis)
            amounts.append(amount)
        if not axes:
            return all_feasible(snapshot) + 75
        columns = columns_of(axes)
        capacity = snapshot.allocatable[:, columns]
        taken = snapshot.requested[:, columns]
        counted = capacity != 0
        some = np.maximum(capacity, 1)
        with_pod = _balance((taken + np.array(amounts, dtype=np.int64)) / some, counted)
        points: IntArray = 50 + (50 + with_pod - _balance(taken / some, counted)) // 2
        return points


def _balance(fractions: FloatArray, counted: BoolArray) -> IntArray:
    """How even the fractions of each node are, 0..100, shape (N,).

    Args:
        fractions: Taken of allocatable, shape (N, K); above 1 counts as 1.
        counted: Where a node has the resource at all, shape (N, K).
    """
    fractions = np.minimum(fractions, 1.0)
    if fractions.shape[1] == 2:
        deviation = np.abs(fractions[:, 0] - fractions[:, 1]) / 2
        if not counted.all():
            deviation *= counted.all(axis=1)
    else:
        deviation = _deviation(fractions.T, counted.T)
    balance: IntArray = ((1 - deviation) * MAX_SCORE).astype(np.int64)
    return balance


def _deviation(fractions: FloatArray, counted: BoolArray) -> FloatArray:
    """The standard deviation of what is counted of each column, shape (K, N) to (N,).

    Of two it is half the difference: exact, where the square root would not be.
    """
    count = counted.sum(axis=0)
    fractions = np.where(counted, fractions, 0.0)
    # Added up one resource after the other, as upstream does: the order decides the last bit.
    mean = sum(fractions) / np.maximum(count, 1)
    squares = np.where(counted, (fractions - mean) ** 2, 0.0)
    deviation = np.sqrt(sum(squares) / np.maximum(count, 1))
    highest = np.where(counted, fractions, -np.inf).max(axis=0)
    lowest = np.where(counted, fractions, np.inf).min(axis=0)
    two: FloatArray = np.where(count > 2, deviation, 0.0)
    two[count == 2] = (highest - lowest)[count == 2] / 2
    return two
