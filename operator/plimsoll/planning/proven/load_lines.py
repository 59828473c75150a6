"""LoadLines keep pods that are moved by load from nodes that would be hot themselves.

A move by load needs its pod and both nodes measured, and a target that has less afterwards than would be too
much there::

    load[target] + expected[pod] <= high - BAND     for each resource with an upper threshold
    peak[target] + peak[pod]     <= PEAK            for cpu and memory, whatever the thresholds are about

Units: percent of a node's allocatable. So a pod goes back only if the load of its new node rises by the
band: what moves pods by load, moves none of them there and back while loads stay.
"""

from collections.abc import Iterable, Mapping

from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.descheduling.strategy import Strategy, by_load
from plimsoll.load.load_book import LoadBook
from plimsoll.load.load_change import LoadChange, change_of
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import CPU, MEMORY, Cluster
from plimsoll.planning.moves import RebalancingConfig

#: Percentage points below the line that triggers moves at which targets must stay.
BAND = 5.0

#: Percent of a node that the peaks of its pods may come to.
PEAK = 95.0

#: The resources that are measured, with their columns.
RESOURCES = (("cpu", CPU), ("memory", MEMORY))


#: The machine reason of the condition of policies that move pods by load, and place them without.
TWO_YARDSTICKS = "TwoYardsticks"


class LoadLines:
    """Objections of load to moves by load.

    Args:
        context: The plan's view of its fork.
        strategies: Those of the policy.
    """

    def __init__(self, context: StrategyContext, strategies: Iterable[Strategy]) -> None:
        self._context = context
        self._by_load = {each.name: found for each in strategies if (found := by_load(each)) is not None}
        self._lines: dict[str, Mapping[str, float]] = {}

    def of_source(self, strategy: str, pod: PodInfo, node: str) -> Refusal | None:
        """Why a pod may not leave its node for what that uses."""
        book = self._book(strategy)
        if book is None:
            return None
        refusal = self._unmeasured(book, node)
        if refusal is None and not book.of(pod).is_measured:
            return Refusal("NotMeasured", f"there is no recent measurement of pod {pod.key}")
        return refusal

    def of_target(self, strategy: str, pod: PodInfo, node: str) -> Refusal | None:
        """Why it may not go to a node for that."""
        book = self._book(strategy)
        cluster = self._context.cluster
        if book is None or self._context.cluster.rows[node] == cluster.row_of_pod(pod.uid):
            return None
        refusal = self._unmeasured(book, node)
        if refusal is not None:
            return refusal
        row, expected = cluster.rows[node], book.of(pod)
        lines, load, peak = self._lines_of(strategy), book.load_on(row), book.peak_on(row)
        own = ((expected.cpu, expected.peak_cpu), (expected.memory, expected.peak_memory))
        for at, (resource, column) in enumerate(RESOURCES):
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

    def change(self, strategy: str, pod: PodInfo, target: str) -> LoadChange | None:
        """What moving a pod to a node does to the load of both; None for a strategy by other numbers."""
        book = self._book(strategy)
        return None if book is None else change_of(self._context.cluster, book, pod, target)

    def _book(self, strategy: str) -> LoadBook | None:
        return self._context.load_book if strategy in self._by_load else None

    def _lines_of(self, strategy: str) -> Mapping[str, float]:
        if strategy not in self._lines:
            self._lines[strategy] = self._by_load[strategy].load_lines(self._context)
        return self._lines[strategy]

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


def two_yardsticks(rebalancing: RebalancingConfig, cluster: Cluster) -> str:
    """Which strategies move pods by load that a profile places without; "" when none does.

    What one half moves off a hot node the other half would put back there.
    """
    moving = sorted({each.name for each in rebalancing.strategies if by_load(each) is not None})
    without = {name for name, each in rebalancing.profiles.items() if not each.scores_load}
    if not moving or not without:
        return ""
    placed = sorted(without & {pod.pod.spec.scheduler_name for pod in cluster.pods.values()})
    if not placed:
        return ""
    return (
        f"{', '.join(moving)} moves pods by what nodes use, and profile {', '.join(placed)} places them"
        " without: enable the score plugin NodeLoad there, or take metricsUtilization out of the strategy"
    )
