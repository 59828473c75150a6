"""Input and output of planners: the policy as plain values, the context, moves and rejected candidates."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from plimsoll.engine.profile import Profile
from plimsoll.framework import PluginError, PodInfo
from plimsoll.framework.descheduling.context import Evictor
from plimsoll.framework.descheduling.measurements import Measurements, NodeClasses, Planner
from plimsoll.framework.descheduling.proposals import Beneficiary, Refusal
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.load.load_change import LoadChange
from plimsoll.load.summary import LoadSummary
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.selectors import EVERYTHING, Selector
from plimsoll.planning.history import Memory
from plimsoll.planning.limits import Limits, Workload
from plimsoll.planning.surges import Deployments, Surge

#: The least gain where only the score speaks for a move, as a share of the possible maximum.
SCORE_GAIN = 0.01


class Objective(StrEnum):
    """What the plan is to bring about."""

    FEWEST_VIOLATIONS = "FewestViolations"  #: pods where no strategy wants them, domains beyond maxSkew
    SMALLEST_SPREAD = "SmallestSpread"  #: nodes in use to the same degree
    FEWEST_NODES = "FewestNodes"  #: nodes without pods that could leave


@dataclass(frozen=True, slots=True)
class Goal:
    """What the Optimal planner is asked.

    Attributes:
        move_price: What a move costs, in units of the objective: a violation is worth 1,000, a freed node
            20, a percentage point of one node's distance from the mean 1, and one above a line by load 20.
    """

    objective: Objective = Objective.FEWEST_VIOLATIONS
    seconds: float = 10.0
    move_price: float = 1.0


@dataclass(frozen=True, slots=True)
class Optimisation:
    """How good an Optimal plan is.

    Attributes:
        value: After all moves, each priced, by what strategies would want then.
        bound: No plan is better than this while strategies want what they want now; 0 says nothing.
        proven: What the Proven planner's moves come to.
        moves: How many moves lead there; the limits may allow fewer in one cycle.
        seconds: Spent on the search.
        waiting: Pending pods that fitted nowhere and that a strategy would serve.
        served: How many pending pods the moves make room for.
    """

    objective: Objective
    before: float
    value: float
    bound: float
    proven: float
    moves: int
    seconds: float
    waiting: int = 0
    served: int = 0

    @property
    def gap(self) -> float:
        """How far the value may be from the best, as a share of it; 0 is proven best."""
        return max(self.value - self.bound, 0.0) / max(abs(self.value), 1e-9)


@dataclass(frozen=True, slots=True)
class RebalancingConfig:
    """What a policy asks for, in plain values.

    Attributes:
        strategies: In the policy's order; Deschedule strategies run before Balance ones all the same.
        evictors: Who protects pods, in the order asked; put the policy's scope first.
        own_evictors: Who does in their place, by position of a strategy; for planner Upstream.
        profiles: By scheduler name: they place the replacements.
        forecast: Stands in for schedulers that are not ours; None refuses their pods.
        targets: Nodes that replacements may be expected on.
        minimum_gain: Share of the possible maximum by which the target's total must at least beat that of the
            pod's own node, if that would still take it. None asks for ``SCORE_GAIN`` where only the score
            speaks for a move, and for no gain where the strategy's complaints decide.
        planner: Who decides about candidates.
        anomaly_rounds: Cycles in a row in which a node must be found over-used before pods are moved off it
            for that; planner Upstream does not wait.
        surge: Whether pods that must not be missed are moved by a rollout of their Deployment.
    """

    strategies: Sequence[Strategy]
    evictors: Sequence[Evictor]
    profiles: Mapping[str, Profile]
    forecast: Profile | None = None
    limits: Limits = field(default_factory=Limits)
    nodes: Selector = EVERYTHING
    targets: Selector = EVERYTHING
    minimum_gain: float | None = None
    planner: Planner = Planner.PROVEN
    goal: Goal = Goal()
    anomaly_rounds: int = 1
    surge: bool = False
    own_evictors: Mapping[int, Sequence[Evictor]] = field(default_factory=dict)

    def evictors_of(self, position: int) -> tuple[Evictor, ...]:
        """Whom the strategy at a position asks."""
        return tuple(self.own_evictors.get(position, self.evictors))

    def is_target(self, node: Node) -> bool:
        """Whether replacements may be expected on the node."""
        return self.targets.is_empty or self.targets.matches(node.labels)


@dataclass(frozen=True, slots=True)
class PlanningContext:
    """What surrounds the placed pods when a plan is made.

    Attributes:
        now: The time, with a time zone.
        unplaced: Pods that hold no place, as pending and ended ones.
        in_flight: Evictions of earlier cycles whose replacements are not ready yet, by workload uid.
        recent: Evictions of the policy within the last minute, and those that will be sent without a plan.
        over_for: Earlier cycles in a row in which a strategy found a node over-used, by both their names.
        too_early: Names of strategies and nodes where that is not often enough in this cycle either; the
            Optimal planner sets it, so that what it looks ahead to is judged alike.
        deployments: Owners of pods that may be surged.
        others: Other live policies, keyed by name, whose strategies must not be given new complaints.
        moved: Uids of pods that are the outcome of a move within the last hour; they stay where they are.
        gangs: How many members of a PodGroup (``namespace/name``) must yet get a node together; one that
            cannot be started yet, whatever room there is, is missing.
        touched: When a pod was last moved off or to a node, in seconds since the epoch, by node.
    """

    now: datetime
    unplaced: Iterable[PodInfo] = ()
    in_flight: Mapping[str, int] = field(default_factory=dict)
    measurements: Measurements = field(default_factory=Measurements)
    memory: Memory = field(default_factory=Memory)
    recent: int = 0
    over_for: Mapping[tuple[str, str], int] = field(default_factory=dict)
    too_early: frozenset[tuple[str, str]] = frozenset()
    deployments: Deployments = field(default_factory=Deployments)
    others: Mapping[str, "RebalancingConfig"] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()
    gangs: Mapping[str, int] = field(default_factory=dict)
    touched: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """One pod to be evicted, and where its replacement is expected.

    Attributes:
        target: The node that the scheduler chooses; "" for a pod that ended and needs no place.
        gain: Points by which the target's total beats the own node's, below 0 where the strategy's complaints
            decided; None when the own node is not feasible, or the target is the own node.
        maximum: Points that a node can score at most; None when nothing was scored.
        ties: How many nodes score as well as the target; the scheduler may take any of them.
        is_forecast: Whether nothing vouches for the target: another scheduler places the
            replacement, or the planner proves no place.
        budget: The PodDisruptionBudget that covers it (``namespace/name``), or "".
        planner: Who decided it.
        is_directed: Whether the target was chosen for the replacement, which is sent there if it is
            feasible, instead of being expected there as the scheduler's best.
        bundle: What tells moves that stand and fall together from others, or "".
        part: Which of how many moves of the bundle it is, from 1.
        beneficiary: The pending pod that all moves of the bundle make room for, or None.
        waits: Whether it is made only when no other move of its workload is under way.
        surge: The rollout that moves the pod instead of an eviction, or None.
        renews: Whether a fresh pod is the point, so that its own node is as good as another.
        load: What it does to the load of both nodes, for a strategy that moves pods by load.
    """

    pod: PodInfo
    strategy: str
    reason: str
    source: str
    target: str
    gain: int | None
    ties: int
    is_forecast: bool
    workload: Workload
    budget: str = ""
    planner: Planner = Planner.PROVEN
    is_directed: bool = False
    bundle: str = ""
    part: tuple[int, int] = (1, 1)
    beneficiary: Beneficiary | None = None
    waits: bool = False
    surge: Surge | None = None
    maximum: int | None = None
    renews: bool = False
    load: LoadChange | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod that a strategy wanted to move and that stays.

    Attributes:
        wanted: Why.
    """

    pod: PodInfo
    strategy: str
    wanted: str
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class RefusalCounts:
    """What a plan says of pods in numbers.

    Attributes:
        considered: Pods that strategies wanted to move.
        refusals: How many there were, by machine reason, the most frequent first.
        pods: The same by pods: each counts once for a reason.
        violations: Pods that each strategy complained about, whether they move or stay.
    """

    considered: int
    refusals: Mapping[str, int]
    pods: Mapping[str, int]
    violations: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class EvictionPlan:
    """What to do, and why not more.

    Attributes:
        moves: In the order planned; each was proved with all before it made.
        refused: Every other pod that a strategy wanted to move; with ``counts``, examples of them.
        optimisation: How good the plan is, by planner Optimal.
        imbalance: How unevenly the nodes were used before the moves, in percentage points by resource and
            kind of usage.
        load: Of the nodes of the policy before the moves, where strategies move pods by load.
        hot: The nodes that such strategies found over-used, sorted.
    """

    moves: tuple[Move, ...]
    refused: tuple[Refused, ...]
    failures: tuple[PluginError, ...] = ()
    classes: tuple[tuple[str, NodeClasses], ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    optimisation: Optimisation | None = None
    imbalance: Mapping[tuple[str, str], float] = field(default_factory=dict)
    counts: RefusalCounts | None = None
    load: LoadSummary | None = None
    hot: tuple[str, ...] = ()

    def counted(self) -> RefusalCounts:
        """What it says in numbers."""
        return self.counts or RefusalCounts(
            self.considered, self.refused_by_reason(), self.refused_pods(), self.violations()
        )

    @property
    def considered(self) -> int:
        """How many pods strategies wanted to move."""
        if self.counts is not None:
            return self.counts.considered
        return len({each.pod.uid for each in self.moves} | {each.pod.uid for each in self.refused})

    def refused_by_reason(self) -> dict[str, int]:
        """How many refusals there were, by machine reason, the most frequent first."""
        if self.counts is not None:
            return dict(self.counts.refusals)
        return dict(Counter(each.refusal.reason for each in self.refused).most_common())

    def refused_pods(self) -> dict[str, int]:
        """How many pods were refused, by machine reason: each counts once for a reason."""
        if self.counts is not None:
            return dict(self.counts.pods)
        return dict(Counter(reason for reason, _ in {(e.refusal.reason, e.pod.uid) for e in self.refused}))

    def violations(self) -> dict[str, int]:
        """How many pods each strategy complained about, whether they move or stay."""
        if self.counts is not None:
            return dict(self.counts.violations)
        moved = {(each.strategy, each.pod.uid) for each in self.moves}
        stay = {(each.strategy, each.pod.uid) for each in self.refused}
        return dict(Counter(strategy for strategy, _ in moved | stay))


def replacement_of(pod: PodInfo, cluster: Cluster, node: str = "") -> PodInfo:
    """The pod that the owner will create in its place, as planners put it on forks; maybe on a node."""
    return cluster.templates.stand_in(pod, _replacement(pod), node=node)


def replacement_uid(pod: PodInfo) -> str:
    """The uid under which :func:`replacement_of` this pod counts."""
    return _replacement(pod).uid


def _replacement(pod: PodInfo) -> Holder:
    return Holder(HolderKind.REPLACEMENT, pod.uid)


def workload_of(pod: PodInfo) -> Workload:
    """The owner that keeps the number of such pods, or the pod itself."""
    metadata = pod.pod.metadata
    owner = metadata.controller or next(iter(metadata.owner_references), None)
    if owner is None:
        return Workload(pod.uid, f"pod {pod.key}")
    return Workload(owner.uid, f"{owner.kind} {pod.namespace}/{owner.name}")
