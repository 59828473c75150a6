"""Other projects' score and filter plugins, by their published formulas, for the engine to ask.

Sources: Trimaran's TargetLoadPacking and LoadVariationRiskBalancing (scheduler-plugins ``pkg/trimaran`` at
903da7df), Koordinator's LoadAwareScheduling (``pkg/scheduler/plugins/loadaware`` at a7a1b76b),
crane-scheduler's Dynamic (``pkg/plugins/dynamic`` at c2c05338). Formulas and defaults as published; where a
formula divides by capacity, nodes here have the same capacity as allocatable. The two oracles are our own.

Units: milli-cores and bytes in, points 0..100 out, int64, higher is better; arrays are by snapshot position.
"""

import warnings
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from load_days.readings import History, LoadView
from load_days.traces import SAMPLE_S, Floats
from load_days.world import World, future
from plimsoll import framework as fwk

#: The filters' only code.
TOO_HOT = 1

MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0


def mean_over(history: History, seconds: float, *, memory: bool = False) -> Floats:
    """The mean of each node's readings, shape (numbers,), NaN without readings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of nodes without readings
        found: Floats = np.nanmean(history.window(seconds, memory=memory), axis=0)
    return found


class _ByLoad:
    """A plugin that is asked for every pod: what it reads changes with every reading."""

    args_model: ClassVar[type[fwk.PluginArgs]] = fwk.NoArgs
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.POD)

    def __init__(self, args: fwk.PluginArgs) -> None:
        self.args = args

    def seen(self, snapshot: fwk.Snapshot) -> tuple[World, History, NDArray[np.intp]]:
        """The world, its readings, and the node number at each position."""
        history = snapshot.index(LoadView).seen
        return history.world, history, history.world.numbers[snapshot.rows]


def _points(values: Floats) -> fwk.IntArray:
    return np.clip(np.nan_to_num(values), 0, fwk.MAX_SCORE).astype(np.int64)


class TargetLoadPackingArgs(fwk.PluginArgs):
    """Arguments, named as upstream's."""

    target_utilization: int = Field(default=40, description="Percent up to which nodes are packed.")


class TargetLoadPacking(_ByLoad, fwk.ScorePlugin):
    """Pack nodes by their use of cpu up to a target, and spread beyond it.

    Readings of 15 minutes; pods bound after them, or less than a minute before their end, count with 1.5
    times their request, as the pod itself does. A node without readings has 0 points.
    """

    name: ClassVar = "TargetLoadPacking"
    args_model: ClassVar = TargetLoadPackingArgs
    args: TargetLoadPackingArgs

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """By the formula of section 1 of the plugin's KEP."""
        world, history, numbers = self.seen(snapshot)
        used = mean_over(history, 900.0)[numbers]
        slots = world.running
        unseen = slots[world.placed_at[slots] > history.taken - MINUTE_S]
        missing = world.by_node(unseen, 1.5 * world.requested_cpu(unseen))[numbers]
        percent = 100 * (used + missing + 1.5 * pod.nonzero_cpu_milli) / world.traces.node_cpu
        target = float(self.args.target_utilization)
        packing = target + (100 - target) * percent / target
        spreading = target * (100 - percent) / (100 - target)
        points: Floats = np.where(percent <= target, packing, spreading)
        return _points(np.round(points))


class LoadVariationRiskBalancing(_ByLoad, fwk.ScorePlugin):
    """Prefer nodes whose mean use and its deviation over 15 minutes are low, the worse resource counting."""

    name: ClassVar = "LoadVariationRiskBalancing"

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """100 * (1 - (mean + deviation) / 2), both as shares, margin and sensitivity 1."""
        world, history, numbers = self.seen(snapshot)
        found = []
        for is_memory, room, asked in (
            (False, world.traces.node_cpu, pod.nonzero_cpu_milli),
            (True, world.traces.node_memory, pod.nonzero_memory_bytes),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                deviation = np.nanstd(history.window(900.0, memory=is_memory), axis=0)[numbers]
            mean = (mean_over(history, 900.0, memory=is_memory)[numbers] + asked) / room
            risk = np.clip(mean, 0, 1) + np.clip(deviation / room, 0, 1)
            found.append(np.round(100 * (1 - risk / 2)))
        return _points(np.minimum(*found))


class LoadAwareScheduling(_ByLoad, fwk.FilterPlugin, fwk.ScorePlugin):
    """Koordinator's: refuse nodes above 65 % cpu or 95 % memory, prefer the least used.

    A node's use is its mean over 300 s, and for pods that are unread, or were placed within a minute before
    the reading, what their estimate (85 % and 70 % of the request) exceeds their reading by. A node without
    readings passes with 0 points; one whose reading is older than 180 s is refused.
    """

    name: ClassVar = "LoadAwareScheduling"

    def estimated(self, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> tuple[Floats, Floats]:
        """Percent of cpu and memory with the pod, by position; NaN where nothing is known."""
        world, history, numbers = self.seen(snapshot)
        slots = world.running
        new = slots[(world.placed_at[slots] > history.taken - MINUTE_S)]
        new_cpu, new_memory = map(np.nan_to_num, history.use_of(new))
        more_cpu = world.by_node(new, np.maximum(0.85 * world.requested_cpu(new) - new_cpu, 0))
        more_memory = world.by_node(new, np.maximum(0.7 * world.requested_memory(new) - new_memory, 0))
        cpu = mean_over(history, 300.0)[numbers] + more_cpu[numbers] + 0.85 * pod.nonzero_cpu_milli
        memory = mean_over(history, 300.0, memory=True)[numbers] + more_memory[numbers]
        memory = memory + 0.7 * pod.nonzero_memory_bytes
        return 100 * cpu / world.traces.node_cpu, 100 * memory / world.traces.node_memory

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Above the lines, or out of date."""
        world, history, _ = self.seen(snapshot)
        cpu, memory = self.estimated(pod, snapshot)
        hot = (np.round(np.nan_to_num(cpu)) > 65) | (np.round(np.nan_to_num(memory)) > 95)
        if history.heard and world.now - history.taken > 180.0:
            hot |= ~np.isnan(cpu)
        return hot.astype(np.int64) * TOO_HOT

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """Koordinator's sentence."""
        return fwk.unschedulable("node(s) cpu usage exceed threshold")

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The mean of what is left of both."""
        world, history, _ = self.seen(snapshot)
        cpu, memory = self.estimated(pod, snapshot)
        points = (np.clip(100 - cpu, 0, 100) + np.clip(100 - memory, 0, 100)) // 2
        expired = world.now - history.taken > 180.0
        return _points(np.zeros(len(points)) if expired else points)


class CraneDynamic(_ByLoad, fwk.FilterPlugin, fwk.ScorePlugin):
    """Crane's: five-minute mean (every 3 min), hour maximum (15 min), day maximum (3 h), and binds.

    Refuses above 0.65 of the first and 0.75 of the second, cpu and memory; what is missing passes, and what
    is older than its period and five minutes. Ten points less for each hot value: a fifth of the binds in
    five minutes and half of those in one, rounded down.
    """

    name: ClassVar = "Dynamic"

    def __init__(self, args: fwk.PluginArgs) -> None:
        super().__init__(args)
        self._kept: dict[tuple[str, bool], tuple[float, Floats]] = {}

    def _rule(self, history: History, name: str, *, memory: bool) -> Floats:
        """One rule's values by node number, as its annotation has them; NaN where out of date."""
        world = history.world
        period = {"mean": 180.0, "hour": 900.0, "day": 3 * HOUR_S}[name]
        kept = self._kept.get((name, memory))
        size, room = len(world.names), world.traces.node_memory if memory else world.traces.node_cpu
        fresh = bool(history.heard) and world.now - history.taken < period
        if fresh and (kept is None or world.now - kept[0] >= period or len(kept[1]) != size):
            if name == "mean":
                values = mean_over(history, 300.0, memory=memory)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    window = history.window(HOUR_S if name == "hour" else DAY_S, memory=memory)
                    values = np.nanmax(window, axis=0)
            kept = self._kept[name, memory] = world.now, values / room
        if kept is None or world.now - kept[0] > period + 300.0:
            return np.full(size, np.nan)
        return kept[1]

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Above the lines."""
        _, history, numbers = self.seen(snapshot)
        hot = np.zeros(len(numbers), dtype=np.bool_)
        for is_memory in (False, True):
            hot |= np.nan_to_num(self._rule(history, "mean", memory=is_memory))[numbers] > 0.65
            hot |= np.nan_to_num(self._rule(history, "hour", memory=is_memory))[numbers] > 0.75
        return hot.astype(np.int64) * TOO_HOT

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """Crane's sentence, in short."""
        return fwk.unschedulable("load of the node is too high")

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """What is left by all six rules, weights 0.2, 0.3, 0.5, less the hot value."""
        world, history, numbers = self.seen(snapshot)
        total, weights = np.zeros(len(numbers)), 0.0
        for is_memory in (False, True):
            for name, weight in (("mean", 0.2), ("hour", 0.3), ("day", 0.5)):
                values = self._rule(history, name, memory=is_memory)[numbers]
                total += weight * np.nan_to_num(1 - np.minimum(values, 1.0))
                weights += weight
        slots = world.running
        age, ones = world.now - world.placed_at[slots], np.ones(len(slots))
        five = world.by_node(slots[age <= 300.0], ones[age <= 300.0])[numbers]
        one = world.by_node(slots[age <= MINUTE_S], ones[age <= MINUTE_S])[numbers]
        return _points(np.round(100 * total / weights) - 10 * (five // 5 + one // 2))


class OracleArgs(fwk.PluginArgs):
    """What the oracle looks at."""

    percentile: int = Field(default=0, description="Of the future; 0 for its mean.")


class Oracle(_ByLoad, fwk.ScorePlugin):
    """Knows what every pod will use, and prefers the node that will be used least while the pod lives.

    It looks ahead for as long as the pod has to live, from half an hour to four hours.
    """

    name: ClassVar = "Oracle"
    args_model: ClassVar = OracleArgs
    args: OracleArgs

    def __init__(self, args: fwk.PluginArgs) -> None:
        super().__init__(args)
        self._futures: dict[int, tuple[int, Floats]] = {}

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """By rank, 100 for the best node: points are whole, and load is not."""
        world, _, numbers = self.seen(snapshot)
        slot = int(pod.name.rpartition("-")[2])
        lasts = np.clip(world.by_slot[slot].ends - world.now, 0.5 * HOUR_S, 4 * HOUR_S)
        steps = int(lasts / SAMPLE_S)
        running = world.running
        coming = np.array([self._future(world, each, steps) for each in running.tolist()])
        totals = np.zeros((len(world.names), steps))
        if len(running):
            np.add.at(totals, world.node_of[running], coming)
        later = totals[numbers]
        percentile = self.args.percentile
        load = np.percentile(later, percentile, axis=1) if percentile else later.mean(axis=1)
        ranks = np.argsort(np.argsort(-load))
        return _points(ranks * 100 / max(len(ranks) - 1, 1))

    def _future(self, world: World, slot: int, steps: int) -> Floats:
        """From now on, every five minutes; computed once for each pod, for the whole day and beyond."""
        at = int(world.now / SAMPLE_S)
        kept = self._futures.get(slot)
        if kept is None:
            kept = self._futures[slot] = at, future(world, slot, world.by_slot[slot].ends)
        return kept[1][at - kept[0] : at - kept[0] + steps]


BASELINES: tuple[type[fwk.Plugin], ...] = (
    TargetLoadPacking,
    LoadVariationRiskBalancing,
    LoadAwareScheduling,
    CraneDynamic,
    Oracle,
)
