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

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.engine.budgets import BudgetLedger
from plimsoll.engine.cycle import Scheduler
from plimsoll.engine.limits import NO_CEILING, LimitLevel, Limits, Tally, Workload
from plimsoll.engine.moves import (
    REPLACEMENT,
    Circumstances,
    EvictionPlan,
    Move,
    Rebalancing,
    Refused,
    replacement_of,
    workload_of,
)
from plimsoll.engine.populations import Populations
from plimsoll.engine.profile import Profile
from plimsoll.engine.runtime import calling
from plimsoll.engine.strategy_run import run_strategy
from plimsoll.framework import Cluster, PluginError, PodInfo
from plimsoll.framework.strategy import Candidate, Refusal, StrategyKind, Verdict
from plimsoll.framework.strategy_context import (
    NodeClasses,
    OwnerCounts,
    Planner,
    ReadyCounts,
    StrategyContext,
    UnplacedPods,
    considered_nodes,
)


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


class _Book:
    """The state of one plan: the fork with all moves made, what limits and budgets have left."""

    def __init__(self, rebalancing: Rebalancing, cluster: Cluster, circumstances: Circumstances) -> None:
        self.moves: list[Move] = []
        self.refused: list[Refused] = []
        self._rebalancing = rebalancing
        for counts in (OwnerCounts, ReadyCounts):  # counted once and kept up to date, not in every fork
            cluster.index(counts)
        self._fork = cluster.fork()
        self._moved: set[str] = set()
        self._schedulers: dict[int, Scheduler] = {}
        self._ledger = BudgetLedger(self._fork.objects.budgets.values())
        self._memory = circumstances.memory
        self._balancing = {each.name for each in rebalancing.strategies if each.kind is StrategyKind.BALANCE}
        self.context = StrategyContext(
            cluster=self._fork,
            nodes=considered_nodes(self._fork, rebalancing.nodes),
            now=circumstances.now,
            evictors=tuple(rebalancing.evictors),
            planner=Planner.PROVEN,
            unplaced=UnplacedPods(circumstances.unplaced),
            measurements=circumstances.measurements,
        )
        self._tally = Tally(
            rebalancing.limits, Populations(self.context), circumstances.in_flight, circumstances.recent
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
