"""What a descheduling strategy is: a source of candidates that is told the verdict on each.

A strategy walks the cluster and yields pods that had better run elsewhere. The planner that drives it
answers each candidate with a verdict, and the strategy goes on from there::

    verdict = yield Candidate(pod, node, "node is over-utilised: cpu 85% of 50%")
    if verdict is Verdict.NODE_CLOSED:
        break

One shape serves every planner (docs/adr/0005): Upstream answers as descheduler's evictor would, Proven
after it has proved that the pod has a better place. A strategy never evicts.
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, runtime_checkable

from plimsoll.framework.args import NoArgs, PluginArgs
from plimsoll.framework.descheduling.complaints import Destinations
from plimsoll.model.kinds.pod_info import PodInfo

if TYPE_CHECKING:
    from plimsoll.framework.descheduling.context import StrategyContext


class StrategyKind(StrEnum):
    """When a strategy runs: all of the first kind before any of the second; upstream's words."""

    DESCHEDULE = "deschedule"
    BALANCE = "balance"


class Verdict(Enum):
    """The planner's answer to a candidate. A planner that wants no more closes the generator."""

    ACCEPTED = "accepted"  #: the pod goes; from now on the context shows the cluster without it
    REFUSED = "refused"  #: this pod stays; others of the same node may still go
    NODE_CLOSED = "node closed"  #: this pod stays, and so do all others of its node in this cycle


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod stays where it is.

    Attributes:
        reason: One word for machines, to count by (``PodsWithLocalStorage``, ``NodeLimit``).
        message: One sentence for people, with the names that matter.
        yields_to_surge: Whether it speaks against an eviction only: a move that brings the replacement up
            first, and lets the pod go when that is ready, does no harm.
    """

    reason: str
    message: str
    yields_to_surge: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that a strategy would rather see elsewhere. Earlier candidates are preferred to later ones.

    Attributes:
        pod: The pod.
        node: The node that it runs on.
        reason: Why it should go, in one sentence without its name; becomes the record's reason.
        target: The node that it should go to, for pods of our own schedulers only: the target is held, and
            the replacement is sent there if it is feasible, whatever its score. "" leaves the choice to
            the planner.
        destinations: Which nodes serve the strategy's purpose; None means any. A candidate with a target
            needs none.
    """

    pod: PodInfo
    node: str
    reason: str
    target: str = ""
    destinations: Destinations | None = None


@dataclass(frozen=True, slots=True)
class Beneficiary:
    """A pending pod that room is made for, or a gang of them.

    Attributes:
        pod: The pod.
        node: Where it must be feasible once the moves are made; the room is held for it.
        others: Further members of its PodGroup, which must be feasible together with it.
    """

    pod: PodInfo
    node: str
    others: "tuple[Beneficiary, ...]" = ()

    @property
    def all(self) -> "tuple[Beneficiary, ...]":
        """The pod, then the others."""
        return self, *self.others


@dataclass(frozen=True, slots=True)
class Bundle:
    """Candidates of which all go or none does, in this order; the limit for a node does not apply to them.

    Attributes:
        candidates: Who goes; none of a higher priority than the beneficiary.
        beneficiary: Whom it is for: unless it fits when all have gone, none goes.
        one_by_one: Whether candidates of one workload go one after the other, each when the replacement of
            the one before is ready; the limit for a workload then holds for the first of them.
    """

    candidates: tuple[Candidate, ...]
    beneficiary: Beneficiary | None = None
    one_by_one: bool = False


Proposal: TypeAlias = Candidate | Bundle
"""What a planner judges: one pod, or several that stand and fall together."""

Candidates: TypeAlias = Generator[Proposal, Verdict, None]
"""What a strategy returns: proposals out, verdicts in."""


@runtime_checkable
class Strategy(Protocol):
    """A source of candidates."""

    name: ClassVar[str]
    kind: ClassVar[StrategyKind]
    args_model: ClassVar[type[PluginArgs]] = NoArgs

    def candidates(self, context: "StrategyContext") -> Candidates:
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
class NamesSurplus(Protocol):
    """A strategy that proposes nothing where there is no place to go, although something is wrong.

    The Optimal planner counts the surplus, so that a plan is worth nothing that only takes the places away.
    """

    def surplus(self, context: "StrategyContext") -> Candidates:
        """Yield what the strategy would propose if there were places enough; nothing of it is moved."""


@runtime_checkable
class ServesPending(Strategy, Protocol):
    """A strategy that makes room for pending pods: what it proposes is no wish of the pods that move.

    The Optimal planner asks it after it has solved, and goes on with the pods that it leaves.
    """

    @property
    def most_moves(self) -> int:
        """How many pods may move for one that waits."""

    def waiting(self, context: "StrategyContext") -> list[PodInfo]:
        """Pods that fit nowhere as things are and that it may serve, the most important first."""


@runtime_checkable
class Evictor(Protocol):
    """Says which pods may be evicted at all, whoever asks."""

    name: ClassVar[str]
    args_model: ClassVar[type[PluginArgs]] = NoArgs

    def filter(self, pod: PodInfo, context: "StrategyContext") -> Refusal | None:
        """Why the pod is protected, None when it is not; asked while strategies look around."""

    def pre_eviction_filter(self, pod: PodInfo, context: "StrategyContext") -> Refusal | None:
        """Likewise, asked for pods about to be proposed: checks that look at the rest of the cluster."""
