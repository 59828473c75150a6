"""Encodes the load of nodes and pods for the program of the Optimal planner.

If a strategy of the policy moves pods by load, the plan goes by load: evenness refers to the expected use of
pods, and requests remain constraints. To keep the program small, pods that no other strategy wants to move
leave only nodes that are over-used, or, for SmallestSpread, the hottest above the mean. Only the coolest
nodes receive them, and pods whose move could never be worth its price stay.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.measurements import NodeClasses
from plimsoll.framework.descheduling.strategy import by_load, load_lines_of, spares
from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.load.states import LoadState
from plimsoll.load.summary import RESOURCES
from plimsoll.model.columns.cluster import CPU, MEMORY, Cluster
from plimsoll.planning.load.load_lines import PEAK
from plimsoll.planning.moves import Move, Objective, RebalancingConfig
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.toolkit.descheduling.fewest_moves import BAND
from plimsoll_optimal.load_terms import LEVELS, Floats, LoadTerms
from plimsoll_optimal.move_requests import EVENED, MoveRequest
from plimsoll_optimal.problem import HEAT

#: Nodes above the mean that SmallestSpread takes pods off in one run, the hottest; nodes that receive them.
HOTTEST, COOLEST = 8, 16


@dataclass(slots=True)
class LoadEncoding:
    """The load of nodes, by the program's index.

    Args:
        book: The load book of the plan's fork.
        nodes: Names in the program's order.
        over: Strategies and nodes that they found over-used, often enough to act.
        known: Names of strategies that require no more than that nodes stay below their lines.
        lines: The lowest of these lines by resource, in percent.
        settling: Nodes that neither give nor receive pods.
    """

    rebalancing: RebalancingConfig
    context: StrategyContext
    book: LoadBook
    nodes: Sequence[str]
    over: frozenset[tuple[str, str]]
    known: frozenset[str]
    lines: Mapping[str, float]
    settling: frozenset[str]
    used: Floats = field(init=False)
    room: Floats = field(init=False)
    counts: NDArray[np.bool_] = field(init=False)
    _index: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        cluster = self.context.cluster
        rows = np.asarray([cluster.rows[name] for name in self.nodes], dtype=np.intp)
        self.used = np.hstack((self.book.load[rows], self.book.peak_load[rows])).astype(np.float64)
        room = cluster.allocatable[rows][:, [CPU, MEMORY]] * np.asarray(PER_COLUMN_UNIT)
        self.room = np.hstack((room, room)).astype(np.float64)
        self.counts = self.book.states[rows] == LoadState.MEASURED
        self._index = {name: at for at, name in enumerate(self.nodes)}

    @property
    def evened(self) -> tuple[int, ...]:
        """The resources with a line, or both."""
        found = tuple(at for name, (at, _) in RESOURCES.items() if name in self.lines)
        return found or EVENED

    def points(self) -> Floats:
        """Shape (N, 2): percent of each node that is used."""
        return self._empty_terms().points(self.used[:, :LEVELS])

    def wishes(self) -> dict[str, MoveRequest]:
        """Pods on nodes that are over-used, by uid: any of them may leave."""
        found: dict[str, MoveRequest] = {}
        strategies = {each.name: each for each in self.rebalancing.strategies}
        points = self.points()
        for name, node in sorted(self.over):
            moving = by_load(strategies[name])
            line = {} if moving is None else load_lines_of(moving, self.context)
            used = dict(zip(RESOURCES, points[self._index[node]].tolist(), strict=True))
            sentence = ", ".join(
                f"{resource} {used[resource]:.1f}% (target {percent:.1f}%)"
                for resource, percent in line.items()
                if used.get(resource, 0.0) > percent
            )
            for pod in self.context.pods(node):
                if not spares(strategies[name], pod):
                    found.setdefault(pod.uid, MoveRequest(name, f"its node is over-used: {sentence}"))
        return found

    def sources(self) -> frozenset[str]:
        """The nodes that pods may leave because of their load."""
        hot = {node for _, node in self.over}
        if self.rebalancing.goal.objective is not Objective.SMALLEST_SPREAD:
            return frozenset(hot)
        evened = list(self.evened)
        above = (self.points() - self._empty_terms().mean)[:, evened].max(axis=1)
        above[~self.counts] = -np.inf
        order = np.argsort(-above, kind="stable")[:HOTTEST].tolist()
        return frozenset(hot | {self.nodes[at] for at in order if above[at] > 0}) - self.settling

    def targets(self) -> frozenset[str]:
        """The coolest measured nodes."""
        level = self.points()[:, list(self.evened)].max(axis=1)
        may_get = self.counts & ~np.isin(self.nodes, list(self.settling))
        level[~may_get] = np.inf
        order = np.argsort(level, kind="stable")[:COOLEST].tolist()
        return frozenset(self.nodes[at] for at in order if may_get[at])

    def is_worth(self, pod: PodInfo, node: str) -> bool:
        """Whether moving a pod could lower the objective by more than the price, on any target."""
        at = self._index[node]
        share = 100.0 * np.asarray(self.book.of(pod)[:LEVELS]) / np.maximum(self.room[at, :LEVELS], 1.0)
        gain = 0.0
        if self.rebalancing.goal.objective is Objective.SMALLEST_SPREAD:
            smallest = self.room[self.counts, :LEVELS].min(axis=0, initial=np.inf)
            there = share * self.room[at, :LEVELS] / np.maximum(smallest, 1.0)
            gain += float((share + there)[list(self.evened)].mean())
        if any(name == node for _, name in self.over):
            gain += HEAT * float(share.sum())
        return gain > self.rebalancing.goal.move_price

    def terms(self, arriving: Sequence[Iterable[PodInfo]], leaving: Sequence[Iterable[PodInfo]]) -> LoadTerms:
        """The load terms for these pods of each template, and of each stock."""
        lines = np.full_like(self.used, np.inf)
        hot = np.full((len(self.nodes), LEVELS), np.inf)
        for name, (at, _) in RESOURCES.items():
            if name in self.lines:
                lines[:, at] = (self.lines[name] - BAND) / 100.0 * self.room[:, at]
                over = [self._index[node] for _, node in self.over]
                hot[over, at] = self.lines[name] / 100.0 * self.room[over, at]
            lines[:, LEVELS + at] = PEAK / 100.0 * self.room[:, at]
        lines[~self.counts] = np.inf
        lines[self.room <= 0] = np.inf
        return LoadTerms(
            arriving=self._means(arriving),
            leaving=self._means(leaving),
            used=self.used,
            room=self.room,
            lines=lines,
            hot=hot,
            counts=self.counts,
            evened=self.evened,
        )

    def level_after(self, moves: Iterable[Move]) -> Floats:
        """Shape (N, 2): the nodes' load after these moves, each pod at its expected use."""
        level = self.used[:, :LEVELS].copy()
        for move in moves:
            own = np.asarray(self.book.of(move.pod)[:LEVELS], dtype=np.float64)
            if move.source in self._index:
                level[self._index[move.source]] -= own
            if move.target in self._index:
                level[self._index[move.target]] += own
        return level

    def urgency(self, move: Move) -> tuple[bool, float]:
        """A sort key: first off nodes that are over-used, then the largest amounts."""
        is_hot = any(node == move.source for _, node in self.over)
        return not is_hot, -float(self.book.of(move.pod)[self.evened[0]])

    def _means(self, groups: Sequence[Iterable[PodInfo]]) -> Floats:
        rows = [
            np.asarray([self.book.of(pod)[: 2 * LEVELS] for pod in pods], dtype=np.float64).mean(axis=0)
            for pods in groups
        ]
        return np.asarray(rows, dtype=np.float64).reshape(-1, 2 * LEVELS)

    def _empty_terms(self) -> LoadTerms:
        none = np.zeros((0, 2 * LEVELS))
        hot = np.full((len(self.nodes), LEVELS), np.inf)
        return LoadTerms(none, none, self.used, self.room, self.used, hot, self.counts, self.evened)


def lacks_readings(rebalancing: RebalancingConfig, cluster: Cluster) -> bool:
    """Whether nodes are to be evened out by use that was never read; requests are no substitute."""
    return (
        rebalancing.goal.objective is Objective.SMALLEST_SPREAD
        and any(by_load(each) is not None for each in rebalancing.strategies)
        and not cluster.has_index(LoadBook)
    )


def loads_of(
    rebalancing: RebalancingConfig,
    builder: PlanBuilder,
    classes: Iterable[tuple[str, NodeClasses]],
    too_early: Container[tuple[str, str]],
) -> LoadEncoding | None:
    """The load of nodes, if the policy moves pods by load; ``classes`` are its strategies' findings."""
    context = builder.context
    moving = {each.name: found for each in rebalancing.strategies if (found := by_load(each)) is not None}
    if context.load_book is None or not moving:
        return None
    known = frozenset(name for name, each in moving.items() if load_lines_of(each, context))
    load = builder.load
    over = {(name, node) for name, found in classes if name in known for node in found.overutilized}
    over = {
        (name, node) for name, node in over if node in context.considered and not load.of_node(name, node)
    }
    return LoadEncoding(
        rebalancing,
        context,
        context.load_book,
        context.nodes,
        frozenset(each for each in over if each not in too_early),
        known,
        load.lines,
        frozenset(filter(load.is_settling, context.nodes)),
    )
