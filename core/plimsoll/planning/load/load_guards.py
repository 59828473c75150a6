"""Limits moves by load: none for a spike that ends by itself, none twice for one reading, not too many.

A node gives no pods while its recent readings are not above the line that its smoothed load is above
(``HealsItself``), or while its load exceeds that line by no more than the standard deviation of its pods' use
(``WithinSpread``). A node that a move took a pod off or to is neither source nor target until it was read
twice since (``Settling``). An owner gets two moves by load within an hour at most (``OwnerLimit``), and none
for a while after one that left its source or its target over-used (``HeldBack``). One run moves at most 2 %
of the use of all nodes, but always one proposal: a pod, or several that move together (``LoadLimit``). No pod
is moved whose profile would place it regardless of load (``TwoYardsticks``).

Strategies that do not move by load, and the planner Upstream, have no such limits.
"""

from collections.abc import Iterable, Mapping

from plimsoll.engine.profile import Profile
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.descheduling.strategy import by_load
from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.load.summary import RESOURCES
from plimsoll.model.counted import counted
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.limits import Workload
from plimsoll.planning.moves import PlanningContext, RebalancingConfig

#: The machine reason of moves by load of pods that are placed regardless of load, and of the condition.
TWO_YARDSTICKS = "TwoYardsticks"

#: Seconds after which a node that is read more rarely may give and receive pods again.
SETTLED_S = 600.0

#: Maximum number of moves by load for one owner, and the seconds within which they count.
OWNER_MOVES, OWNER_S = 2, 3_600.0

#: Maximum share of the use of all nodes that one run moves.
SHARE = 0.02


class LoadGuards:
    """Objects to moves by load, where neither a proof nor a line at the target is needed.

    Args:
        rebalancing: The policy.
        context: The plan's view of its fork.
        planning_context: Earlier moves and rounds.
        guided: Further names under which moves by load are made: a planner's objective.
    """

    def __init__(
        self,
        rebalancing: RebalancingConfig,
        context: StrategyContext,
        planning_context: PlanningContext,
        guided: Iterable[str] = (),
    ) -> None:
        self._profiles = rebalancing.profiles
        self._context = context
        self._memory: MoveHistory = planning_context.memory
        self._in_flight = planning_context.in_flight
        self._touched = planning_context.touched
        moving = (each.name for each in rebalancing.strategies if by_load(each) is not None)
        self._by_load = (*moving, *guided)
        self._moved = (0, 0)
        self._before = (0, 0)  # when the present proposal began
        self._all: tuple[int, int] | None = None

    def of_node(self, book: LoadBook, node: str, lines: Mapping[str, float]) -> Refusal | None:
        """Why no pod may leave a node; ``lines`` are in percent of its allocatable."""
        return self.settling(book, node) or self._heals(book, node, lines)

    def settling(self, book: LoadBook, node: str) -> Refusal | None:
        """Why a node that a pod was moved off or to is left alone."""
        touched = self._touched.get(node)
        if touched is None:
            return None
        earlier = float(book.course[self._context.cluster.rows[node], 0])
        if earlier > touched or self._context.now.timestamp() - touched >= SETTLED_S:
            return None
        return Refusal(
            "Settling", f"node {node} has not been measured twice since a pod was moved off or to it"
        )

    def _heals(self, book: LoadBook, node: str, lines: Mapping[str, float]) -> Refusal | None:
        """Why a node above its lines will soon be below them; None if some resource stays above."""
        cluster = self._context.cluster
        row = cluster.rows[node]
        load, recent, spread = book.load_on(row), book.recent_on(row), book.spread_on(row)
        first: Refusal | None = None
        for resource, (at, column) in RESOURCES.items():
            room = int(cluster.allocatable[row, column]) * PER_COLUMN_UNIT[at]
            if room <= 0 or resource not in lines or 100.0 * load[at] / room <= lines[resource]:
                continue
            line, used, points = lines[resource], 100.0 * load[at] / room, 100.0 * spread[at] / room
            now = 100.0 * recent[at] / room
            if now <= line:
                found = Refusal(
                    "HealsItself",
                    f"node {node} has recently used {now:.1f}% of its {resource}, no more than its target of"
                    f" {line:.1f}%",
                )
            elif used - points <= line:
                found = Refusal(
                    "WithinSpread",
                    f"node {node} uses {used:.1f}% of its {resource}, above its target of {line:.1f}% by no"
                    f" more than its readings vary ({points:.1f} points)",
                )
            else:
                return None
            first = first or found
        return first

    def of_pod(self, book: LoadBook, pod: PodInfo, workload: Workload, strategy: str) -> Refusal | None:
        """Why a pod is not moved because of its node's load."""
        return (
            self._two_yardsticks(pod)
            or self._often(workload)
            or self._memory.still_over(workload.key, strategy, self._over_used(book))
            or self._enough(book, pod)
        )

    def _two_yardsticks(self, pod: PodInfo) -> Refusal | None:
        if scores_by_load(self._profiles, pod) is not False:
            return None
        return Refusal(
            TWO_YARDSTICKS,
            f"profile {pod.pod.spec.scheduler_name} places it without looking at load: enable NodeLoad there",
        )

    def _often(self, workload: Workload) -> Refusal | None:
        since = self._context.now.timestamp() - OWNER_S
        made = sum(self._memory.made_since(workload.key, each, since) for each in self._by_load)
        if made + self._in_flight.get(workload.key, 0) < OWNER_MOVES:
            return None
        return Refusal(
            "OwnerLimit",
            f"{counted(OWNER_MOVES, 'pod')} of {workload.name} were moved by load within the hour",
        )

    def _over_used(self, book: LoadBook) -> frozenset[str]:
        """Nodes that were found over-used, and whose readings since the last move are known."""
        return frozenset(
            node
            for found in self._context.classes
            for node in found.overutilized
            if self.settling(book, node) is None
        )

    def _enough(self, book: LoadBook, pod: PodInfo) -> Refusal | None:
        if not any(self._before):
            return None
        if self._all is None:
            cpu, memory = book.load[: len(self._context.cluster)].sum(axis=0).tolist()
            self._all = cpu, memory
        share = book.of(pod)
        for resource, moved, own, total in zip(
            RESOURCES, self._moved, (share.cpu, share.memory), self._all, strict=True
        ):
            if moved + own > SHARE * total:
                return Refusal(
                    "LoadLimit",
                    f"this run would move more than {SHARE:.0%} of the {resource} that all nodes use",
                )
        return None

    def begin(self) -> None:
        """A proposal is judged: the first one may exceed the share, of however many pods it consists."""
        self._before = self._moved

    def moved(self, book: LoadBook, pod: PodInfo) -> None:
        """Record a planned move; the book still has the pod on its node."""
        share, (cpu, memory) = book.of(pod), self._moved
        self._moved = cpu + share.cpu, memory + share.memory

    def undo(self) -> None:
        """The moves of the present proposal are not made."""
        self._moved = self._before


def scores_by_load(profiles: Mapping[str, Profile], pod: PodInfo) -> bool | None:
    """Whether the pod's scheduler places by load; None for a scheduler that is not ours."""
    profile = profiles.get(pod.pod.spec.scheduler_name)
    return None if profile is None else profile.scores_load
