"""NodeResourcesFit: the node has room for what the pod requests; score by how much is left, or used.

Formula, filter: a node is refused for each resource r that the pod requests with
``pod[r] > allocatable[n, r] - requested[n, r]``, and when it holds as many pods as it may.

Formula, score, per node n over the strategy's resources r with allocatable[n, r] > 0 (scalar ones only when
the pod requests them), with q = taken[n, r] + pod[r] and c = allocatable[n, r]::

    LeastAllocated            s[r] = 0 if q > c else (c - q) * 100 // c
    MostAllocated             s[r] = min(q, c) * 100 // c
    RequestedToCapacityRatio  s[r] = shape(100 if q > c else q * 100 // c)
    score[n]                  = sum_r(weight[r] * s[r]) // sum_r(weight[r])

Units: milli-CPU, bytes and counts in; points out, int64, 0..100, higher is better.
Edges: the refusal cannot be resolved by removing pods when some request exceeds the whole node; ``shape``
interpolates and truncates towards zero; RequestedToCapacityRatio leaves scores of 0 out of the mean and
rounds it. For scoring, a container that names no cpu or memory takes 100m and 200 MiB, and pod-level
requests are ignored.
Source: kube-scheduler v1.36, ``noderesources/fit.go``, ``least_allocated.go``, ``most_allocated.go``,
``requested_to_capacity_ratio.go``.
Differs: extended resources that device classes stand for are not passed on to DynamicResources.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from plimsoll.framework import (
    MAX_SCORE,
    PODS,
    SUCCESS,
    BoolArray,
    Code,
    CycleState,
    FilterPlugin,
    IntArray,
    PluginArgs,
    PodInfo,
    PreFilterPlugin,
    Reads,
    ScorePlugin,
    Snapshot,
    Status,
    all_feasible,
    columns_of,
    is_extended,
    is_scalar,
)

TOO_MANY_PODS = "Too many pods"
NATIVE = ("cpu", "memory", "ephemeral-storage")
WITH_DEFAULTS = {"cpu": 0, "memory": 1}
"""Columns of ``Snapshot.nonzero_requested``."""
HOPELESS, PODS_FULL, FIRST_RESOURCE = 1, 2, 2
"""Codes are bits: removing pods cannot help; too many pods; then (shifted) one bit a wanted resource."""


class ScoredResource(PluginArgs):
    """A resource and its weight in the score."""

    name: str = Field(description="Such as cpu.")
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


class NodeResourcesFitArgs(PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    ignored_resources: frozenset[str] = Field(
        default=frozenset(), description="Extended resources that the filter does not look at."
    )
    ignored_resource_groups: frozenset[str] = Field(
        default=frozenset(), description="The same by the part of the name before the slash."
    )
    scoring_strategy: ScoringStrategy = Field(
        default=ScoringStrategy(), description="How nodes that have room are scored."
    )

    @field_validator("ignored_resources")
    @classmethod
    def _extended(cls, names: frozenset[str]) -> frozenset[str]:
        wrong = sorted(name for name in names if not is_extended(name))
        if wrong:
            raise ValueError(f"{wrong[0]} is no extended resource; only those (domain/name) can be ignored")
        return names

    @field_validator("ignored_resource_groups")
    @classmethod
    def _groups(cls, groups: frozenset[str]) -> frozenset[str]:
        wrong = sorted(group for group in groups if "/" in group)
        if wrong:
            raise ValueError(f"{wrong[0]} is no group: write the part before the slash only")
        return groups


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the filter looks at, in the order in which it gives reasons."""

    resources: tuple[tuple[str, int], ...]


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, ScorePlugin):
    """Refuse nodes without room, and score the others by what is requested of them."""

    name: ClassVar = "NodeResourcesFit"
    args_model: ClassVar = NodeResourcesFitArgs
    reads: ClassVar = Reads.ROW
    additive: ClassVar = True

    def __init__(self, args: NodeResourcesFitArgs) -> None:
        self._ignored = args.ignored_resources
        self._ignored_groups = args.ignored_resource_groups
        self._strategy = args.scoring_strategy
        self._weights = {each.name: each.weight or 1 for each in self._strategy.resources}
        ratio = self._strategy.requested_to_capacity_ratio
        self._shape = None if ratio is None else _interpolated(ratio.shape)

    # -- filter --------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status:
        """List what is wanted."""
        requests = pod.template.requests
        scalar = sorted(name for name in requests if name not in NATIVE and not self._is_ignored(name))
        wanted = ((name, requests.get(name, 0)) for name in (*NATIVE, *scalar))
        state.write(_Wanted(tuple((name, amount) for name, amount in wanted if amount > 0)))
        return SUCCESS

    def _is_ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """The bits of all that is short, shape (N,)."""
        allocatable, requested = snapshot.allocatable, snapshot.requested
        codes = (requested[:, PODS] >= allocatable[:, PODS]) * np.int64(PODS_FULL)
        for position, (name, amount) in enumerate(state.read(_Wanted).resources, FIRST_RESOURCE):
            axis = snapshot.axis_of(name)
            if axis is None:
                codes |= (1 << position) | HOPELESS
                continue
            most = allocatable[:, axis]
            short = amount > most - requested[:, axis]
            if not short.any():
                continue
            codes |= short * np.int64(1 << position) | (short & (amount > most)) * np.int64(HOPELESS)
        return codes

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """All that is short on such a node."""
        reasons = [TOO_MANY_PODS] if code & PODS_FULL else []
        for position, (name, _) in enumerate(state.read(_Wanted).resources, FIRST_RESOURCE):
            if code & (1 << position):
                reasons.append(f"Insufficient {name}")
        return Status(Code.UNRESOLVABLE if code & HOPELESS else Code.UNSCHEDULABLE, tuple(reasons))

    # -- score ---------------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Points per node, shape (N,)."""
        names, axes = self._scored(pod, snapshot)
        if not names:
            return all_feasible(snapshot)
        requests = pod.template.score_requests
        amounts = np.array([requests.get(name, 0) for name in names], dtype=np.int64)
        columns = columns_of(axes)
        capacity = snapshot.allocatable[:, columns]
        if all(name in WITH_DEFAULTS for name in names):
            taken = snapshot.nonzero_requested[:, columns_of([WITH_DEFAULTS[name] for name in names])]
        else:
            taken = snapshot.requested[:, columns].copy()
            for position, name in enumerate(names):
                if name in WITH_DEFAULTS:
                    taken[:, position] = snapshot.nonzero_requested[:, WITH_DEFAULTS[name]]
        points = self._points(taken + amounts, capacity)
        counted = capacity > 0 if self._shape is None else points > 0
        weights = [self._weights[name] for name in names]
        total = _weighted(points, weights)  # 0 where it is not counted
        sums = sum(weights) if counted.all() else _weighted(counted, weights)
        if self._shape is None:
            return _divided(total, np.maximum(sums, 1))
        rounded: IntArray = (2 * total + sums) // np.maximum(2 * sums, 1)
        return rounded

    def _scored(self, pod: PodInfo, snapshot: Snapshot) -> tuple[list[str], list[int]]:
        """The resources that count for this pod, with their axes."""
        names, axes = [], []
        for name in self._weights:
            axis = snapshot.axis_of(name)
            wanted = name in NATIVE or (pod.template.score_requests.get(name, 0) != 0 and is_scalar(name))
            if axis is not None and wanted:
                names.append(name)
                axes.append(axis)
        return names, axes

    def _points(self, taken: IntArray, capacity: IntArray) -> IntArray:
        """Points of K resources, shape (N, K); 0 where the node has none of it."""
        some = np.maximum(capacity, 1)
        points: IntArray
        if self._strategy.type == "LeastAllocated":
            points = _divided(np.maximum(capacity - taken, 0) * MAX_SCORE, some)
        elif self._strategy.type == "MostAllocated":
            points = _divided(np.minimum(taken, capacity) * MAX_SCORE, some)
        else:
            utilization = _divided(np.minimum(taken, capacity) * 100, some)
            utilization = np.clip(np.where(taken > capacity, 100, utilization), 0, 100)
            points = np.where(capacity > 0, np.asarray(self._shape)[utilization], 0)
        return points


def _weighted(columns: IntArray | BoolArray, weights: Sequence[int]) -> IntArray:
    """The weighted sum of K columns, (N, K) to (N,)."""
    total: IntArray = columns[:, 0] * np.int64(weights[0])
    for position in range(1, len(weights)):
        total += columns[:, position] * np.int64(weights[position])
    return total


def _divided(numerator: IntArray, divisor: IntArray | np.int64) -> IntArray:
    """The quotient truncated towards zero; products of absurd amounts wrap around and are negative."""
    if len(numerator) and numerator.min() < 0:
        numerator -= np.fmod(numerator, divisor)
    quotient: IntArray = numerator // divisor
    return quotient


def _interpolated(shape: tuple[ShapePoint, ...]) -> IntArray:
    """The function's value at 0, 1, ... 100 percent, shape (101,), in points of 0..100."""
    xs = [point.utilization for point in shape]
    ys = [point.score * 10 for point in shape]
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
