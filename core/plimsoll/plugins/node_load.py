"""NodeLoad: favour nodes with low measured usage; optionally refuse busy ones.

Formula, per node n over cpu and memory, with the load book's expectations (measured or estimated)::

    used[n, r]   = min(allocatable[n, r], load[n, r] + expected[pod, r])
    LeastUsed      s[n, r] = 100 * (allocatable[n, r] - used[n, r]) // allocatable[n, r]
                   score   = (sum_r(weight[r] * s[n, r]) + dominant * min_r(s[n, r])) // sum of all weights
    TargetUsed     U = 100 * (load + expected) / allocatable of cpu, X = targetUtilization
                   score   = X + (100 - X) * U / X up to X; X * (100 - U) / (100 - X) up to 100; then 0
    LowVariation   risk    = mean + margin * deviation^(1 / sensitivity), as shares, either summand at most 1
                   score   = 100 * (1 - risk / 2), the lower one of cpu and memory
    keeps room     LOST points less, at least 0, where a pod that requests less cpu than ``keepsRoomForCores``
                   leaves room by requests for fewer pods of that size
    refused        where round(100 * (load + expected) / allocatable) > usageThresholds[r]; with
                   ``aggregated`` of the peak load

Units: billionths of a core and bytes in; points out, int64, 0..100, higher is better, not normalised: equal
differences of points are equal differences of load.
Edges: an unmeasured node counts with the median share of the measured ones, or with its pods' expected usage
if that is more; without any measurement, with the latter. Pods of DaemonSets are never refused. A pod's
expected usage is rounded to five binary digits. A refused pod is requeued when the load of a node has fallen
by three points or more and would stay below its thresholds with the pod.
Source: koordinator a7a1b76b, ``loadaware/load_aware.go``; scheduler-plugins 903da7df, ``trimaran``.
Differs: one model of load serves all three strategies, in which pods count as soon as they are placed. An
unmeasured node is neither best nor worst. Expired measurements refuse no pod unless configured. If load alone
refuses every node, it refuses none. No pod is preempted for load. Memory has no weight by default: on
replayed days that spread cpu better, with fewer moves. Shares of requests and the age of measurements are
settings of the load book, not arguments.
"""

from functools import lru_cache
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, NonNegativeInt, model_validator

from plimsoll import framework as fwk
from plimsoll.framework.columns import (
    CPU,
    MEMORY,
    PER_COLUMN_UNIT,
    SPREAD_UNITS,
    Expectation,
    LoadBook,
    LoadFall,
    LoadState,
)
from plimsoll.framework.resource_rules import UsageRule

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

Resource: TypeAlias = Literal["cpu", "memory"]

RESOURCES: tuple[Resource, Resource] = ("cpu", "memory")
PER_UNIT = np.array(PER_COLUMN_UNIT, dtype=np.int64)

#: Codes of refusals: the resource's index plus one; this one for expired measurements.
EXPIRED = 3

#: Number of templates whose marks are cached.
MOST_KEPT = 10_000

#: Points that a node loses for which room for one large pod less would be left.
LOST = 15

#: Binary digits of a pod's expected usage.
DIGITS = 5

Percent: TypeAlias = dict[Resource, NonNegativeInt]


class LoadScoringStrategy(fwk.PluginArgs):
    """A scoring formula and its parameters."""

    type: Literal["LeastUsed", "TargetUsed", "LowVariation"] = Field(
        default="LeastUsed",
        description="LeastUsed: as LoadAwareScheduling; TargetUsed: as TargetLoadPacking;"
        " LowVariation: as LoadVariationRiskBalancing.",
    )


class AggregatedUsage(fwk.PluginArgs):
    """Thresholds for the peak load instead of the mean."""

    usage_thresholds: Percent = Field(default={}, description="Percent by resource.")
    usage_aggregation_type: Literal["p90", "p95", "p99"] = Field(
        default="p95", description="Any percentile is the node's expected peak."
    )


class NodeLoadArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    scoring_strategy: LoadScoringStrategy = Field(
        default=LoadScoringStrategy.model_construct(), description="How nodes are scored."
    )
    resource_weights: dict[Resource, NonNegativeInt] = Field(
        default={"cpu": 1}, description="Weight by resource, for LeastUsed; of others 0."
    )
    dominant_resource_weight: NonNegativeInt = Field(
        default=0, description="Weight of the resource that is used most, for LeastUsed."
    )
    target_utilization: int = Field(
        default=40, ge=1, le=99, description="Percent of cpu up to which TargetUsed packs."
    )
    safe_variance_margin: NonNegativeFloat = Field(
        default=1.0, description="Factor of the deviation, for LowVariation."
    )
    safe_variance_sensitivity: NonNegativeFloat = Field(
        default=1.0, description="Root of the deviation, for LowVariation; 0 counts as infinitely sensitive."
    )
    keeps_room_for_cores: NonNegativeInt = Field(
        default=0,
        description="Cores that large pods request: smaller ones are placed such that nodes keep room for"
        " them; 0: wherever load is low.",
    )
    usage_thresholds: Percent = Field(
        default={}, description="Percent by resource above which a node is refused; none: no node is."
    )
    aggregated: AggregatedUsage = Field(
        default=AggregatedUsage.model_construct(),
        description="Thresholds of the peak of use, in place of usageThresholds.",
    )
    when_all_over: Literal["Admit", "Refuse"] = Field(
        default="Admit", description="Admit: where load alone refuses every node it refuses none."
    )
    enable_schedule_when_node_metrics_expired: bool = Field(
        default=True, description="Whether nodes with expired measurements pass the filter."
    )

    @model_validator(mode="after")
    def _scores(self) -> "NodeLoadArgs":
        if not sum(self.resource_weights.values()) + self.dominant_resource_weight:
            raise ValueError("all weights are 0; give one resource a weight")
        return self


class _Loads(Struct, frozen=True, eq=False):
    """Inputs of the plugin by node, shape (N, 2) each."""

    room: fwk.IntArray
    load: fwk.IntArray
    peak: fwk.IntArray
    deviation: FloatArray


class NodeLoad(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.ScorePlugin, fwk.EnqueueExtensions):
    """Favour nodes with low measured usage."""

    name: ClassVar = "NodeLoad"
    args_model: ClassVar = NodeLoadArgs
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.ROW, reads_load=True)

    def __init__(self, args: NodeLoadArgs) -> None:
        self._args = args
        self._by_peak = bool(args.aggregated.usage_thresholds)
        lines = args.aggregated.usage_thresholds or args.usage_thresholds
        self._lines = [(at, lines[name]) for at, name in enumerate(RESOURCES) if lines.get(name)]
        weights = [args.resource_weights.get(name, 0) for name in RESOURCES]
        self._weights = np.array(weights, dtype=np.int64)

    @property
    def gives_way(self) -> bool:
        """True unless ``whenAllOver`` is Refuse."""
        return self._args.when_all_over == "Admit"

    def result_version(self, template: fwk.PodTemplate, snapshot: fwk.Snapshot) -> fwk.ResultVersion:
        """Expected usage of a pod of the template, and the median of the nodes."""
        book = snapshot.index(LoadBook)
        key = book.kept.get(template.signature)
        if key is None or not book.is_level(snapshot.node_mark):
            book = _levelled(snapshot)
            key = _coarse(book.prior(template)), book.middle, book.used.serial
            if len(book.kept) >= MOST_KEPT:
                book.kept.clear()
            book.kept[template.signature] = key
        return fwk.ResultVersion(key)

    def eased(self, template: fwk.PodTemplate) -> bool:
        """True: pods that leave lower the load."""
        return True

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Skip without thresholds, and for pods of DaemonSets."""
        is_off = not self._lines and self._args.enable_schedule_when_node_metrics_expired
        owner = pod.template.owner
        return fwk.SKIP if is_off or (owner is not None and owner.kind == "DaemonSet") else fwk.SUCCESS

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """One plus the index of the first resource above its threshold, 0 for none, shape (N,)."""
        found = _loads(snapshot)
        expected = _coarse(snapshot.index(LoadBook).prior(pod.template))
        used = found.peak + expected[2:] if self._by_peak else found.load + expected[:2]
        codes = np.zeros(len(snapshot), dtype=np.int64)
        if not self._args.enable_schedule_when_node_metrics_expired:
            codes[snapshot.cut(snapshot.index(LoadBook).known) == LoadState.STALE] = EXPIRED
        for at, line in reversed(self._lines):
            room = found.room[:, at]
            percent = np.rint(100.0 * used[:, at] / np.maximum(room, 1))
            codes[(percent > line) & (room > 0)] = at + 1
        return codes

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The refusal in koordinator's words."""
        if code == EXPIRED:
            return fwk.unresolvable("node(s) nodeMetric expired")
        kind = "aggregated usage" if self._by_peak else "usage"
        return fwk.unresolvable(f"node(s) {RESOURCES[code - 1]} {kind} exceed threshold")

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Points per node, shape (N,)."""
        points, size = self._points(pod, snapshot), 1_000 * self._args.keeps_room_for_cores
        asked = pod.requests.get("cpu", 0)
        if not 0 < asked < size:
            return points
        free = snapshot.allocatable[:, CPU] - snapshot.requested[:, CPU]
        keeps: fwk.IntArray = np.where((free - asked) // size < free // size, points - LOST, points)
        return np.maximum(keeps, 0)

    def _points(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        if self._args.scoring_strategy.type == "LeastUsed":
            return self._least_used(pod, snapshot)
        found = _loads(snapshot)
        expected = np.array(_coarse(snapshot.index(LoadBook).prior(pod.template))[:2], dtype=np.int64)
        match self._args.scoring_strategy.type:
            case "TargetUsed":
                return self._target_used(found, expected)
            case _:
                return self._low_variation(found, expected)

    def score_rule(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> UsageRule | None:
        """Score as numbers, for LeastUsed without a dominant resource if every node has both resources."""
        args, capacity = self._args, snapshot.capacity((CPU, MEMORY))
        is_other = args.scoring_strategy.type != "LeastUsed" or args.dominant_resource_weight
        is_other = is_other or args.keeps_room_for_cores
        if is_other or capacity.counted is not None or not capacity.is_exact:
            return None
        book = _levelled(snapshot)
        cpu, memory = _amounts(book, pod)
        weight, other = self._weights.tolist()
        return UsageRule(book.used.columns, (CPU, MEMORY), (cpu, memory), (weight, other))

    def _least_used(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        book = _levelled(snapshot)
        room = snapshot.allocatable[:, [CPU, MEMORY]]
        used = snapshot.cut(book.used.columns.T) + np.array(_amounts(book, pod), dtype=np.int64)
        shares = np.maximum(room - used, 0) * fwk.MAX_SCORE // np.maximum(room, 1)
        dominant = self._args.dominant_resource_weight
        total = (shares * self._weights).sum(axis=1) + dominant * shares.min(axis=1)
        points: fwk.IntArray = total // (self._weights.sum() + dominant)
        return points

    def _target_used(self, found: _Loads, expected: fwk.IntArray) -> fwk.IntArray:
        target = float(self._args.target_utilization)
        room = found.room[:, 0]
        used = 100.0 * (found.load[:, 0] + expected[0]) / np.maximum(room, 1)
        rising = target + (100.0 - target) * used / target
        falling = target * (100.0 - used) / (100.0 - target)
        points = np.where(used <= target, rising, np.maximum(falling, 0.0))
        return np.where(room > 0, np.rint(points), 0).astype(np.int64)

    def _low_variation(self, found: _Loads, expected: fwk.IntArray) -> fwk.IntArray:
        args = self._args
        room = np.maximum(found.room, 1)
        mean = np.clip((found.load + expected) / room, 0.0, 1.0)
        deviation = np.clip(found.deviation / room, 0.0, 1.0)
        sensitivity = args.safe_variance_sensitivity
        root = np.power(deviation, 1.0 / sensitivity) if sensitivity else np.zeros_like(deviation)
        risk = mean + np.clip(args.safe_variance_margin * root, 0.0, 1.0)
        points = np.rint(fwk.MAX_SCORE * (1.0 - risk / 2.0))
        lower: fwk.IntArray = np.where(found.room > 0, points, 0).astype(np.int64).min(axis=1)
        return lower

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """New nodes, deletions of pods, and nodes whose load has fallen."""
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, fwk.ActionType.ADD),
            fwk.EventWithHint(fwk.EventResource.ASSIGNED_POD, fwk.ActionType.DELETE),
            fwk.EventWithHint(
                fwk.EventResource.NODE_LOAD, fwk.ActionType.UPDATE, self._cooled, by_template=True
            ),
        )

    def _cooled(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
        """A node would have exceeded a threshold with the pod, and no longer would."""
        fall: LoadFall = change.new
        half = slice(2, 4) if self._by_peak else slice(0, 2)
        expected = np.array(_coarse(fall.book.prior(pod.template))[half], dtype=np.int64)
        own = 100.0 * expected / np.maximum(fall.room, 1)
        was_over = self._is_over(np.rint(fall.before[:, half] + own))
        if not self._args.enable_schedule_when_node_metrics_expired:
            was_over |= fall.was_stale
        is_over = self._is_over(np.rint(fall.after[:, half] + own))
        return fwk.QueueingHint.of(bool((was_over & ~is_over).any()))

    def _is_over(self, percent: FloatArray) -> BoolArray:
        """Whether each node is above a threshold, shape (K,)."""
        over = np.zeros(len(percent), dtype=np.bool_)
        for at, line in self._lines:
            over |= percent[:, at] > line
        return over


def _levelled(snapshot: fwk.Snapshot) -> LoadBook:
    """The load book, updated to the present nodes."""
    book = snapshot.index(LoadBook)
    book.level(snapshot.node_mark, lambda: snapshot.whole.allocatable[:, [CPU, MEMORY]])
    return book


def _amounts(book: LoadBook, pod: fwk.PodInfo) -> tuple[int, int]:
    """The pod's expected usage in the units of the columns, rounded up."""
    cpu, memory, _, _ = _coarse(book.prior(pod.template))
    return -(-cpu // PER_COLUMN_UNIT[0]), memory


def _loads(snapshot: fwk.Snapshot) -> _Loads:
    book = snapshot.index(LoadBook)
    room = snapshot.allocatable[:, [CPU, MEMORY]] * PER_UNIT
    sums, system = snapshot.cut(book.sums), snapshot.cut(book.system)
    is_known = snapshot.cut(book.known) == LoadState.MEASURED
    middle = np.where(is_known[:, None], 0, room // 100 * np.array(book.middle))
    load = np.maximum(system + sums[:, 0:2], middle)
    deviation = np.sqrt(sums[:, 4:6].astype(np.float64)) * SPREAD_UNITS
    peak = np.maximum(np.maximum(system, 0) + sums[:, 2:4], load + (2.0 * deviation).astype(np.int64))
    return _Loads(room, load, peak, deviation)


@lru_cache(maxsize=4_096)
def _coarse(expected: Expectation) -> tuple[int, int, int, int]:
    """Expected cpu, memory and their peaks, rounded to five binary digits."""
    cpu, memory, peak_cpu, peak_memory = (_rounded(each) for each in expected[:4])
    return cpu, memory, peak_cpu, peak_memory


def _rounded(amount: int) -> int:
    unit = 1 << max(amount.bit_length() - DIGITS, 0)
    return (amount + unit // 2) // unit * unit
