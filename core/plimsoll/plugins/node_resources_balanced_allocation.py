"""NodeResourcesBalancedAllocation: favour nodes whose use of resources the pod makes more even.

Formula, per node n over the counted resources r (allocatable, and requested by the pod if scalar)::

    fraction[n, r] = min(1, taken[n, r] / allocatable[n, r])
    std[n]         = |f0 - f1| / 2 of two resources; the standard deviation of more; 0 of one
    balance[n]     = int((1 - std[n]) * 100)
    score[n]       = 50 + (50 + balance with the pod - balance without it) // 2

Units: milli-CPU, bytes and counts in; points out, int64, 50..100, higher is better; 75 is no change.
Edges: a pod that requests none of the resources is skipped; no minimum requests of containers are assumed.
Source: kube-scheduler v1.36, ``noderesources/balanced_allocation.go``.
Differs: not at all; IEEE doubles, and truncation where it truncates.
"""

from typing import ClassVar, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from pydantic import Field, field_validator

from plimsoll import framework as fwk
from plimsoll.framework.columns import EXACT_AMOUNT, columns_of, is_scalar
from plimsoll.framework.resource_rules import BalanceRule

#: Maximum number of nodes whose balances with and without the pod are computed in one array.
FEW = 64

FloatArray: TypeAlias = NDArray[np.float64]


class BalancedResource(fwk.PluginArgs):
    """A resource to use evenly."""

    name: str = Field(description="Name of the resource, such as cpu.")
    weight: Literal[1] = Field(default=1, description="All resources weigh the same.")


DEFAULT_RESOURCES = (BalancedResource(name="cpu"), BalancedResource(name="memory"))


class NodeResourcesBalancedAllocationArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    resources: tuple[BalancedResource, ...] = Field(
        default=DEFAULT_RESOURCES, description="The resources that are compared; cpu and memory if none."
    )

    @field_validator("resources")
    @classmethod
    def _distinct(cls, resources: tuple[BalancedResource, ...]) -> tuple[BalancedResource, ...]:
        if len({each.name for each in resources}) < len(resources):
            raise ValueError("a resource is named twice; name each once")
        return resources or DEFAULT_RESOURCES


class _Compared(Struct, frozen=True, eq=False):
    """Input of the score for one template: K axes of R, and the pod's requests, shape (K, 1)."""

    template: fwk.PodTemplate
    resources: tuple[str, ...]
    axes: tuple[int, ...]
    columns: slice | list[int]
    amounts: fwk.IntArray

    def without_pod(self, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """150 minus the balance without the pod, shape (N,): equal for all pods compared on these axes."""
        if len(snapshot) == 1 and len(self.axes) == 2:
            return self.without_pod_on_one(snapshot)
        return 150 - self.balance(snapshot.requested.T[self.columns], snapshot)

    def without_pod_on_one(self, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The same for the one node on which a pod was placed, in Python's doubles."""
        capacity = snapshot.capacity(self.axes)
        taken = snapshot.requested.T[self.columns][:, 0]
        one, other = (min(each, 1.0) for each in (taken / capacity.doubles[:, 0]).tolist())
        counts = capacity.counted is None or bool(capacity.counted.all())
        deviation = abs(one - other) * 0.5 if counts else 0.0
        return np.array([150 - int((1 - deviation) * fwk.MAX_SCORE)], dtype=np.int64)

    def gain(self, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The points of a few nodes, shape (N,): computes both balances in one array."""
        capacity = snapshot.capacity(self.axes)
        taken = snapshot.requested.T[self.columns]
        both = np.empty((len(self.axes), 2, len(snapshot)), dtype=np.float64)
        both[:, 0] = taken
        both[:, 1] = taken + self.amounts
        both /= capacity.doubles[:, None]
        counted = None if capacity.counted is None else capacity.counted[:, None].repeat(2, axis=1)
        balance = _balance(both, counted)
        points: fwk.IntArray = balance[1] - balance[0]
        points += 150
        points >>= 1
        return points

    def balance(self, taken: fwk.IntArray, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The evenness of each node with these amounts taken, shape (K, N) to (N,), 0..100."""
        capacity = snapshot.capacity(self.axes)
        fractions = snapshot.buffer("fractions", len(self.axes), np.float64)
        np.divide(taken, capacity.doubles, out=fractions)
        return _balance(fractions, capacity.counted)


class NodeResourcesBalancedAllocation(fwk.PreScorePlugin, fwk.ScorePlugin):
    """Favour nodes whose use the pod balances."""

    name: ClassVar = "NodeResourcesBalancedAllocation"
    args_model: ClassVar = NodeResourcesBalancedAllocationArgs
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.ROW, only_requests=True)

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._names = tuple(each.name for each in args.resources)

    def pre_score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Skip a pod that requests none of the resources."""
        return fwk.SUCCESS if any(pod.template.requests.get(name) for name in self._names) else fwk.SKIP

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Points per node, shape (N,)."""
        compared = self._compared(state, pod, snapshot)
        if not len(compared.amounts):
            return fwk.all_feasible(snapshot) + 75
        if len(snapshot) <= FEW:
            return compared.gain(snapshot)
        taken = snapshot.buffer("taken", len(compared.axes), np.int64)
        np.add(snapshot.requested.T[compared.columns], compared.amounts, out=taken)
        points = compared.balance(taken, snapshot)
        # One sum for the whole formula; a right shift divides, and rounds down as // does.
        points += snapshot.kept(("150 - balance", compared.axes), compared.without_pod)
        points >>= 1
        return points

    def score_rule(
        self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot
    ) -> BalanceRule | None:
        """Score as numbers, for two resources that every node has, unless amounts are extreme."""
        axes = self._axes(pod, snapshot)
        if len(axes) != 2:
            return None
        (first, one), (second, other) = axes
        capacity = snapshot.capacity((first, second))
        if capacity.counted is not None or not capacity.is_exact or max(one, other) >= EXACT_AMOUNT:
            return None
        return BalanceRule(((first, one), (second, other)))

    def _axes(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> list[tuple[int, int]]:
        """The resources that count for this pod: axis, and requested amount."""
        requests = pod.template.requests
        axes = []
        for name in self._names:
            axis, amount = snapshot.axis_of(name), requests.get(name, 0)
            if axis is not None and name != "pods" and (amount != 0 or not is_scalar(name)):
                axes.append((axis, amount))
        return axes

    def _compared(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> _Compared:
        """The resources that count for this pod, determined once per template."""
        known = state.find(_Compared)
        if known is not None and known.template is pod.template and known.resources is snapshot.resources:
            return known
        found = self._axes(pod, snapshot)
        axes = tuple([axis for axis, _ in found])
        compared = _Compared(
            template=pod.template,
            resources=snapshot.resources,
            axes=axes,
            columns=columns_of(axes),
            amounts=np.array([[amount] for _, amount in found], dtype=np.int64).reshape(-1, 1),
        )
        state.write(compared)
        return compared


def _balance(fractions: FloatArray, counted: fwk.BoolArray | None) -> fwk.IntArray:
    """The evenness of each node's fractions, (K, ...) to (...), 0..100; ``counted`` marks existing resources.

    Overwrites the fractions.
    """
    np.minimum(fractions, 1.0, out=fractions)
    if len(fractions) == 2:
        deviation: FloatArray = fractions[0]
        deviation -= fractions[1]
        np.abs(deviation, out=deviation)
        deviation *= 0.5
        if counted is not None:
            deviation *= counted.all(axis=0)
    else:
        counted = np.ones(fractions.shape, dtype=np.bool_) if counted is None else counted
        deviation = _deviation(fractions, counted)
    np.subtract(1, deviation, out=deviation)
    deviation *= fwk.MAX_SCORE
    return deviation.astype(np.int64)


def _deviation(fractions: FloatArray, counted: fwk.BoolArray) -> FloatArray:
    """The standard deviation of each column's counted fractions, shape (K, ...) to (...).

    For two fractions it is half the difference, which is exact; the square root would not be.
    """
    count = counted.sum(axis=0)
    fractions = np.where(counted, fractions, 0.0)
    # Added in the order of resources, as upstream does, because the order decides the last bit.
    mean = sum(fractions) / np.maximum(count, 1)
    squares = np.where(counted, (fractions - mean) ** 2, 0.0)
    deviation = np.sqrt(sum(squares) / np.maximum(count, 1))
    highest = np.where(counted, fractions, -np.inf).max(axis=0)
    lowest = np.where(counted, fractions, np.inf).min(axis=0)
    two: FloatArray = np.where(count > 2, deviation, 0.0)
    two[count == 2] = (highest - lowest)[count == 2] / 2
    return two
