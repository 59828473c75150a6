"""The Proven planner: which pods to move where, each move proved on a cluster that holds the others.

Candidates come from the strategies in order; each passes, or is refused with a reason, at

1. the policy's evictors (again, strategies ask them too) and a pod is moved once in a plan;
2. the limits: total, node, namespace, workload;
3. the PodDisruptionBudget that covers it, counting the moves planned so far;
4. the memory: moves of its owner that came to nothing, a budget that has just said no;
5. the proof: on a fork of the cluster with the pod gone and all moves planned so far made, its
   replacement is put before the scheduler that will place it. The highest score must belong to other
   nodes than its own, or it would only come back.

The move is then booked in the fork, so that two pods never count on one place, and the strategies see the
cluster as it will be. Same input, same plan. ``revalidate`` asks the same questions of the present
cluster, right before the eviction.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from plimsoll.engine.budgets import BudgetLedger
from plimsoll.engine.cycle import Scheduler
from plimsoll.engine.limits import NO_CEILING, LimitLevel, Limits, Tally, Workload
from plimsoll.engine.memory import Memory
from plimsoll.engine.profile import Profile
from plimsoll.engine.runtime import calling
from plimsoll.engine.strategy_run import run_strategy
from plimsoll.framework import Cluster, PluginError, PodInfo
from plimsoll.framework.strategy import Candidate, Evictor, Refusal, Strategy, StrategyKind, Verdict
from plimsoll.framework.strategy_context import (
    Measurements,
    NodeClasses,
    OwnerCounts,
    Planner,
    StrategyContext,
    UnplacedPods,
    considered_nodes,
)
from plimsoll.model.meta import ObjectMeta
from plimsoll.model.pod import PodStatus
from plimsoll.model.selectors import EVERYTHING, Selector

REPLACEMENT = "replacement-of-"
"""What the uids of pods begin with that are expected and not there yet."""


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """What a policy asks for, in plain values.

    Attributes:
        strategies: In the policy's order; Deschedule strategies run before Balance ones all the same.
        evictors: Who protects pods, in the order asked; put the policy's scope first.
        profiles: Plugins by scheduler name: who places the replacements.
        forecast: Stands in for schedulers that are not ours; None refuses their pods.
        limits: Ceilings of one cycle.
        nodes: Nodes under consideration, whose pods may go.
        targets: Nodes that replacements may be expected on.
        margin: Points by which the target's total must at least beat that of the pod's own node.
    """

    strategies: Sequence[Strategy]
    evictors: Sequence[Evictor]
    profiles: Mapping[str, Profile]
    forecast: Profile | None = None
    limits: Limits = field(default_factory=Limits)
    nodes: Selector = EVERYTHING
    targets: Selector = EVERYTHING
    margin: int = 1


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What surrounds the placed pods when a plan is made.

    Attributes:
        now: The time, with a time zone.
        unplaced: Pods that hold no place, as pending and ended ones.
        in_flight: Evictions of earlier cycles whose replacements are not ready yet, by workload uid.
        measurements: Actual usage.
        memory: What past moves teach.
        recent: Evictions of the policy within the last minute.
    """

    now: datetime
    unplaced: Iterable[PodInfo] = ()
    in_flight: Mapping[str, int] = field(default_factory=dict)
    measurements: Measurements = field(default_factory=Measurements)
    memory: Memory = field(default_factory=Memory)
    recent: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """One pod to be evicted, and where its replacement is expected.

    Attributes:
        pod: The pod as it was when the move was planned.
        strategy: Who proposed it.
        reason: Why, in one sentence.
        source: The node that it runs on.
        target: The node that the scheduler chooses; "" for a pod that ended and needs no place.
        gain: Points by which the target's total beats the own node's; None when that is not feasible.
        ties: How many nodes score as well as the target; the scheduler may take any of them.
        is_forecast: Whether somebody else's scheduler places the replacement.
        workload: Whose pod it is.
        budget: The PodDisruptionBudget that covers it (``namespace/name``), or "".
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


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod that a strategy wanted to move and that stays.

    Attributes:
        pod: The pod.
        strategy: Who proposed it.
        wanted: Why.
        refusal: Why not.
    """

    pod: PodInfo
    strategy: str
    wanted: str
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class EvictionPlan:
    """What to do, and why not more.

    Attributes:
        moves: In the order planned; each was proved with all before it made.
        refused: Every other pod that a strategy wanted to move.
        failures: Strategies that could not judge the cluster, and why.
        classes: What utilisation strategies found, by strategy.
    """

    moves: tuple[Move, ...]
    refused: tuple[Refused, ...]
    failures: tuple[PluginError, ...] = ()
    classes: tuple[tuple[str, NodeClasses], ...] = ()

    @property
    def considered(self) -> int:
        """How many pods strategies wanted to move."""
        return len({each.pod.uid for each in self.moves} | {each.pod.uid for each in self.refused})

    def refused_by_reason(self) -> dict[str, int]:
        """How many refusals there were, by machine reason, the most frequent first."""
        return dict(Counter(each.refusal.reason for each in self.refused).most_common())


def plan(rebalancing: Rebalancing, cluster: Cluster, circumstances: Circumstances) -> EvictionPlan:
    """Plan one cycle; the cluster is only read."""
    book = _Book(rebalancing, cluster, circumstances)
    failures: list[PluginError] = []
    classes: list[tuple[str, NodeClasses]] = []
    for kind in StrategyKind:
        for strategy in rebalancing.strategies:
            if strategy.kind is not kind:
                continue
            name = strategy.name
            try:
                run_strategy(strategy, book.context, lambda candidate, by=name: book.judge(candidate, by))  # type: ignore[misc]  # the default binds the loop's name
            except PluginError as exc:
                failures.append(exc)
            book.collect_protected(name)
            classes += [(name, found) for found in book.context.classes]
            book.context.classes.clear()
    return EvictionPlan(tuple(book.moves), tuple(book.refused), tuple(failures), tuple(classes))


def revalidate(
    move: Move,
    rebalancing: Rebalancing,
    cluster: Cluster,
    circumstances: Circumstances,
    under_way: Sequence[Move] = (),
) -> Move | Refusal:
    """Ask again, of the cluster as it is now, whether a move is right; right before its eviction.

    Args:
        move: As planned.
        rebalancing: As planned with; its limits are not asked again, the plan kept them.
        cluster: As it is now.
        circumstances: Of now; ``in_flight`` must not count this move.
        under_way: Moves whose evictions were sent and whose replacements are not placed yet.

    Returns:
        The move with the pod and the target of now, or why it must be dropped.
    """
    standing = cluster.pods.get(move.pod.uid)
    row = cluster.row_of_pod(move.pod.uid)
    book = _Book(replace(rebalancing, limits=Limits(per_workload=NO_CEILING)), cluster, circumstances)
    if move.target:
        if standing is None or row is None or cluster.nodes[row].name != move.source:
            return Refusal("Gone", f"pod {move.pod.key} is not on node {move.source} any more")
    elif move.pod.uid not in book.context.unplaced:
        return Refusal("Gone", f"pod {move.pod.key} is gone already")
    for each in under_way:
        book.make(each)
    verdict = book.judge(Candidate(standing or move.pod, move.source, move.reason), move.strategy)
    return book.moves[0] if verdict is Verdict.ACCEPTED else book.refused[0].refusal


def replacement_of(pod: PodInfo, cluster: Cluster, node: str = "") -> PodInfo:
    """The pod that the owner will make in its place: the same template, a new identity, maybe a node."""
    metadata = pod.pod.metadata
    fresh = msgspec.structs.replace(
        pod.pod,
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=f"{REPLACEMENT}{metadata.uid}",
            labels=metadata.labels,
            annotations=metadata.annotations,
            owner_references=metadata.owner_references,
        ),
        spec=msgspec.structs.replace(pod.pod.spec, node_name=node),
        status=PodStatus(phase="Pending"),
    )
    return cluster.templates.info(fresh)


def workload_of(pod: PodInfo) -> Workload:
    """The owner that keeps the number of such pods, or the pod itself."""
    metadata = pod.pod.metadata
    owner = metadata.controller or next(iter(metadata.owner_references), None)
    if owner is None:
        return Workload(pod.uid, f"pod {pod.key}")
    return Workload(owner.uid, f"{owner.kind} {pod.namespace}/{owner.name}")


class _Book:
    """The state of one plan: the fork with all moves made, what limits and budgets have left."""

    def __init__(self, rebalancing: Rebalancing, cluster: Cluster, circumstances: Circumstances) -> None:
        self.moves: list[Move] = []
        self.refused: list[Refused] = []
        self._rebalancing = rebalancing
        cluster.index(OwnerCounts)  # counted here once, and kept up to date, instead of in every fork
        self._fork = cluster.fork()
        self._moved: set[str] = set()
        self._schedulers: dict[int, Scheduler] = {}
        self._namespaces: Counter[str] | None = None
        self._ledger = BudgetLedger(self._fork.objects.budgets.values())
        self._memory = circumstances.memory
        self._balancing = {each.name for each in rebalancing.strategies if each.kind is StrategyKind.BALANCE}
        self._tally = Tally(
            rebalancing.limits, self._population, circumstances.in_flight, circumstances.recent
        )
        self.context = StrategyContext(
            cluster=self._fork,
            nodes=considered_nodes(self._fork, rebalancing.nodes),
            now=circumstances.now,
            evictors=tuple(rebalancing.evictors),
            planner=Planner.PROVEN,
            unplaced=UnplacedPods(circumstances.unplaced),
            measurements=circumstances.measurements,
        )

    def judge(self, candidate: Candidate, strategy: str) -> Verdict | None:
        """Prove and book a candidate, or refuse it; None when the cycle's total is used up.

        A plugin or evictor that raises harms this candidate only.
        """
        pod = candidate.pod
        if pod.uid in self._moved or pod.uid.startswith(REPLACEMENT):
            return Verdict.REFUSED  # strategies see replacements in their new places, before they are there
        workload = workload_of(pod)
        limit = self._tally.reached(candidate.node, pod.namespace, workload)
        try:
            answer = (
                self._protection(candidate)
                or (limit.refusal if limit else None)
                or self._ledger.refusal(pod)
                or self._lesson(pod, strategy, workload)
                or self._prove(candidate, strategy, workload)
            )
        except PluginError as exc:
            answer = Refusal("PluginError", str(exc))
        if isinstance(answer, Move):
            self._tally.count(answer.source, pod.namespace, workload)
            self.moves.append(replace(answer, budget=self._ledger.take(pod)))
            self.make(answer)
            return Verdict.ACCEPTED
        self.refused.append(Refused(pod, strategy, candidate.reason, answer))
        if limit is not None and limit.level.ends_cycle:
            return None
        if limit is not None and limit.level is LimitLevel.NODE:
            return Verdict.NODE_CLOSED
        return Verdict.REFUSED

    def make(self, move: Move) -> None:
        """Make a move in the fork: the pod gone, its replacement on the target."""
        pod = move.pod
        self._moved.add(pod.uid)
        self._fork.displace(pod.uid)
        self.context.unplaced.discard(pod.uid)
        if move.target and move.target in self._fork.rows:
            self._fork.place(replacement_of(pod, self._fork, move.target), move.target)

    def collect_protected(self, strategy: str) -> None:
        """Take over what evictors refused while a strategy looked around."""
        for each in self.context.protected:
            self.refused.append(Refused(each.pod, strategy, each.wanted, each.refusal))
        self.context.protected.clear()

    def _protection(self, candidate: Candidate) -> Refusal | None:
        pod = candidate.pod
        for evictor in self._rebalancing.evictors:
            with calling(evictor.name, "filter"):
                refusal = evictor.filter(pod, self.context)
            with calling(evictor.name, "preEvictionFilter"):
                refusal = refusal or evictor.pre_eviction_filter(pod, self.context)
            if refusal is not None:
                return refusal
        return None

    def _lesson(self, pod: PodInfo, strategy: str, workload: Workload) -> Refusal | None:
        """Why past moves speak against this one."""
        budgets = self._ledger.over(pod)
        refusal = self._memory.budget(budgets[0].key) if budgets else None
        return refusal or self._memory.held_back(workload.uid, strategy)

    def _prove(self, candidate: Candidate, strategy: str, workload: Workload) -> Move | Refusal:
        pod, source = candidate.pod, candidate.node
        if pod.pod.is_terminal:
            return Move(
                pod, strategy, candidate.reason, source, "", None, 0, is_forecast=False, workload=workload
            )
        named = pod.pod.spec.scheduler_name
        profile = self._rebalancing.profiles.get(named) or self._rebalancing.forecast
        if profile is None:
            return Refusal("OtherScheduler", f'scheduler "{named}" places the pod, and no policy serves it')
        standing = self._fork.displace(pod.uid)
        if standing is None:
            return Refusal("Gone", f"the pod is not on node {source} any more")
        try:
            ranking = self._scheduler(profile).rank(replacement_of(pod, self._fork))
        finally:
            self._fork.place(standing, source)
        best = ranking.best
        if not best:
            return Refusal("NoFeasibleNode", str(ranking.diagnosis))
        if best == (source,) and len(ranking.nodes) == 1:
            return Refusal("NoOtherNode", f"node {source}, its own, is the only feasible one")
        highest = int(ranking.totals.max())
        if source in best:
            return Refusal(
                "WouldReturn",
                f"the scheduler may put it on node {source} again: no other node has a better score"
                f" than its {highest}",
            )
        own = ranking.total_of(source)
        gain = None if own is None else highest - own
        if gain is not None and gain < self._rebalancing.margin:
            return Refusal(
                "SmallGain",
                f"node {best[0]} beats its own node by {gain} points,"
                f" the policy asks for {self._rebalancing.margin}",
            )
        allowed = [name for name in best if self._is_target(name)]
        if len(allowed) < len(best):
            other = next(name for name in best if name not in allowed)
            return Refusal(
                "NotATarget", f"the scheduler may put it on node {other}, which the policy names no target"
            )
        if strategy in self._balancing:
            for name in best:
                back = self._memory.ping_pong(workload.uid, strategy, name)
                if back is not None:
                    return back
        return Move(
            pod=pod,
            strategy=strategy,
            reason=candidate.reason,
            source=source,
            target=best[0],
            gain=gain,
            ties=len(best),
            is_forecast=named not in self._rebalancing.profiles,
            workload=workload,
        )

    def _scheduler(self, profile: Profile) -> Scheduler:
        known = self._schedulers.get(id(profile))
        if known is None:
            known = self._schedulers[id(profile)] = Scheduler(profile, self._fork)
        return known

    def _is_target(self, name: str) -> bool:
        targets = self._rebalancing.targets
        return targets.is_empty or targets.matches(self._fork.nodes[self._fork.rows[name]].labels)

    def _population(self, level: LimitLevel, key: str) -> int:
        match level:
            case LimitLevel.TOTAL | LimitLevel.MINUTE | LimitLevel.BUDGET:
                return len(self._fork.pods)
            case LimitLevel.NODE:
                return len(self.context.pods(key))
            case LimitLevel.NAMESPACE:
                if self._namespaces is None:  # as the cycle begins: a plan moves pods, it makes none
                    self._namespaces = Counter(pod.namespace for pod in self._fork.pods.values())
                return self._namespaces[key]
            case LimitLevel.WORKLOAD:
                return self.context.replicas(key)
