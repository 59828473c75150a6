"""Input and output of planners: the policy as plain values, the context, moves and rejected candidates."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.engine.profile import Profile
from plimsoll.framework import PluginError, PodInfo
from plimsoll.framework.descheduling.context import Evictor
from plimsoll.framework.descheduling.measurements import Measurements, NodeClasses, Planner
from plimsoll.framework.descheduling.proposals import Beneficiary, Refusal
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.load.load_change import LoadChange
from plimsoll.load.summary import LoadSummary
from plimsoll.model.columns.admitted_shapes import as_admitted
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.selectors import EVERYTHING, Selector
from plimsoll.model.taints import UNHEALTHY, is_marked_unhealthy
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.history import MoveHistory, UnreadyReplacement
from plimsoll.planning.limits import Ceiling, Limits, Workload, workload_key
from plimsoll.planning.surges import Deployments, Surge
from plimsoll.toolkit.descheduling.disruption_signals import removal

#: Why a node is no target, as a clause.
TO_BE_EMPTIED = "is to be emptied"

#: The least gain if only the score justifies a move, as a share of the possible maximum.
SCORE_GAIN = 0.01


#: Maximum number of nodes that are recorded as equal to the target of a forecast.
MOST_EQUALS = 16


class Objective(StrEnum):
    """The objective of a plan."""

    FEWEST_VIOLATIONS = "FewestViolations"  #: pods where no strategy wants them, domains beyond maxSkew
    SMALLEST_SPREAD = "SmallestSpread"  #: nodes in use to the same degree
    FEWEST_NODES = "FewestNodes"  #: nodes without pods that could leave


class Goal(Struct, frozen=True):
    """The task of the Optimal planner.

    Attributes:
        move_price: The price of a move, in units of the objective: a violation is worth 1,000, a freed node
            20, a percentage point of one node's distance from the mean 1, and one above a line by load 20.
    """

    objective: Objective = Objective.FEWEST_VIOLATIONS
    seconds: float = 10.0
    move_price: float = 1.0


class Optimisation(Struct, frozen=True):
    """The quality of an Optimal plan.

    Attributes:
        value: The objective after all moves, with their price, by the strategies' wishes then.
        bound: No plan is better than this while the strategies' wishes stay the same; 0 proves nothing.
        proven: The objective after the Proven planner's moves.
        moves: Number of moves in total; the limits may allow fewer in one cycle.
        seconds: Spent on the search.
        waiting: Pending pods that fitted nowhere and that a strategy would serve.
        served: Number of pending pods that the moves make room for.
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
        """The maximum distance of the value from the best, as a share of it; 0 is proven optimal."""
        return max(self.value - self.bound, 0.0) / max(abs(self.value), 1e-9)


class HoldReason(StrEnum):
    """Why a policy makes no move at all."""

    STOPPED = "Stopped"  #: the stop button is pressed
    NOT_ALLOWED = "NotAllowed"  #: rights are missing
    PODS_DISPLACED = "PodsDisplaced"  #: pods have lost their places
    NODES_UNHEALTHY = "NodesUnhealthy"  #: half of the cluster looks unhealthy
    RESTING = "Resting"  #: moves kept failing or returning


class PolicyFigures(Struct, frozen=True, kw_only=True):
    """What planners read of ``spec.rebalancing`` unchanged: fields of the same names are carried over.

    Attributes:
        anomaly_rounds: Cycles in a row in which a node must be over-used before pods are moved off it for
            that; planner Upstream does not wait.
        minimum_gain_percent: Percentage of the possible maximum by which the target's total must at least
            exceed that of the pod's own node, if that is still feasible. None requires ``SCORE_GAIN`` where
            only the score justifies a move, and no gain where the strategy's complaints decide.
        minimum_forecast_hit_percent: Percentage of forecasts that must have come true for further ones to be
            made; None asks for none.
        deletion_costs: Whether pods that the plan wants gone are named in it.
    """

    anomaly_rounds: int = 1
    minimum_gain_percent: int | None = None
    minimum_forecast_hit_percent: int | None = None
    deletion_costs: bool = False


class RebalancingConfig(PolicyFigures, frozen=True):
    """A policy in plain values.

    Attributes:
        strategies: In the policy's order; Deschedule strategies still run before Balance ones.
        evictors: Evictors in calling order; put the policy's scope first.
        own_evictors: Evictors that replace them, by position of a strategy; for planner Upstream.
        profiles: Profiles by scheduler name, which place the replacements.
        forecasts: The profiles assumed for other schedulers.
        targets: Nodes that may be targets.
        planner: The planner's name.
        surge: Whether pods that are protected from eviction are moved by a rollout of their Deployment.
        hold: Why no move is made whatever the plan says, such as a stop; None if moves are made.
        distrust: Why pods whose targets are forecasts stay for now; None if they may go.
        leaving: Names of nodes that are to be emptied, by this policy or another: no pod is moved there.
    """

    strategies: Sequence[Strategy]
    evictors: Sequence[Evictor]
    profiles: Mapping[str, Profile]
    forecasts: Forecasts = Forecasts()
    limits: Limits = field(default_factory=Limits)
    nodes: Selector = EVERYTHING
    targets: Selector = EVERYTHING
    planner: Planner = Planner.PROVEN
    goal: Goal = Goal()
    surge: bool = False
    own_evictors: Mapping[int, Sequence[Evictor]] = field(default_factory=dict)
    hold: Refusal | None = None
    distrust: Refusal | None = None
    leaving: frozenset[str] = frozenset()

    def profile_of(self, pod: PodInfo) -> Profile | None:
        """The profile that places the pod's replacement; None if none is known or assumed."""
        return self.forecasts.profile_of(pod.pod.spec.scheduler_name, self.profiles)

    def held(self, reason: HoldReason, message: str) -> "RebalancingConfig":
        """The same policy, whose moves are all refused; an earlier hold stays."""
        return self if self.hold is not None else replace(self, hold=Refusal(reason.value, message))

    def bounded(self, breaker: str, most: int) -> "RebalancingConfig":
        """The same policy with at most so many evictions; refusals name the breaker."""
        budgets = (*self.limits.budgets, (breaker, Ceiling(count=most)))
        return replace(self, limits=replace(self.limits, budgets=budgets))

    def rested(self, memory: MoveHistory, policy: str) -> "RebalancingConfig":
        """The same policy while it rests after fruitless moves: no moves for a while, then one."""
        least, (resting, may_try) = self.minimum_forecast_hit_percent, memory.rest(policy)
        known = self if least is None else replace(self, distrust=memory.distrust(policy, least / 100))
        if resting and not may_try:
            return known.held(HoldReason.RESTING, resting)
        return known.bounded("rest after fruitless moves", 1) if resting else known

    def evictors_of(self, position: int) -> tuple[Evictor, ...]:
        """The evictors for the strategy at a position."""
        return tuple(self.own_evictors.get(position, self.evictors))

    def is_target(self, node: Node) -> bool:
        """Whether the node may be a target."""
        return not self.exclusion(node)

    def exclusion(self, node: Node) -> str:
        """Why the node may be no target, as a clause; "" if it may."""
        if not (self.targets.is_empty or self.targets.matches(node.labels)):
            return "is excluded by the policy's target selector"
        if node.name in self.leaving:
            return TO_BE_EMPTIED
        return f"has the taint {UNHEALTHY}" if is_marked_unhealthy(node) else removal(node)


#: Monotonic seconds. Planning reads no clock of its own: the caller of a plan gives it one.
Monotonic = Callable[[], float]


def standing() -> float:
    """A clock that stands still: then only what the parts of a search report takes time."""
    return 0.0


class PlanningContext(Struct, frozen=True):
    """The input of a plan in addition to the placed pods.

    Attributes:
        now: The time, with time zone.
        unplaced: Pods without a place, such as pending and ended ones.
        in_flight: Evictions of earlier cycles whose replacements are not ready yet, by workload key.
        recent: Evictions of the policy within the last minute, including those about to be sent without a
            plan.
        hourly: Moves of all policies within the last hour, by namespace; counted where there are rules.
        over_for: Earlier cycles in a row in which a strategy found a node over-used, by both their names.
        too_early: Names of strategies and nodes where this count does not suffice in this cycle either; set
            by the Optimal planner, so that its look-ahead uses the same rule.
        deployments: Deployments whose pods may be surged.
        others: Other live policies, keyed by name, whose strategies must not get new complaints.
        moved: Uids of pods that resulted from a move within the last hour; they stay.
        moving: Uids of pods that an earlier move is about to take off their node; none plans them again.
        gangs: By PodGroup (``namespace/name``), the number of members that must still get a node together;
            without groups that cannot start yet for another reason than room.
        touched: By node, when a pod was last moved off or to it, in seconds since the epoch.
        unready: By workload key, the replacement of an earlier move that is still not ready.
        replaced: For a move that is judged again: uids of pods that the policy moves or has moved, by the uid
            of what takes the place of each, which counts with its measured use until it is measured itself.
        monotonic: The clock by which searches end.
    """

    now: datetime
    unplaced: Iterable[PodInfo] = ()
    in_flight: Mapping[str, int] = field(default_factory=dict)
    measurements: Measurements = field(default_factory=Measurements)
    memory: MoveHistory = field(default_factory=MoveHistory)
    recent: int = 0
    hourly: Mapping[str, int] = field(default_factory=dict)
    over_for: Mapping[tuple[str, str], int] = field(default_factory=dict)
    too_early: frozenset[tuple[str, str]] = frozenset()
    deployments: Deployments = field(default_factory=Deployments)
    others: Mapping[str, "RebalancingConfig"] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()
    moving: frozenset[str] = frozenset()
    gangs: Mapping[str, int] = field(default_factory=dict)
    touched: Mapping[str, float] = field(default_factory=dict)
    unready: Mapping[str, UnreadyReplacement] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)
    monotonic: Monotonic = standing


class Move(Struct, frozen=True):
    """A pod to evict, and the expected node of its replacement.

    Attributes:
        target: The node that the scheduler chooses; "" for a pod that has ended and needs no place.
        gain: Points by which the target's total exceeds the own node's, below 0 if the strategy's complaints
            decided; None if the own node is infeasible, or is the target.
        maximum: The highest possible score; None if nothing was scored.
        ties: Number of nodes with the target's score; the scheduler may choose any of them.
        is_forecast: Whether the target is not proven: another scheduler places the replacement, or the
            planner proves no place.
        budget: The PodDisruptionBudget that covers it (``namespace/name``), or "".
        planner: The planner that decided the move.
        is_directed: Whether the replacement is sent to the target if that is feasible, rather than being
            expected there as the scheduler's best node.
        bundle: Identifies moves that are made all or none, or "".
        part: The move's number within the bundle, from 1, and the bundle's size.
        beneficiary: The pending pod that the bundle makes room for, or None.
        group: The group that leaves whole by the moves of the bundle, or "".
        whole: Uids of the pods of these moves; empty without such a group.
        price: Price an hour of the node that the bundle empties, or "".
        waits: Whether it starts only when no other move of its workload is under way.
        surge: The rollout that moves the pod instead of an eviction, or None.
        unsurged: Why it is evicted though the policy asks for surges, in a clause; "" if it does not.
        renews: Whether its purpose is a fresh pod, so that the pod's own node is as good as another.
        load: Its effect on the load of both nodes, for a strategy that moves pods by load.
        proven_with: What the replacement requests otherwise than the pod, as a clause; "" for nothing.
        equals: Other nodes with the target's score, sorted, at most ``MOST_EQUALS``; only for forecasts.
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
    group: str = ""
    whole: frozenset[str] = frozenset()
    waits: bool = False
    surge: Surge | None = None
    unsurged: str = ""
    maximum: int | None = None
    renews: bool = False
    load: LoadChange | None = None
    equals: tuple[str, ...] = ()
    proven_with: str = ""
    price: str = ""


class Refused(Struct, frozen=True):
    """A pod that a strategy proposed and that stays.

    Attributes:
        wanted: Why the strategy proposed it.
    """

    pod: PodInfo
    strategy: str
    wanted: str
    refusal: Refusal


class RefusalCounts(Struct, frozen=True):
    """Counts of a plan.

    Attributes:
        considered: Number of proposed pods.
        refusals: Number of refusals by machine reason, the most frequent first.
        pods: Number of refused pods by machine reason; a pod counts once per reason.
        violations: Number of pods with complaints, by strategy, whether they move or stay.
    """

    considered: int
    refusals: Mapping[str, int]
    pods: Mapping[str, int]
    violations: Mapping[str, int]


class EvictionPlan(Struct, frozen=True):
    """The moves, and why there are no more.

    Attributes:
        moves: In the planned order; each was proven with all earlier ones made.
        refused: Every other proposed pod; if ``counts`` are set, only examples.
        optimisation: The quality of the plan, for planner Optimal.
        imbalance: The imbalance of the nodes before the moves, in percentage points by resource and kind of
            usage.
        load: The load of the policy's nodes before the moves, if strategies move pods by load.
        hot: The nodes that these strategies found over-used, sorted.
        unwanted: Uids of pods that should go first where their owners shrink; only if the policy asks.
        later: Names and uids of nodes that would be emptied but for a limit or a budget; only if the policy
            asks.
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
    unwanted: tuple[str, ...] = ()
    later: frozenset[tuple[str, str]] = frozenset()

    def held(self, hold: Refusal | None) -> "EvictionPlan":
        """The plan without moves: all are refused by the hold, if there is one."""
        if hold is None or not self.moves:
            return self
        stay = tuple(Refused(each.pod, each.strategy, each.reason, hold) for each in self.moves)
        return replace(self, moves=(), refused=(*stay, *self.refused))

    def counted(self) -> RefusalCounts:
        """Its counts."""
        return self.counts or RefusalCounts(
            self.considered, self.refused_by_reason(), self.refused_pods(), self.violations()
        )

    @property
    def considered(self) -> int:
        """Number of proposed pods."""
        if self.counts is not None:
            return self.counts.considered
        return len({each.pod.uid for each in self.moves} | {each.pod.uid for each in self.refused})

    def refused_by_reason(self) -> dict[str, int]:
        """Number of refusals by machine reason, the most frequent first."""
        if self.counts is not None:
            return dict(self.counts.refusals)
        return dict(Counter(each.refusal.reason for each in self.refused).most_common())

    def refused_pods(self) -> dict[str, int]:
        """Number of refused pods by machine reason; a pod counts once per reason."""
        if self.counts is not None:
            return dict(self.counts.pods)
        return dict(Counter(reason for reason, _ in {(e.refusal.reason, e.pod.uid) for e in self.refused}))

    def violations(self) -> dict[str, int]:
        """Number of pods with complaints, by strategy, whether they move or stay."""
        if self.counts is not None:
            return dict(self.counts.violations)
        moved = {(each.strategy, each.pod.uid) for each in self.moves}
        stay = {(each.strategy, each.pod.uid) for each in self.refused}
        return dict(Counter(strategy for strategy, _ in moved | stay))


def replacement_of(pod: PodInfo, cluster: Cluster, node: str = "", *, learns: bool = True) -> PodInfo:
    """The replacement that the owner will create, as planners place it on forks; on a node if given.

    It requests what the owner's newest pod does if that is more, unless nothing is learnt.
    """
    like = as_admitted(pod, cluster) if learns else pod
    return cluster.templates.stand_in(like, _replacement(pod), node=node)


def replacement_uid(pod: PodInfo) -> str:
    """The uid of the pod's :func:`replacement_of`."""
    return _replacement(pod).uid


def _replacement(pod: PodInfo) -> Holder:
    return Holder(HolderKind.REPLACEMENT, pod.uid)


def workload_of(pod: PodInfo) -> Workload:
    """The owner that keeps the number of such pods, or the pod itself."""
    owner = pod.pod.metadata.owner
    if owner is None:
        return Workload(workload_key(pod.namespace, pod.uid), f"pod {pod.key}")
    return Workload(workload_key(pod.namespace, owner.uid), f"{owner.kind} {pod.namespace}/{owner.name}")
