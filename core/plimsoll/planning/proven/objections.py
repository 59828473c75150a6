"""Objects to moves for reasons that need no proof on the fork: protections, past moves, gains, complaints."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial

from msgspec.structs import replace

from plimsoll.engine.plugin_calls import called
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.complaints import Complaining
from plimsoll.framework.descheduling.context import StrategyContext, considered_nodes
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.plugin_answers import of_kind
from plimsoll.framework.descheduling.proposals import Candidate, Refusal
from plimsoll.framework.descheduling.strategy import (
    AsksForGain,
    MendsSpread,
    ServesPending,
    StrategyKind,
    wants_even_spread,
    wants_restart,
)
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.complaint_ledger import TOLERANCE, ComplaintComparison, ComplaintWatcher, ProposedMove
from plimsoll.planning.limits import Workload
from plimsoll.planning.moves import SCORE_GAIN, PlanningContext, RebalancingConfig, workload_of
from plimsoll.planning.proven.load_guards import LoadGuards, scores_by_load
from plimsoll.planning.proven.load_lines import LoadLines
from plimsoll.planning.surges import Surge, Surging


class Objections:
    """Objects to a move, apart from the proof of its target.

    Owned by a :class:`plimsoll.planning.proven.plan_builder.PlanBuilder`. Reads its fork and context, changes
    neither.
    """

    def __init__(
        self,
        rebalancing: RebalancingConfig,
        fork: Cluster,
        context: StrategyContext,
        planning_context: PlanningContext,
    ) -> None:
        self._rebalancing = rebalancing
        self._fork = fork
        self._context = context
        self._waited_for = planning_context.unready
        self._memory = planning_context.memory
        self._over_for = planning_context.over_for
        self._recently_moved = planning_context.moved
        strategies = rebalancing.strategies
        self.asking = {each.name: each for each in strategies if isinstance(each, AsksForGain)}
        self.renewing = {each.name for each in strategies if wants_restart(each)}
        self._serving_pending = {each.name for each in strategies if isinstance(each, ServesPending)}
        self._balancing = {each.name for each in strategies if each.kind is StrategyKind.BALANCE}
        self._by_use = {
            each.name
            for each in strategies
            if each.name in self._balancing - self._serving_pending
            and not (wants_even_spread(each) or isinstance(each, MendsSpread))
        }
        self.has_conscience = rebalancing.planner is Planner.PROVEN
        guided = (rebalancing.goal.objective.value,) if rebalancing.planner is Planner.OPTIMAL else ()
        self.load = LoadLines(
            context,
            strategies,
            guided=guided,
            careful=self._by_use,
            scores_load=partial(scores_by_load, rebalancing.profiles),
            guards=LoadGuards(rebalancing, context, planning_context, guided),
        )
        self._surging: Surging | None = None
        if rebalancing.surge:
            context.surges = self._surging = Surging(
                planning_context.deployments, fork.objects, frozenset(rebalancing.profiles)
            )
        self._others = planning_context.others if self.has_conscience else {}

    @cached_property
    def conscience(self) -> ComplaintComparison:
        """The comparison of complaints around moves; a look at wishes needs none."""
        return ComplaintComparison(
            self._fork, self._context, self._rebalancing.strategies, self._watchers(self._others)
        )

    def mends(self, strategy: str) -> bool:
        """Whether moves of the strategy, all together, must decrease its complaints."""
        return strategy not in self._serving_pending | self.renewing

    def hasty(self, node: str, strategy: str) -> Refusal | None:
        """Why it is too early to move pods off a node that is over-used."""
        return self._seen_too_rarely(node, strategy) or self.load.closes(strategy, node)

    def _seen_too_rarely(self, node: str, strategy: str) -> Refusal | None:
        asked = self._rebalancing.anomaly_rounds
        if asked <= 1 or not any(node in found.overutilized for found in self._context.classes):
            return None
        seen = self._over_for.get((strategy, node), 0) + 1
        if seen >= asked:
            return None
        return Refusal(
            "NotYet",
            f"node {node} was over-used in {seen} of the {asked} runs in a row that the policy asks for",
        )

    def protection(self, candidate: Candidate) -> Refusal | Surge | None:
        """What protects the pod: an evictor or its gang; the surge that moves it, if only that is allowed."""
        pod = candidate.pod
        surge: Surge | None = None
        for evictor in self._rebalancing.evictors:
            refusal = called(evictor.name, "filter", evictor.filter, pod, self._context)
            last = called(evictor.name, "preEvictionFilter", evictor.pre_eviction_filter, pod, self._context)
            if refusal is None and last is None:
                continue
            for each in (refusal, last):
                if each is None:
                    continue
                of_kind(each, Refusal, evictor.name, "filter")
                found = self._surging.of(pod) if each.yields_to_surge and self._surging else None
                if not isinstance(found, Surge):
                    return self._context.surges.lift(pod, each) if each.yields_to_surge else each
                surge = found
        return self._context.bound_to_gang(pod) or surge

    def lesson(
        self, strategy: str, pod: PodInfo, workload: Workload, budgets: Sequence[PodDisruptionBudget]
    ) -> Refusal | None:
        """Why past moves forbid this one; ``budgets`` are those of the pod, none for a surge.

        The workload of a surge is the Deployment; evictions of its pods are recorded for their ReplicaSet.
        """
        owners = dict.fromkeys((workload.key, workload_of(pod).key))
        refusal = self._unready(strategy, pod, owners)
        if refusal is None and budgets:
            refusal = self._memory.budget(budgets[0].key)
        return refusal or next(
            filter(None, (self._memory.held_back(each, strategy) for each in owners)), None
        )

    def _unready(self, strategy: str, pod: PodInfo, owners: Iterable[str]) -> Refusal | None:
        """Why the owner's pods stay while a replacement is not ready.

        A strategy that wants a fresh pod may restart this very replacement, and ended pods may be deleted.
        """
        found = next((self._waited_for[each] for each in owners if each in self._waited_for), None)
        if found is None or pod.pod.is_terminal or (found.uid == pod.uid and strategy in self.renewing):
            return None
        return found.refusal

    def settling(self, pod: PodInfo, strategy: str) -> Refusal | None:
        """Why a pod that has just been moved is left alone, unless a fresh one is wanted."""
        if pod.uid not in self._recently_moved or strategy in self.renewing:
            return None
        return Refusal("MovedRecently", "it replaced a pod that was moved within the last hour")

    def _watchers(self, others: Mapping[str, RebalancingConfig]) -> list[ComplaintWatcher]:
        """The strategies of other policies with their views of the fork."""
        found = []
        for policy, other in others.items():
            view = replace(
                self._context,
                nodes=considered_nodes(self._fork, other.nodes),
                protected=[],
                classes=[],
                remarks=[],
            )
            # One that reports no complaints would have to run here, which may take long.
            found += [
                ComplaintWatcher(each, replace(view, evictors=other.evictors_of(position), kept={}), policy)
                for position, each in enumerate(other.strategies)
                if isinstance(each, Complaining)
            ]
        return found

    def unmeasured(self, candidate: Candidate, strategy: str, workload: Workload) -> Refusal | None:
        """Why its node's use is no reason to move a pod."""
        return self.load.of_source(strategy, candidate.pod, candidate.node, workload)

    def heats(self, candidate: Candidate, strategy: str, target: str) -> Refusal | None:
        """Why a node's use keeps it from accepting a pod."""
        return self.load.of_target(strategy, candidate.pod, target)

    def ping_pong(self, candidate: Candidate, strategy: str, target: str) -> Refusal | None:
        """Why a balancing strategy, or a plan by load, may not return a pod to a node that it left."""
        balances = strategy in self._balancing and not candidate.target
        if not (balances or self.load.guides(strategy, candidate.pod)):
            return None
        return self._memory.ping_pong(workload_of(candidate.pod).key, strategy, target)

    def least_gain(self, strategy: str, maximum: int, *, by_score: bool) -> int | None:
        """The minimum gain of a move, in points; None if it need not gain any."""
        asking, share = self.asking.get(strategy), self._rebalancing.minimum_gain
        if asking is not None:
            least = of_kind(
                called(strategy, "least_gain", asking.least_gain, maximum), int, strategy, "least_gain"
            )
            return max(least, math.ceil((share or 0.0) * maximum - TOLERANCE), 1)
        if strategy in self.renewing or strategy in self._serving_pending:
            return None
        if by_score:
            return max(math.ceil((SCORE_GAIN if share is None else share) * maximum - TOLERANCE), 1)
        return None if share is None else math.ceil(share * maximum - TOLERANCE)

    def decides(self, strategy: str) -> bool:
        """Whether the strategy's purpose decides about its targets, rather than the scheduler's score."""
        return strategy in self.renewing or self.conscience.decides(strategy)

    def crowds(self, pod: PodInfo, strategy: str, target: str) -> Refusal | None:
        """The complaint that a pod with the same requests has caused on that node, from any source."""
        return (
            self.conscience.crowds(pod, target) if self.has_conscience and self.is_by_use(strategy) else None
        )

    def is_by_use(self, strategy: str) -> bool:
        """Whether its pods move because of the use of nodes; others leave a place that is wrong for them."""
        return strategy in self._by_use

    def complaint(self, strategy: str, trip: ProposedMove, *, strict: bool = True) -> Refusal | None:
        """The strategies' objection to a single move; ``strict`` as in :class:`ComplaintComparison`."""
        if not self.has_conscience:
            return None
        mends = strategy not in self.renewing
        return self.conscience.objection(strategy, [trip], mends=mends, strict=strict)

    def complaint_of_all(self, strategy: str, trips: Sequence[ProposedMove]) -> Refusal | None:
        """The strategies' objection to moves that are made together."""
        strict = strategy in self._by_use
        return self.conscience.objection(strategy, trips, mends=self.mends(strategy), strict=strict)
