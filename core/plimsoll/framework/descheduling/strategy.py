"""Defines strategies: sources of candidates that receive a verdict on each.

A strategy walks the cluster and yields pods that should move. The planner that runs it sends back a verdict
on each candidate, and the strategy continues::

    verdict = yield Candidate(pod, node, "node is over-utilised: cpu 85% of 50%")
    if verdict is Verdict.NODE_CLOSED:
        break

One interface serves every planner (docs/adr/0005): Upstream answers as descheduler's evictor would, Proven
only after it has proven that the pod has a better place. A strategy never evicts.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import ClassVar, Protocol, runtime_checkable

from plimsoll.framework.args import NoArgs, PluginArgs
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Candidates
from plimsoll.framework.plugin_answers import judged, of_kind
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.structural import Structural


class StrategyKind(StrEnum):
    """When a strategy runs: all Deschedule strategies before any Balance strategy; upstream's words."""

    DESCHEDULE = "deschedule"
    BALANCE = "balance"


@runtime_checkable
class Strategy(Protocol, metaclass=Structural):
    """A source of candidates."""

    name: ClassVar[str]
    kind: ClassVar[StrategyKind]
    args_model: ClassVar[type[PluginArgs]] = NoArgs

    def __init__(self, args: PluginArgs) -> None:
        """Take the arguments, an instance of ``args_model``."""
        return

    def candidates(self, context: StrategyContext) -> Candidates:
        """Yield candidates, best first; raise if the cluster cannot be judged (missing metrics)."""


@runtime_checkable
class AsksForGain(Protocol, metaclass=Structural):
    """A strategy whose moves must gain more than the policy's minimum."""

    def least_gain(self, highest: int) -> int:
        """Points by which the target must exceed the pod's own node; ``highest``: the highest score."""


@runtime_checkable
class Renewing(Protocol, metaclass=Structural):
    """A strategy whose purpose may be a fresh pod, not another node: replacements may keep their node."""

    renews: ClassVar[bool]


def wants_restart(strategy: Strategy) -> bool:
    """Whether the strategy's purpose is a fresh pod, not another node."""
    return isinstance(strategy, Renewing) and strategy.renews


@runtime_checkable
class LimitsPlanners(Protocol, metaclass=Structural):
    """A strategy that only some planners may run."""

    planners: ClassVar[frozenset[str]]


def planners_of(strategy: object) -> frozenset[str] | None:
    """The only planners that may run a strategy (class or instance), None if any may."""
    return strategy.planners if isinstance(strategy, LimitsPlanners) else None


@runtime_checkable
class SpreadsEvenly(Protocol, metaclass=Structural):
    """A strategy that wants the pods of a workload in equal numbers on all feasible nodes."""

    spreads_evenly: ClassVar[bool]


def wants_even_spread(strategy: Strategy) -> bool:
    """Whether the strategy wants the pods of a workload in equal numbers on all feasible nodes."""
    return isinstance(strategy, SpreadsEvenly) and strategy.spreads_evenly


@runtime_checkable
class EmptiesNodes(Protocol, metaclass=Structural):
    """A strategy that moves all pods of a node away; the node is closed to new pods first."""

    empties_nodes: ClassVar[bool]


def empties_nodes(strategy: object) -> bool:
    """Whether the strategy (class or instance) moves all pods of a node away."""
    return isinstance(strategy, EmptiesNodes) and strategy.empties_nodes


@runtime_checkable
class NamesNodes(Protocol, metaclass=Structural):
    """A strategy whose arguments name the nodes that it empties, now or later."""

    @property
    def to_empty(self) -> frozenset[str]:
        """Their names; no pod is moved there."""


def nodes_to_empty(strategies: Iterable[Strategy]) -> frozenset[str]:
    """The nodes that the arguments of these strategies name."""
    return frozenset[str]().union(*(each.to_empty for each in strategies if isinstance(each, NamesNodes)))


@runtime_checkable
class Ordered(Protocol, metaclass=Structural):
    """A strategy that does what a person has ordered, such as to empty a node."""

    is_ordered: ClassVar[bool]


def is_ordered(strategy: Strategy) -> bool:
    """Whether a person has ordered the strategy's moves."""
    return isinstance(strategy, Ordered) and strategy.is_ordered


@runtime_checkable
class MendsSpread(Strategy, Protocol):
    """A strategy whose complaints are topology spread constraints, which a planner can solve as a program."""

    @property
    def mends_spread(self) -> tuple[str, ...]:
        """The kinds of constraints that it repairs, such as ``DoNotSchedule``."""


@runtime_checkable
class MovesByLoad(Strategy, Protocol):
    """A strategy that may move pods because of the load of nodes."""

    @property
    def moves_by_load(self) -> bool:
        """Whether it does, given its arguments."""

    def load_lines(self, context: StrategyContext) -> Mapping[str, float]:
        """Percent of a node's allocatable, by resource, above which it finds a node over-used."""


def by_load(strategy: object) -> MovesByLoad | None:
    """The strategy, if it moves pods because of load."""
    return strategy if isinstance(strategy, MovesByLoad) and strategy.moves_by_load else None


def load_lines_of(strategy: MovesByLoad, context: StrategyContext) -> Mapping[str, float]:
    """What ``load_lines`` returns.

    Raises:
        PluginError: It raised, or returned something else.
    """
    return of_kind(
        judged(strategy.name, strategy.kind, strategy.load_lines, context),
        Mapping,  # type: ignore[type-abstract] # for isinstance
        strategy.name,
        strategy.kind,
    )


@runtime_checkable
class ReadsQueries(Strategy, Protocol):
    """A strategy that may use the policy's queries, which may fill the load book as well."""

    def by_load_book(self) -> Strategy:
        """A strategy that uses the load book if its queries measure what the book has, else this one."""


def by_load_book(strategy: Strategy) -> Strategy:
    """The strategy to use in a policy whose queries fill the load book."""
    if not isinstance(strategy, ReadsQueries):
        return strategy
    return judged(strategy.name, strategy.kind, strategy.by_load_book)


@runtime_checkable
class SparesPods(Strategy, Protocol):
    """A strategy that leaves some pods in place, whatever their nodes use."""

    def spares(self, pod: PodInfo) -> bool:
        """Whether it never moves the pod."""


def spares(strategy: object, pod: PodInfo) -> bool:
    """Whether the strategy never moves the pod."""
    return isinstance(strategy, SparesPods) and bool(
        judged(strategy.name, strategy.kind, strategy.spares, pod)
    )


@runtime_checkable
class NamesSurplus(Protocol, metaclass=Structural):
    """A strategy that proposes nothing without a target, although something is wrong.

    The Optimal planner counts the surplus, so that a plan gains nothing by merely filling the targets.
    """

    def surplus(self, context: StrategyContext) -> Candidates:
        """Yield what the strategy would propose if there were enough targets; none of it is moved."""


@runtime_checkable
class ServesPending(Strategy, Protocol):
    """A strategy that makes room for pending pods: its proposals are not wishes about the moved pods.

    The Optimal planner runs it after it has solved, and continues with the pods that stay pending.
    """

    @property
    def most_moves(self) -> int:
        """Maximum number of pods that may move for one pending pod."""

    def waiting(self, context: StrategyContext) -> list[PodInfo]:
        """Pods that fit nowhere at present and that it may serve, the most important first."""
