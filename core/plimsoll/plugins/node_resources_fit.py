"""NodeResourcesFit: require room for the pod's requests; score by the free or the used share.

Formula, filter: a node is refused for each resource r that the pod requests with
``pod[r] > allocatable[n, r] - requested[n, r]``, and if it has its maximum number of pods.

Formula, score, per node n over the strategy's resources r with allocatable[n, r] > 0 (scalar ones only if
the pod requests them), with q = taken[n, r] + pod[r] and c = allocatable[n, r]::

    LeastAllocated            s[r] = 0 if q > c else (c - q) * 100 // c
    MostAllocated             s[r] = min(q, c) * 100 // c
    RequestedToCapacityRatio  s[r] = shape(100 if q > c else q * 100 // c)
    score[n]                  = sum_r(weight[r] * s[r]) // sum_r(weight[r])

Units: milli-CPU, bytes and counts in; points out, int64, 0..100, higher is better.
Edges: removing pods cannot resolve the refusal if a request exceeds the whole node. ``shape`` interpolates
and truncates towards zero. If a node has none of an extended resource that a device class serves,
DynamicResources finds devices. RequestedToCapacityRatio leaves scores of 0 out of the mean and rounds it. For
scoring, a container without cpu or memory requests counts as 100m and 200 MiB, and pod-level requests are
ignored.
Source: kube-scheduler v1.36, ``noderesources/fit.go``, ``least_allocated.go``, ``most_allocated.go``,
``requested_to_capacity_ratio.go``.
Differs: an amount beyond 64 bits counts as it does upstream (``1e1002`` as 0, others by their lowest 64
bits), but as 0 where upstream's value is negative. Sums over a node's pods are clamped to the largest amount
instead of wrapping.

Longer than 400 lines because filter and scores share the resources that a pod requests.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from msgspec import Struct
from pydantic import Field, field_validator

from plimsoll import framework as fwk
from plimsoll.devices.book import is_served_by_devices
from plimsoll.devices.extended_resources import classes_by_resource
from plimsoll.framework.columns import PODS, Capacity, allocatable_of, columns_of, is_extended, is_scalar
from plimsoll.framework.resource_rules import AllocationRule, RoomRule, ScoredRoom, WantedRoom
from plimsoll.framework.selectors import is_label_key
from plimsoll.toolkit.scheduling.resource_points import (
    EXACT,
    ScoringStrategy,
    divided,
    interpolated,
    least_allocated,
    weighted,
)

TOO_MANY_PODS = "Too many pods"
NATIVE = ("cpu", "memory", "ephemeral-storage")
NATIVE_NAMES = frozenset(NATIVE)
WITH_DEFAULTS = {"cpu": 0, "memory": 1}
"""Columns of ``Snapshot.nonzero_requested``."""
FEW = 64
"""Up to this number of nodes, all resources are compared in one array."""
FIXED = PODS + 1
"""Resources that every cluster has: cpu, memory, ephemeral-storage, pods."""
ANY = -(2**63)
"""Less than the free amount of any node."""
HOPELESS, PODS_FULL, FIRST_RESOURCE = 1, 2, 2
"""Codes are bits: removing pods cannot help; too many pods; then (shifted) one bit per requested resource."""
OTHERS = 61
"""The bit that all further resources of a pod share."""
Requested: TypeAlias = tuple[tuple[int, str, int], ...]
"""Bit, name and amount of each resource of a pod."""


class NodeResourcesFitArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    ignored_resources: frozenset[str] = Field(
        default=frozenset(),
        description="Extended resources that the filter does not look at.",
    )
    ignored_resource_groups: frozenset[str] = Field(
        default=frozenset(),
        description="Extended resources that are ignored, by the part of the name before the slash.",
    )
    scoring_strategy: ScoringStrategy = Field(
        default=ScoringStrategy.model_construct(), description="How nodes that have room are scored."
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
        wrong = sorted(group for group in groups if "/" in group or not is_label_key(group))
        if wrong:
            raise ValueError(f'"{wrong[0]}" is no group: write the part before the slash only')
        return groups


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Input of the filter.

    Attributes:
        by_bit: What is requested, in the order of the reasons.
        scalar: The same of the non-native resources.
    """

    by_bit: Requested
    scalar: Requested

    @cached_property
    def least(self) -> fwk.IntArray:
        """Minimum free amount of each fixed resource, shape (4, 1); ANY for unrequested resources."""
        requests = {name: amount for _, name, amount in self.by_bit}
        least = [*(requests.get(name, ANY) for name in NATIVE), 1]
        return np.array(least, dtype=np.int64)[:, None]


class _Scored(Struct, frozen=True, eq=False):
    """Input of the score, for one template and the present axes.

    Attributes:
        columns: Selects the K counted axes from the R axis.
        defaults: Position among these, and column of ``nonzero_requested``, of resources with a minimum.
        default_columns: These columns, if all K have a minimum.
        amounts: Shape (K,): the pod's requests.
        by_axis: The same, shape (K, 1).
        is_modest: Whether the amounts are exact in doubles.
    """

    template: fwk.PodTemplate
    resources: tuple[str, ...]
    axes: tuple[int, ...]
    columns: slice | list[int]
    defaults: tuple[tuple[int, int], ...]
    default_columns: slice | list[int] | None
    amounts: fwk.IntArray
    by_axis: fwk.IntArray
    weights: tuple[int, ...]
    is_modest: bool


class NodeResourcesFit(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.ScorePlugin, fwk.EnqueueExtensions):
    """Refuse nodes without room, and score the others by their requests."""

    name: ClassVar = "NodeResourcesFit"
    args_model: ClassVar = NodeResourcesFitArgs
    declares: ClassVar = fwk.Declares(
        reads=fwk.Reads.ROW, only_requests=True, is_additive=True, counts_resources=True
    )

    def __init__(self, args: NodeResourcesFitArgs) -> None:
        self._ignored = args.ignored_resources
        self._ignored_groups = args.ignored_resource_groups
        self._strategy = args.scoring_strategy
        self._weights = {each.name: each.weight or 1 for each in self._strategy.resources}
        self._is_least = args.scoring_strategy.type == "LeastAllocated"
        ratio = self._strategy.requested_to_capacity_ratio
        self._shape = (
            None
            if ratio is None
            else interpolated([(each.utilization, each.score * 10) for each in ratio.shape])
        )

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """List the requested resources."""
        wanted = self._wanted(pod.template)
        for _, name, _ in wanted.scalar:
            snapshot.axis_of(name)  # all axes before the filter reads any
        state.write(wanted)
        return fwk.SUCCESS

    def _wanted(self, template: fwk.PodTemplate) -> _Wanted:
        key = ("NodeResourcesFit.wanted", self._ignored, self._ignored_groups)
        return template.memo(key, lambda: self._compiled(template.requests))

    def _compiled(self, requests: Mapping[str, int]) -> _Wanted:
        native = [name for name in NATIVE if requests.get(name, 0) > 0]
        by_bit = [(bit, name, requests[name]) for bit, name in enumerate(native, FIRST_RESOURCE)]
        if requests.keys() <= NATIVE_NAMES:  # most pods
            return _Wanted(tuple(by_bit), ())
        names = sorted(
            name
            for name, amount in requests.items()
            if amount > 0 and name not in NATIVE_NAMES and not self._is_ignored(name)
        )
        first = FIRST_RESOURCE + len(native)
        scalar = [(min(bit, OTHERS), name, requests[name]) for bit, name in enumerate(names, first)]
        return _Wanted(tuple(by_bit + scalar), tuple(scalar))

    def _is_ignored(self, name: str) -> bool:
        if not (self._ignored or self._ignored_groups) or not is_extended(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The bits of all shortages, shape (N,)."""
        wanted = state.read(_Wanted)
        codes = fwk.all_feasible(snapshot)
        allocatable, requested = snapshot.allocatable.T, snapshot.requested.T
        if _is_short(allocatable, requested, wanted):
            short = allocatable[:FIXED] - requested[:FIXED] < wanted.least
            codes |= short[PODS] * np.int64(PODS_FULL)
            for position, name, amount in wanted.by_bit[: len(NATIVE)]:
                if name in NATIVE_NAMES:
                    axis = NATIVE.index(name)
                    codes |= _bits(position, short[axis], amount > allocatable[axis])
        for position, name, amount in wanted.scalar:
            scalar, by_devices = snapshot.axis_of(name), is_served_by_devices(name, snapshot)
            if scalar is None:
                codes |= 0 if by_devices else (1 << position) | HOPELESS
                if position == OTHERS and not by_devices:
                    break  # all nodes have the bit that the rest shares
                continue
            most = allocatable[scalar]
            is_here = most > 0 if by_devices else True
            codes |= _bits(position, (amount > most - requested[scalar]) & is_here, (amount > most) & is_here)
        return codes

    def filter_rule(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> RoomRule | None:
        """The filter as numbers, unless no node has a requested resource."""
        rule = [WantedRoom(PODS, 1, PODS_FULL, 0)]
        for position, name, amount in state.read(_Wanted).by_bit:
            axis = snapshot.axis_of(name)
            if axis is None or (name not in NATIVE_NAMES and is_served_by_devices(name, snapshot)):
                return None
            rule.append(WantedRoom(axis, amount, 1 << position, HOPELESS))
        return tuple(rule)

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """All shortages of such a node."""
        reasons = [TOO_MANY_PODS] if code & PODS_FULL else []
        wanted = state.read(_Wanted).by_bit
        for position, name, _ in wanted[: OTHERS - FIRST_RESOURCE]:
            if code & (1 << position):
                reasons.append(f"Insufficient {name}")
        if code & (1 << OTHERS):
            others = len(wanted) - (OTHERS - FIRST_RESOURCE)
            rest = wanted[-1][1] if others == 1 else f"one of {others} further resources"
            reasons.append(f"Insufficient {rest}")
        return fwk.Status(
            fwk.Code.UNRESOLVABLE if code & HOPELESS else fwk.Code.UNSCHEDULABLE, tuple(reasons)
        )

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Points per node, shape (N,)."""
        scored = self._scored(state, pod, snapshot)
        if not scored.weights:
            return fwk.all_feasible(snapshot)
        capacity = snapshot.capacity(scored.axes)
        is_plain = capacity.is_exact and capacity.counted is None
        if is_plain and scored.is_modest and self._is_least and not snapshot.is_large:
            return _least_allocated(scored, snapshot, capacity)
        allocatable = snapshot.allocatable[:, scored.columns]
        taken = _taken(scored, snapshot)
        counted = None if capacity.counted is None else capacity.counted.T
        points = self._points(
            taken, allocatable, allocatable if counted is None else np.maximum(allocatable, 1)
        )
        total = weighted(points, scored.weights)  # 0 if it is not counted
        if self._shape is None:
            if counted is None:
                return divided(total, sum(scored.weights))
            return divided(total, np.maximum(weighted(counted.astype(np.int64), scored.weights), 1))
        sums = weighted((points > 0).astype(np.int64), scored.weights)
        rounded: fwk.IntArray = (2 * total + sums) // np.maximum(2 * sums, 1)
        return rounded

    def score_rule(
        self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot
    ) -> AllocationRule | None:
        """Score as numbers; not for shapes, extreme amounts, or resources that some node lacks."""
        requests = pod.template.score_requests
        resources = []
        for name, weight in self._weights.items():
            axis, amount = snapshot.axis_of(name), requests.get(name, 0)
            if axis is not None and (name in NATIVE or (amount and is_scalar(name))):
                resources.append(ScoredRoom(axis, WITH_DEFAULTS.get(name), amount, weight))
        if self._shape is not None or not resources or any(each.amount >= EXACT for each in resources):
            return None
        capacity = snapshot.capacity(tuple([each.axis for each in resources]))
        if capacity.counted is not None or not capacity.is_exact:
            return None
        return AllocationRule(tuple(resources), self._is_least)

    def _scored(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> _Scored:
        """The resources that count for this pod, determined once per template."""
        known = state.find(_Scored)
        if known is not None and known.template is pod.template and known.resources is snapshot.resources:
            return known
        requests = pod.template.score_requests
        axes = {
            name: axis
            for name in self._weights
            if (axis := snapshot.axis_of(name)) is not None
            and (name in NATIVE or (requests.get(name, 0) != 0 and is_scalar(name)))
        }
        defaults = tuple(
            (position, WITH_DEFAULTS[name]) for position, name in enumerate(axes) if name in WITH_DEFAULTS
        )
        amounts = np.array([requests.get(name, 0) for name in axes], dtype=np.int64)
        scored = _Scored(
            template=pod.template,
            resources=snapshot.resources,
            axes=tuple(axes.values()),
            columns=columns_of(list(axes.values())),
            defaults=defaults,
            default_columns=(
                columns_of([column for _, column in defaults]) if len(defaults) == len(axes) else None
            ),
            amounts=amounts,
            by_axis=amounts[:, None],
            weights=tuple(self._weights[name] for name in axes),
            is_modest=all(requests.get(name, 0) < EXACT for name in axes),
        )
        state.write(scored)
        return scored

    def _points(self, taken: fwk.IntArray, capacity: fwk.IntArray, some: fwk.IntArray) -> fwk.IntArray:
        """Points of K resources, shape (N, K); 0 if the node has none of a resource (then ``some`` is 1)."""
        points: fwk.IntArray
        if self._strategy.type == "LeastAllocated":
            room = np.subtract(capacity, taken, out=taken)
            np.maximum(room, 0, out=room)
            room *= fwk.MAX_SCORE
            points = divided(room, some)
        elif self._strategy.type == "MostAllocated":
            points = divided(np.minimum(taken, capacity) * fwk.MAX_SCORE, some)
        else:
            utilization = divided(np.minimum(taken, capacity) * 100, some)
            utilization = np.clip(np.where(taken > capacity, 100, utilization), 0, 100)
            points = np.where(capacity > 0, np.asarray(self._shape)[utilization], 0)
        return points

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Pods that left or shrank, nodes with more allocatable, and classes that serve a resource."""
        node = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_ALLOCATABLE
        scale_down = fwk.ActionType.UPDATE_POD_SCALE_DOWN
        return (
            fwk.EventWithHint(fwk.EventResource.ASSIGNED_POD, fwk.ActionType.DELETE),
            fwk.EventWithHint(
                fwk.EventResource.ASSIGNED_POD, scale_down, fwk.HintByValue(self._by_bit, _after_scale_down)
            ),
            fwk.EventWithHint(fwk.EventResource.UNSCHEDULABLE_POD, scale_down),
            fwk.EventWithHint(fwk.EventResource.NODE, node, fwk.HintByValue(self._by_bit, _after_node)),
            fwk.EventWithHint(
                fwk.EventResource.DEVICE_CLASS,
                fwk.ActionType.ADD | fwk.ActionType.UPDATE,
                _after_class,
                by_template=True,
            ),
        )

    def _by_bit(self, template: fwk.PodTemplate) -> Requested:
        return self._wanted(template).by_bit


def _after_scale_down(values: Collection[Requested], change: fwk.ClusterEvent) -> Collection[Requested]:
    """The scaled-down pod released a resource that the waiting pod requests."""
    old, new = change.old.requests, change.new.requests
    less = {name for name, amount in old.items() if new.get(name, 0) < amount}
    return [each for each in values if any(name in less for _, name, _ in each)]


def _after_node(values: Collection[Requested], change: fwk.ClusterEvent) -> Collection[Requested]:
    """The pod would fit the empty node, whose allocatable of some resource has grown."""
    new = change.memo("allocatable", lambda: allocatable_of(change.new))
    old = change.memo("before", lambda: {} if change.old is None else allocatable_of(change.old))
    more = {name for name, amount in new.items() if amount > old.get(name, 0)}
    is_new = change.old is None or "pods" in more
    if new.get("pods", 0) < 1 or not (is_new or more):
        return ()
    helped = []
    for each in values:
        for _, name, amount in each:  # a loop: thousands of values may wait
            if amount > new.get(name, 0):
                break
        else:
            if is_new or any(name in more for _, name, _ in each):
                helped.append(each)
    return helped


def _is_short(allocatable: fwk.IntArray, requested: fwk.IntArray, wanted: _Wanted) -> bool:
    """Whether any node is short of a fixed resource, shape (R, N) both; usually none is."""
    count = allocatable.shape[1]
    if not count:
        return False
    if count <= FEW:
        short = allocatable[:FIXED] - requested[:FIXED] < wanted.least
        return bool(short.item(short.argmax()))
    # One resource after another: intermediate results stay in the processor's cache.
    for axis, amount in enumerate(wanted.least[:, 0].tolist()):
        if amount != ANY:
            short = allocatable[axis] - requested[axis] < amount
            if short.item(short.argmax()):
                return True
    return False


def _least_allocated(scored: _Scored, snapshot: fwk.Snapshot, capacity: Capacity) -> fwk.IntArray:
    """The default strategy, if no amount is extreme."""
    room = snapshot.buffer("room", len(scored.axes), np.int64)
    allocatable = snapshot.allocatable.T[scored.columns]
    if scored.default_columns is not None:
        np.subtract(allocatable, snapshot.nonzero_requested.T[scored.default_columns], out=room)
        room -= scored.by_axis
    else:
        np.subtract(allocatable, _taken(scored, snapshot).T, out=room)
    points = snapshot.buffer("points", len(scored.axes), np.float64)
    return least_allocated(room, scored.weights, capacity.doubles, points)


def _taken(scored: _Scored, snapshot: fwk.Snapshot) -> fwk.IntArray:
    """Taken amounts of the K resources with the pod, a new array of shape (N, K)."""
    if scored.default_columns is not None:
        return snapshot.nonzero_requested[:, scored.default_columns] + scored.amounts
    taken: fwk.IntArray = snapshot.requested[:, scored.columns] + scored.amounts
    for position, column in scored.defaults:
        taken[:, position] = snapshot.nonzero_requested[:, column] + scored.amounts[position]
    return taken


def _after_class(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """Devices of the class serve an extended resource that the pod requests, and did not before."""
    old, new = (classes_by_resource([] if each is None else [each]) for each in (change.old, change.new))
    return fwk.QueueingHint.of(any(name in pod.requests for name in new.keys() - old.keys()))


def _bits(position: int, short: fwk.BoolArray, hopeless: fwk.BoolArray) -> fwk.IntArray:
    """The codes of one resource: short of it, and short even if the node were empty."""
    bits: fwk.IntArray = short * np.int64(1 << position) | (short & hopeless) * np.int64(HOPELESS)
    return bits
