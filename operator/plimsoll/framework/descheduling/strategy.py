"""Strategies: sources of candidates that receive a verdict on each.

A strategy walks the cluster and yields pods that had better run elsewhere. The planner that drives it
answers each candidate with a verdict, and the strategy goes on from there::

    verdict = yield Candidate(pod, node, "node is over-utilised: cpu 85% of 50%")
    if verdict is Verdict.NODE_CLOSED:
        break

One shape serves every planner (docs/adr/0005): Upstream answers as descheduler's evictor would, Proven
after it has proved that the pod has a better place. A strategy never evicts.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Protocol, runtime_checkable

from plimsoll.framework.args import NoArgs, PluginArgs
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Candidates
from plimsoll.model.kinds.pod_info import PodInfo


class StrategyKind(StrEnum):
    """When a strategy runs: all of the first kind before any of the second; upstream's words."""

    DESCHEDULE = "deschedule"
    BALANCE = "balance"


@runtime_checkable
class Strategy(Protocol):
    """A source of candidates."""

    name: ClassVar[str]
    kind: ClassVar[StrategyKind]
    args_model: ClassVar[type[PluginArgs]] = NoArgs

    def __init__(self, args: PluginArgs) -> None:
        """Take the arguments, an instance of ``args_model``."""
        return

    def candidates(self, context: StrategyContext) -> Candidates:
        """Yield candidates, best first; raise when the cluster cannot be judged (missing metrics)."""


@runtime_checkable
class AsksForGain(Protocol):
    """A strategy whose moves must gain more than the policy's margin."""

    def least_gain(self, highest: int) -> int:
        """Points by which the target must beat the pod's own node, where one scores ``highest`` at most."""


@runtime_checkable
class Renewing(Protocol):
    """A strategy whose point may be a fresh pod, not another node: replacements may return to their node."""

    renews: ClassVar[bool]


def wants_restart(strategy: Strategy) -> bool:
    """Whether a fresh pod, not another node, is the strategy's point."""
    return isinstance(strategy, Renewing) and strategy.renews


@runtime_checkable
class LimitsPlanners(Protocol):
    """A strategy that only some planners may drive."""

    planners: ClassVar[frozenset[str]]


def planners_of(strategy: object) -> frozenset[str] | None:
    """The only planners that may drive a strategy (class or instance), None when any may."""
    return strategy.planners if isinstance(strategy, LimitsPlanners) else None


@runtime_checkable
class SpreadsEvenly(Protocol):
    """A strategy that wants the pods of a workload in equal numbers on all feasible nodes."""

    spreads_evenly: ClassVar[bool]


def wants_even_spread(strategy: Strategy) -> bool:
    """Whether the strategy wants the pods of a workload in equal numbers on all feasible nodes."""
    return isinstance(strategy, SpreadsEvenly) and strategy.spreads_evenly


@runtime_checkable
class EmptiesNodes(Protocol):
    """A strategy that moves all pods of a node away; the node is closed to new pods first."""

    empties_nodes: ClassVar[bool]


def empties_nodes(strategy: object) -> bool:
    """Whether the strategy (class or instance) moves all pods of a node away."""
    return isinstance(strategy, EmptiesNodes) and strategy.empties_nodes


@runtime_checkable
class MendsSpread(Strategy, Protocol):
    """A strategy whose complaints are topology spread constraints, which a planner can solve as a program."""

    @property
    def mends_spread(self) -> tuple[str, ...]:
        """The kinds of constraints that it mends, such as ``DoNotSchedule``."""


@runtime_checkable
class MovesByLoad(Protocol):
    """A strategy that may move pods for what nodes use."""

    @property
    def moves_by_load(self) -> bool:
        """Whether it does, with its arguments."""

    def load_lines(self, context: StrategyContext) -> Mapping[str, float]:
        """Percent of a node's room, by resource, above which it finds a node over-used."""


def by_load(strategy: object) -> MovesByLoad | None:
    """The strategy, if it moves pods for what nodes use."""
    return strategy if isinstance(strategy, MovesByLoad) and strategy.moves_by_load else None


@runtime_checkable
class ReadsQueries(Protocol):
    """A strategy that may go by queries of its policy, which may fill the load book as well."""

    def by_load_book(self) -> Strategy:
        """The same by the load book where it goes by queries of what the book has, else itself."""


def by_load_book(strategy: Strategy) -> Strategy:
    """The strategy of a policy whose queries fill the load book."""
    return strategy.by_load_book() if isinstance(strategy, ReadsQueries) else strategy


@runtime_checkable
class SparesPods(Protocol):
    """A strategy that leaves some pods where they are, whatever their nodes use."""

    def spares(self, pod: PodInfo) -> bool:
        """Whether it never moves the pod."""


def spares(strategy: object, pod: PodInfo) -> bool:
    """Whether the strategy never moves the pod."""
    return isinstance(strategy, SparesPods) and strategy.spares(pod)


@runtime_checkable
class NamesSurplus(Protocol):
    """A strategy that proposes nothing where there is no place to go, although something is wrong.

    The Optimal planner counts the surplus, so that a plan is worth nothing that only takes the places away.
    """

    def surplus(self, context: StrategyContext) -> Candidates:
        """Yield what the strategy would propose if there were places enough; nothing of it is moved."""


@runtime_checkable
class ServesPending(Strategy, Protocol):
    """A strategy that makes room for pending pods: what it proposes is no wish of the pods that move.

    The Optimal planner asks it after it has solved, and goes on with the pods that it leaves.
    """

    @property
    def most_moves(self) -> int:
        """How many pods may move for one that waits."""

    def waiting(self, context: StrategyContext) -> list[PodInfo]:
        """Pods that fit nowhere as things are and that it may serve, the most important first."""
