"""Keeps pods that are moved by load from nodes that would become hot.

A move by load requires measurements of its pod and both nodes, and a target that stays below these limits::

    load[target] + expected[pod] <= high - BAND     for each resource with an upper threshold
    peak[target] + peak[pod]     <= PEAK            for cpu and memory, whatever the thresholds cover

Units: percent of a node's allocatable. So a pod returns only if the load of its new node rises by the band:
moves by load do not alternate while loads stay the same.

Optional moves that other strategies propose because of the use of nodes keep the same distance from the lines
of the policy's strategies and from the peak, if the target is measured; if it is not, only requests decide
about them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from plimsoll.framework import BoolArray, PodInfo
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.descheduling.strategy import (
    AsksForGain,
    MovesByLoad,
    Strategy,
    by_load,
    load_lines_of,
)
from plimsoll.load.load_book import LoadBook
from plimsoll.load.load_change import LoadChange, change_of
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.load.states import LoadState
from plimsoll.load.summary import RESOURCES
from plimsoll.planning.limits import Workload
from plimsoll.planning.load.load_guards import LoadGuards
from plimsoll.planning.moves import Move, workload_of
from plimsoll.toolkit.descheduling.fewest_moves import BAND

#: The maximum sum of the peaks of a node's pods, in percent of the node.
PEAK = 95.0


class LoadLines:
    """Objects to moves because of load.

    Args:
        context: The plan's view of its fork.
        strategies: The policy's strategies.
        guards: Limits the moves of strategies that go by load.
        guided: Further names under which moves are proposed because of load: a planner's objective.
        careful: Names of strategies whose moves are optional: their targets stay cool as well.
        scores_load: Whether the score of a pod's scheduler includes load, so that a gain may come from it.
    """

    def __init__(
        self,
        context: StrategyContext,
        strategies: Iterable[Strategy],
        guards: LoadGuards,
        *,
        guided: Collection[str] = (),
        careful: Collection[str] = (),
        scores_load: Callable[[PodInfo], bool | None] = lambda _: False,
    ) -> None:
        self._context = context
        self._by_load = moving_by_load(strategies)
        self._guards = guards
        self._guided = frozenset((*self._by_load, *guided)) if self._by_load else frozenset()
        self._careful = frozenset(careful) - self._guided
        self._by_score = frozenset(each.name for each in strategies if isinstance(each, AsksForGain))
        self._scores_load = scores_load
        self._lines: Mapping[str, float] | None = None

    def of_node(self, strategy: str, node: str) -> Refusal | None:
        """Why no pod may leave a node because of its load."""
        book = self._context.load_book if strategy in self._guided else None
        if book is None:
            return None
        return self._guards.of_node(book, node, self.lines)

    def is_settling(self, node: str) -> bool:
        """Whether a node neither gives nor receives pods because of load, as it has just done so."""
        book = self._context.load_book
        return book is not None and self._guards.settling(book, node) is not None

    def begin(self) -> None:
        """A proposal is judged."""
        self._guards.begin()

    def undo(self) -> None:
        """The moves of the present proposal are not made."""
        self._guards.undo()

    def moved(self, move: Move) -> None:
        """Record a planned move that is about to be made in the fork."""
        book = self._context.load_book
        if book is not None and move.strategy in self._guided:
            self._guards.moved(book, move.pod)

    def of_source(
        self, strategy: str, pod: PodInfo, node: str, workload: Workload | None = None
    ) -> Refusal | None:
        """Why a pod may not leave its node because of load; ``workload`` defaults to its owner."""
        book = self._context.load_book if self.guides(strategy, pod) else None
        if book is None:
            return None
        refusal = self._unmeasured(book, node)
        if refusal is None and not book.of(pod).is_measured:
            return Refusal("NotMeasured", f"there is no recent measurement of pod {pod.key}")
        if refusal is not None or strategy not in self._guided:
            return refusal
        return self._guards.of_pod(book, pod, workload or workload_of(pod), strategy)

    def of_target(self, strategy: str, pod: PodInfo, node: str) -> Refusal | None:
        """Why it may not move to a node because of its load, or of the requests there."""
        book = self._context.load_book
        cluster = self._context.cluster
        if book is None or cluster.rows[node] == cluster.row_of_pod(pod.uid):
            return None
        if self.guides(strategy, pod):
            settling = self._guards.settling(book, node) if strategy in self._guided else None
            return self._unmeasured(book, node) or settling or self.too_hot(node, pod)
        return self.too_hot(node, pod) if strategy in self._careful else None

    def too_hot(self, node: str, pod: PodInfo | None = None) -> Refusal | None:
        """Why a measured node accepts no more pods, or not this one; None if it is not measured."""
        book, cluster = self._context.load_book, self._context.cluster
        if book is None or node not in cluster.rows:
            return None
        row, lines = cluster.rows[node], self.lines
        if book.state(row) is not LoadState.MEASURED:
            return None
        load, peak = book.load_on(row), book.peak_on(row)
        expected = None if pod is None else book.of(pod)
        own = (
            ((0, 0), (0, 0))
            if expected is None
            else ((expected.cpu, expected.peak_cpu), (expected.memory, expected.peak_memory))
        )
        for resource, (at, column) in RESOURCES.items():
            room = int(cluster.allocatable[row, column]) * PER_COLUMN_UNIT[at]
            if room <= 0:
                continue
            then = 100.0 * (load[at] + own[at][0]) / room
            if resource in lines and then > lines[resource] - BAND:
                return Refusal(
                    "TargetTooHot",
                    f"node {node} would use {then:.1f}% of its {resource}, and {BAND:.0f} points below the"
                    f" target of {lines[resource]:.1f}% are asked for",
                )
            then = 100.0 * (peak[at] + own[at][1]) / room
            if then > PEAK:
                return Refusal(
                    "TargetTooHot",
                    f"node {node} would use up to {then:.1f}% of its {resource} at times, above {PEAK:.0f}%",
                )
        return None

    def cool(self, strategy: str, pod: PodInfo) -> BoolArray | None:
        """Shape (N,) by row: whether a node's present load allows it as a target; None if all do."""
        book, cluster = self._context.load_book, self._context.cluster
        is_guided = self.guides(strategy, pod)
        if book is None or not (is_guided or strategy in self._careful):
            return None
        count = len(cluster)
        load, peak, states = book.load[:count], book.peak_load[:count], book.states[:count]
        hot = np.zeros(count, dtype=np.bool_)
        for resource, (at, column) in RESOURCES.items():
            room = cluster.allocatable[:count, column] * PER_COLUMN_UNIT[at]
            if resource in self.lines:
                hot |= 100.0 * load[:, at] > (self.lines[resource] - BAND) * room
            hot |= 100.0 * peak[:, at] > PEAK * room
        is_measured = states == LoadState.MEASURED
        found: BoolArray = is_measured & ~hot if is_guided else ~(is_measured & hot)
        return found

    def change(self, strategy: str, pod: PodInfo, target: str) -> LoadChange | None:
        """The effect of a move on the load of both nodes; None for a strategy by other numbers."""
        book = self._context.load_book
        if book is None or not self.guides(strategy, pod):
            return None
        return change_of(self._context.cluster, book, pod, target)

    @property
    def lines(self) -> Mapping[str, float]:
        """The lowest line by resource above which a strategy of the policy finds a node over-used by load."""
        if self._lines is None:
            found: dict[str, float] = {}
            for strategy in self._by_load.values() if self._context.load_book is not None else ():
                for name, line in load_lines_of(strategy, self._context).items():
                    found[name] = min(line, found.get(name, line))
            self._lines = found
        return self._lines

    def guides(self, strategy: str, pod: PodInfo) -> bool:
        """Whether its moves are by load: always, or because they follow a score that includes load."""
        return strategy in self._guided or (strategy in self._by_score and bool(self._scores_load(pod)))

    def _unmeasured(self, book: LoadBook, node: str) -> Refusal | None:
        state = book.state(self._context.cluster.rows[node])
        if state is LoadState.MEASURED:
            return None
        if state is LoadState.STALE:
            return Refusal("Stale", f"the latest measurement of node {node} is too old")
        why = (
            "pods that are not are expected to make a tenth of its load"
            if state is LoadState.ESTIMATED
            else "it never was"
        )
        return Refusal("NotMeasured", f"node {node} is not measured: {why}")


def moving_by_load(strategies: Iterable[Strategy]) -> dict[str, MovesByLoad]:
    """Names of the strategies that move pods by load."""
    return {each.name: found for each in strategies if (found := by_load(each)) is not None}
