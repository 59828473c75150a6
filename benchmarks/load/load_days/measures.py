"""Tally counts a day: hot nodes, imbalance, moves and their worth, pods that wait."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from load_days.scenarios import HOUR_S
from load_days.traces import Floats
from load_days.world import Placement, Tenant, World

#: Above these shares of a node it is hot.
HOT_CPU, HOT_MEMORY = 0.8, 0.95

#: Seconds within which a hot spot that would have ended by itself makes a move wasted.
BY_ITSELF_S = 900.0

#: Seconds within which an owner that is back on a node makes a move reversed, or a pod is moved again.
BACK_S = HOUR_S


@dataclass(frozen=True, slots=True)
class MovedPod:
    """A move.

    Attributes:
        was_wasted: Whether the source would have been below the line for itself soon.
        was_calming: Whether it would have been with all its pods of then, also those that end before.
    """

    at: float
    owner: str
    source: int
    was_wasted: bool
    was_calming: bool


@dataclass(slots=True)
class Tally:
    """Counts while the day goes on; after the warm-up only.

    Attributes:
        line: Share of the cpu above which the policy wants pods off a node, or what counts as hot; with
            ``by_deviation`` it is that far above the mean.
        errors: Forecasts of a pod's use when it was placed, and what it then used: by kind of forecast.
    """

    world: World
    line: float = HOT_CPU
    by_deviation: bool = False
    hot_cpu: float = 0.0
    hot_memory: float = 0.0
    moves: list[MovedPod] = field(default_factory=list)
    reversals: int = 0
    again: int = 0
    pending: float = 0.0
    arrivals: int = 0
    unplaced: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    hottest: float = 0.0
    _overloads: list[Floats] = field(default_factory=list, init=False)
    _spreads: list[float] = field(default_factory=list, init=False)
    _peaks: list[float] = field(default_factory=list, init=False)
    _after: list[float] = field(default_factory=list, init=False)
    _means: list[float] = field(default_factory=list, init=False)
    _requested: list[float] = field(default_factory=list, init=False)
    _unmet: float = field(default=0.0, init=False)
    _left: defaultdict[tuple[str, int], list[float]] = field(
        default_factory=lambda: defaultdict(list), init=False
    )
    _heirs: dict[str, float] = field(default_factory=dict, init=False)

    @property
    def counts(self) -> bool:
        """Whether the warm-up is over."""
        return self.world.now > self.world.scenario.warm_up * HOUR_S

    @property
    def is_after_event(self) -> bool:
        """Whether the hour after the scenario's happenings is not over."""
        since = self.world.now - self.world.scenario.begins * HOUR_S
        return 0 <= since < HOUR_S

    def step(self) -> None:
        """Look at all nodes; call once a grain."""
        if not self.counts:
            return
        world = self.world
        minutes = world.scenario.grain_s / 60
        slots, cpu, memory = world.use()
        here = world.numbers
        shares = world.by_node(slots, cpu)[here] / world.traces.node_cpu
        memories = world.by_node(slots, memory)[here] / world.traces.node_memory
        self.hot_cpu += float((shares > HOT_CPU).sum()) * minutes
        self.hot_memory += float((memories > HOT_MEMORY).sum()) * minutes
        self._unmet += float(np.maximum(shares - 1, 0).sum()) * world.traces.node_cpu / 1000 * minutes
        self._overloads.append(np.maximum(shares - HOT_CPU, 0.0))
        self._spreads.append(float(shares.std()))
        self._peaks.append(float(shares.max() - shares.mean()))
        if self.is_after_event:
            self._after.append(float(shares.max() - shares.mean()))
        self._means.append(float(shares.mean()))
        self.pending += len(world.waiting) * minutes
        axis = world.cluster.requested[: len(here), 0].sum() / (len(here) * world.traces.node_cpu)
        self._requested.append(float(axis))

    def moved(self, gone: Tenant) -> None:
        """A pod is about to be evicted."""
        if not self.counts:
            self._left[gone.owner, gone.node].append(self.world.now)
            return
        mean = self._means[-1] if self.by_deviation and self._means else 0.0
        wasted, calming = _would_have_ended(self.world, gone.node, mean + self.line)
        self.moves.append(MovedPod(self.world.now, gone.owner, gone.node, wasted, calming))
        self._left[gone.owner, gone.node].append(self.world.now)
        born = self._heirs.pop(gone.info.uid, None)
        self.again += born is not None and self.world.now - born <= BACK_S

    def placed(self, found: Placement) -> None:
        """A pod found a node."""
        tenant = found.tenant
        if tenant.heir_of < 0:
            self.arrivals += self.counts
            return
        self._heirs[tenant.info.uid] = found.at
        left = self._left.get((tenant.owner, tenant.node), ())
        self.reversals += self.counts and any(found.at - at <= BACK_S for at in left)

    def figures(self) -> "DayFigures":
        """What the day came to."""
        overload = np.concatenate(self._overloads) if self._overloads else np.zeros(1)
        return DayFigures(
            hot_minutes=self.hot_cpu,
            hot_memory_minutes=self.hot_memory,
            overload_p99=float(np.percentile(overload, 99)) * 100,
            unmet_core_minutes=self._unmet,
            spread=_mean(self._spreads) * 100,
            peak_over_mean=_mean(self._peaks) * 100,
            after_event=max(self._after, default=0.0) * 100,
            mean=_mean(self._means) * 100,
            requested=_mean(self._requested) * 100,
            evictions=len(self.moves),
            reversals=self.reversals,
            wasted=sum(each.was_wasted for each in self.moves),
            calming=sum(each.was_calming for each in self.moves),
            again=self.again,
            pending_minutes=self.pending,
            arrivals=self.arrivals,
        )


@dataclass(frozen=True, slots=True)
class DayFigures:
    """What a day came to.

    Attributes:
        hot_minutes: Node-minutes above 80 % of the cpu.
        hot_memory_minutes: Above 95 % of the memory.
        overload_p99: 99th percentile of what is above 80 %, over nodes and moments, in points.
        unmet_core_minutes: Above 100 %.
        spread: Standard deviation of the nodes' use, mean over time, in points.
        peak_over_mean: The hottest node above the mean, mean over time, in points.
        after_event: The hottest node above the mean, at most, in the hour after the happenings, in points.
        mean: Mean use of the nodes' cpu, in percent; ``requested`` is what pods requested.
        reversals: Replacements on a node that a pod of their owner was moved off within the hour.
        wasted: Moves off nodes that would have been below the line a quarter of an hour later anyway.
        calming: The same if no pod ended meanwhile: their use alone went down.
        again: Moves of replacements within an hour.
        pending_minutes: Pod-minutes without a node.
        arrivals: Pods placed that replace no moved pod.
    """

    hot_minutes: float
    hot_memory_minutes: float
    overload_p99: float
    unmet_core_minutes: float
    spread: float
    peak_over_mean: float
    after_event: float
    mean: float
    requested: float
    evictions: int
    reversals: int
    wasted: int
    calming: int
    again: int
    pending_minutes: float
    arrivals: int


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _would_have_ended(world: World, node: int, line: float) -> tuple[bool, bool]:
    """Whether the node with its pods of now would be below the line a quarter of an hour later.

    Without those that end before, and with them.
    """
    slots = np.flatnonzero(world.node_of[: world.demand.count] == node)
    later = world.now + BY_ITSELF_S
    staying = np.array([world.by_slot[slot].ends > later for slot in slots.tolist()], dtype=np.bool_)
    use = world.demand.cpu(later, slots, fine=False) / world.traces.node_cpu
    return float(use[staying].sum()) <= line, float(use.sum()) <= line
