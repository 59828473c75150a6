"""The state of one plan: a fork with all moves made, what limits and budgets have left, and the proof.

See :mod:`plimsoll.planning.proven.planner` for what a proposal passes on its way.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from plimsoll.engine.decision import Ranking
from plimsoll.engine.extenders.extender import interested
from plimsoll.engine.plugin_calls import calling
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import MAX_SCORE, PluginError, PodInfo
from plimsoll.framework.descheduling.complaints import Complaining
from plimsoll.framework.descheduling.context import (
    OwnerCounts,
    Planner,
    PodsByOwner,
    PodsByTemplate,
    ReadyCounts,
    StrategyContext,
    UnplacedPods,
    considered_nodes,
)
from plimsoll.framework.descheduling.strategy import (
    AsksForGain,
    Beneficiary,
    Bundle,
    Candidate,
    Proposal,
    Refusal,
    ServesPending,
    Strategy,
    StrategyKind,
    Verdict,
    wants_restart,
)
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import PodStatus
from plimsoll.planning.aftermath import shifted
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.complaint_ledger import (
    MENDS_NOTHING,
    NEW_COMPLAINT,
    TOLERANCE,
    ComplaintWatcher,
    Conscience,
    Trip,
)
from plimsoll.planning.limits import NO_CEILING, LimitLevel, Limits, Tally, Workload
from plimsoll.planning.moves import (
    SCORE_GAIN,
    Circumstances,
    Move,
    Rebalancing,
    Refused,
    replacement_of,
    replacement_uid,
    workload_of,
)
from plimsoll.planning.populations import Populations
from plimsoll.planning.proven.prospects import ForkProspects
from plimsoll.planning.proven.target_choice import (
    TargetChoice,
    best_admitted,
    both,
    expected,
    narrowed,
    not_sent,
    short_of_gain,
)
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.planning.surges import Surge, Surging

#: Pod indexes that strategies and evictors look things up in.
KEPT = (OwnerCounts, ReadyCounts, PodsByOwner, PodsByTemplate)

#: For plans that only look at what would be possible.
UNLIMITED = Limits(per_workload=NO_CEILING)

#: Why a pod of a bundle stays that another proposal has moved already.
MOVED = Refusal("Moved", "it moves already")

#: The reason by which pods of a bundle stay that would go for nothing.
NO_USE = "NoRoomMade"


class Book:
    """The state of one plan: the fork with all moves made, what limits and budgets have left."""

    def __init__(self, rebalancing: Rebalancing, cluster: Cluster, circumstances: Circumstances) -> None:
        self.moves: list[Move] = []
        self.refused: list[Refused] = []
        self._rebalancing = rebalancing
        for counts in KEPT:  # counted once and kept up to date, not in every fork
            cluster.index(counts)
        self._fork = cluster.fork()
        self._moved: set[str] = set()
        self._schedulers: dict[int, ProfileScheduler] = {}
        self._ledger = BudgetLedger(self._fork.objects.budgets.values())
        self._memory = circumstances.memory
        self._over_for = circumstances.over_for
        self._asking = {each.name: each for each in rebalancing.strategies if isinstance(each, AsksForGain)}
        self._renewing = {each.name for each in rebalancing.strategies if wants_restart(each)}
        self._serving_pending = {
            each.name for each in rebalancing.strategies if isinstance(each, ServesPending)
        }
        self._in_bundle = False
        self._recently_moved = circumstances.moved
        self.has_conscience = rebalancing.planner is Planner.PROVEN
        self._balancing = {each.name for each in rebalancing.strategies if each.kind is StrategyKind.BALANCE}
        self.context = StrategyContext(
            cluster=self._fork,
            nodes=considered_nodes(self._fork, rebalancing.nodes),
            now=circumstances.now,
            evictors=tuple(rebalancing.evictors),
            planner=Planner.PROVEN,
            unplaced=UnplacedPods(circumstances.unplaced),
            measurements=circumstances.measurements,
            gangs=circumstances.gangs,
            prospects=ForkProspects(self._fork, rebalancing, self.ranked, self._serving),
        )
        self._surging: Surging | None = None
        if rebalancing.surge:
            self.context.surges = self._surging = Surging(
                circumstances.deployments, self._fork.objects, frozenset(rebalancing.profiles)
            )
        self.conscience = Conscience(
            self._fork,
            self.context,
            rebalancing.strategies,
            self._watchers(circumstances.others if self.has_conscience else {}),
        )
        populations = Populations(self._fork, rebalancing.evictors, rebalancing.nodes)
        self._tally = Tally(rebalancing.limits, populations, circumstances.in_flight, circumstances.recent)

    def hear(self, strategy: Strategy) -> None:
        """Judge all that a strategy proposes.

        Raises:
            PluginError: The strategy raised; what was judged before stands.
        """
        run_strategy(strategy, self.context, lambda proposal: self.judge(proposal, strategy.name))

    def judge(self, proposal: Proposal, strategy: str) -> Verdict | None:
        """Prove and book a proposal, or refuse it; None when the cycle's total is used up.

        A plugin or evictor that raises harms this proposal only.
        """
        if isinstance(proposal, Bundle):
            return self._judge_all(proposal, strategy)
        return self._judge(proposal, strategy)

    def _judge(
        self,
        candidate: Candidate,
        strategy: str,
        but: LimitLevel | None = None,
        after: Move | None = None,
    ) -> Verdict | None:
        """Judge one pod.

        Args:
            candidate: The pod.
            strategy: Who proposes it.
            but: A limit that does not hold for it.
            after: The move of the same workload that is over before this one begins.
        """
        pod = candidate.pod
        given_back = after.budget if after else ""
        if pod.uid in self._moved or pod.stands_in_for is not None:
            return Verdict.REFUSED  # strategies see replacements in their new places, before they are there
        hasty = self._hasty(candidate.node, strategy)
        if hasty is not None:
            self.refused.append(Refused(pod, strategy, candidate.reason, hasty))
            return Verdict.NODE_CLOSED
        answer: Refusal | Move
        limit = None
        try:
            protection = self._protection(candidate)
            surge = protection if isinstance(protection, Surge) else None
            workload = surge.workload(pod.namespace) if surge else workload_of(pod)
            limit = self._tally.reached(candidate.node, pod.namespace, workload, but)
            if after is not None and limit is not None and limit.level is LimitLevel.WORKLOAD:
                limit = None  # the last that is asked: no other is reached
            answer = (
                (protection if isinstance(protection, Refusal) else None)
                or (limit.refusal if limit else None)
                or (self._ledger.shortage(pod) if surge else self._ledger.refusal(pod, given_back))
                or self._lesson(pod, strategy, workload, surge)
                or self._settling(pod, strategy)
                or self._prove(candidate, strategy, workload, surge)
            )
        except PluginError as exc:
            answer = Refusal("PluginError", str(exc))
        if isinstance(answer, Move):
            self._tally.count(answer.source, pod.namespace, answer.workload)
            # The pod of a surge goes when a healthy one more is there: nobody's disruption is used up.
            budget = "" if answer.surge else self._ledger.take(pod, given_back)
            self.moves.append(replace(answer, budget=budget, waits=after is not None))
            self.make(answer)
            return Verdict.ACCEPTED
        self.refused.append(Refused(pod, strategy, candidate.reason, answer))
        if limit is not None and limit.level.ends_cycle:
            return None
        if limit is not None and limit.level is LimitLevel.NODE:
            return Verdict.NODE_CLOSED
        return Verdict.REFUSED

    def _judge_all(self, bundle: Bundle, strategy: str) -> Verdict | None:
        """Book all candidates or none: what was booked is taken back when one of them must stay."""
        made, refused = len(self.moves), len(self.refused)
        tally, ledger = self._tally.copy(), self._ledger.copy()
        measured = self.context.measurements
        self._in_bundle = True
        try:
            verdict = self._judge_each(bundle, strategy, made, refused, (tally, ledger))
        finally:
            self._in_bundle = False
        if verdict is not Verdict.ACCEPTED:
            self.context.measurements = measured
        return verdict

    def _judge_each(
        self,
        bundle: Bundle,
        strategy: str,
        made: int,
        refused: int,
        kept: tuple[Tally, BudgetLedger],
    ) -> Verdict | None:
        for candidate in bundle.candidates:
            after = self._before(candidate, made) if bundle.one_by_one else None
            verdict = self._judge(candidate, strategy, LimitLevel.NODE, after)
            if bundle.one_by_one and verdict is Verdict.ACCEPTED:
                self._replace(self.moves[-1], self.moves[-1].pod.pod.status)
            if verdict is not Verdict.ACCEPTED:
                why = self.refused[-1].refusal if len(self.refused) > refused else MOVED
                break
        else:
            no_use = self._no_use(bundle) or self._objection_to(self.moves[made:], strategy)
            if no_use is None:
                self._book_together(bundle, made)
                return Verdict.ACCEPTED
            verdict, why = Verdict.REFUSED, no_use
        del self.refused[refused:]
        for move in reversed(self.moves[made:]):
            self._take_back(move)
        del self.moves[made:]
        self._tally, self._ledger = kept
        for each in bundle.candidates:
            message = f"it goes only with others, and pod {candidate.pod.key} must stay: {why.message}"
            is_common = why.reason in (NO_USE, MENDS_NOTHING, NEW_COMPLAINT)
            own = why if each is candidate or is_common else Refusal("NotAll", message)
            self.refused.append(Refused(each.pod, strategy, each.reason, own))
        return verdict

    def _book_together(self, bundle: Bundle, made: int) -> None:
        """Mark the moves as belonging together, and let the beneficiary have the room."""
        name, beneficiary = bundle.candidates[0].pod.uid if bundle.candidates else "", bundle.beneficiary
        many = len(self.moves) - made
        self.moves[made:] = [
            replace(move, bundle=name, part=(position, many), beneficiary=beneficiary)
            for position, move in enumerate(self.moves[made:], 1)
        ]
        if bundle.one_by_one:
            for move in self.moves[made:]:
                self._replace(move, PodStatus(phase="Pending"))  # other proposals do not wait
        for each in beneficiary.all if beneficiary is not None else ():
            self._moved.add(each.pod.uid)  # nobody moves it in this plan
            self.context.unplaced.discard(each.pod.uid)
            self._fork.place(each.pod, each.node)

    def _before(self, candidate: Candidate, made: int) -> Move | None:
        """The move of the same workload that comes before a candidate of a bundle."""
        owner = workload_of(candidate.pod).uid
        return next((move for move in reversed(self.moves[made:]) if move.workload.uid == owner), None)

    def _replace(self, move: Move, status: PodStatus) -> None:
        """Let the replacement of a move be in this state, as far as the fork goes."""
        if move.target:
            info = replacement_of(move.pod, self._fork, move.target)
            self._fork.displace(info.uid)
            changed = msgspec.structs.replace(info.pod, status=status)
            self._fork.place(self._fork.templates.info(changed, info.stands_in_for), move.target)

    def _no_use(self, bundle: Bundle) -> Refusal | None:
        """Why the moves, all made, do not help the pod that they are for."""
        placed: list[str] = []
        try:
            for each in bundle.beneficiary.all if bundle.beneficiary is not None else ():
                refusal = self._no_use_for(each, bundle)
                if refusal is not None:
                    return refusal
                self._fork.place(each.pod, each.node)  # members of a gang see those before them
                placed.append(each.pod.uid)
        finally:
            for uid in placed:
                self._fork.displace(uid)
        return None

    def _no_use_for(self, beneficiary: Beneficiary, bundle: Bundle) -> Refusal | None:
        """Why the moves do not help one pod that they are for."""
        pod, node = beneficiary.pod, beneficiary.node
        above = next((each.pod for each in bundle.candidates if each.pod.priority > pod.priority), None)
        if above is not None:
            return Refusal(NO_USE, f"pod {above.key} has a higher priority than pod {pod.key}")
        scheduler = self._serving(pod.pod.spec.scheduler_name)
        if scheduler is None or pod.uid not in self.context.unplaced:
            return Refusal(NO_USE, f"pod {pod.key} waits for no place that is ours to give")
        try:
            ranking = scheduler.rank(pod)
        except PluginError as exc:
            return Refusal(NO_USE, str(exc))
        if ranking.total_of(node) is None:
            return Refusal(NO_USE, f"pod {pod.key} would still not fit node {node}")
        return None

    def _take_back(self, move: Move) -> None:
        """Undo a move in the fork."""
        pod = move.pod
        self._moved.discard(pod.uid)
        if move.target:
            self._fork.displace(replacement_uid(pod))
            self._fork.place(pod, move.source)
            self.context.measurements = shifted(
                self.context.measurements, [(pod.key, move.target, move.source)]
            )
        else:
            self.context.unplaced.set(pod)

    def _objection_to(self, moves: list[Move], strategy: str) -> Refusal | None:
        """What strategies have against moves that are made already, all together."""
        trips = [Trip(move.pod, move.source, move.target) for move in moves if move.target]
        if not self.has_conscience or not trips:
            return None
        measured = self.context.measurements
        for move in reversed(moves):
            self._take_back(move)
        try:
            return self.conscience.objection(
                strategy, trips, mends=strategy not in self._serving_pending | self._renewing
            )
        finally:
            for move in moves:
                self.make(move)
            self.context.measurements = measured

    def make(self, move: Move) -> None:
        """Make a move in the fork: the pod gone, its replacement on the target."""
        pod = move.pod
        self._moved.add(pod.uid)
        self._fork.displace(pod.uid)
        self.context.unplaced.discard(pod.uid)
        if move.target and move.target in self._fork.rows:
            self._fork.place(replacement_of(pod, self._fork, move.target), move.target)
            self.context.measurements = shifted(
                self.context.measurements, [(pod.key, move.source, move.target)]
            )

    def collect_protected(self, strategy: str) -> None:
        """Take over what evictors refused while a strategy looked around."""
        for each in self.context.protected:
            self.refused.append(Refused(each.pod, strategy, each.wanted, each.refusal))
        self.context.protected.clear()

    def _hasty(self, node: str, strategy: str) -> Refusal | None:
        """Why it is too early to move pods off a node that is over-used."""
        asked = self._rebalancing.anomaly_rounds
        if asked <= 1 or not any(node in found.overutilized for found in self.context.classes):
            return None
        seen = self._over_for.get((strategy, node), 0) + 1
        if seen >= asked:
            return None
        return Refusal(
            "NotYet",
            f"node {node} has been found over-used {seen} times in a row, the policy asks for {asked}",
        )

    def _protection(self, candidate: Candidate) -> Refusal | Surge | None:
        """Who protects the pod; the surge that moves it, where that is all that anybody allows."""
        pod = candidate.pod
        surge: Surge | None = None
        for evictor in self._rebalancing.evictors:
            with calling(evictor.name, "filter"):
                refusal = evictor.filter(pod, self.context)
            with calling(evictor.name, "preEvictionFilter"):
                last = evictor.pre_eviction_filter(pod, self.context)
            for each in (refusal, last):
                if each is None:
                    continue
                found = self._surging.of(pod) if each.yields_to_surge and self._surging else None
                if not isinstance(found, Surge):
                    return self.context.surges.lift(pod, each) if each.yields_to_surge else each
                surge = found
        return surge

    def _lesson(
        self, pod: PodInfo, strategy: str, workload: Workload, surge: Surge | None = None
    ) -> Refusal | None:
        """Why past moves speak against this one."""
        budgets = [] if surge else self._ledger.over(pod)
        refusal = self._memory.budget(budgets[0].key) if budgets else None
        return refusal or self._memory.held_back(workload.uid, strategy)

    def _settling(self, pod: PodInfo, strategy: str) -> Refusal | None:
        """Why a pod that has just been moved is left alone, unless a fresh one is wanted."""
        if pod.uid not in self._recently_moved or strategy in self._renewing or not self.has_conscience:
            return None
        return Refusal("MovedRecently", "it replaced a pod that was moved within the last hour")

    def _watchers(self, others: Mapping[str, Rebalancing]) -> list[ComplaintWatcher]:
        """The strategies of other policies with their views of the fork."""
        found = []
        for policy, other in others.items():
            view = replace(
                self.context,
                nodes=considered_nodes(self._fork, other.nodes),
                evictors=tuple(other.evictors),
                protected=[],
                classes=[],
                remarks=[],
                kept={},
            )
            # One that does not say what it complains of would be driven here, and may take its time.
            found += [
                ComplaintWatcher(each, view, policy)
                for each in other.strategies
                if isinstance(each, Complaining)
            ]
        return found

    def _prove(
        self, candidate: Candidate, strategy: str, workload: Workload, surge: Surge | None = None
    ) -> Move | Refusal:
        pod, source = candidate.pod, candidate.node
        renews = strategy in self._renewing
        if pod.pod.is_terminal:
            return Move(
                pod=pod,
                strategy=strategy,
                reason=candidate.reason,
                source=source,
                target="",
                gain=None,
                ties=0,
                is_forecast=False,
                workload=workload,
                renews=renews,
            )
        named = pod.pod.spec.scheduler_name
        profile = self._rebalancing.profiles.get(named) or self._rebalancing.forecast
        if profile is None:
            return Refusal("OtherScheduler", f'scheduler "{named}" places the pod, and no policy serves it')
        is_forecast = named not in self._rebalancing.profiles
        if candidate.target and is_forecast:
            return Refusal("OtherScheduler", f'scheduler "{named}" places the pod and cannot be told where')
        asked = next((each for each in interested(profile.extenders, pod) if each.places), None)
        if asked is not None:
            return Refusal(
                "PlacedByExtender",
                f"extender {asked.name} has a say in where it goes; its next node cannot be proved",
            )
        ranking = self._rank(pod, source, profile)
        if ranking is None:
            return Refusal("Gone", f"the pod is not on node {source} any more")
        if surge is not None:
            beside = self._scheduler(profile).rank(replacement_of(pod, self._fork))
            alone, ranking = ranking, narrowed(ranking, beside, source, self._is_target)
            if {*ranking.nodes} <= {source} and {*alone.nodes} - {source, *beside.nodes}:
                why = f": {beside.diagnosis}" if beside.diagnosis else ""
                return Refusal(
                    "NoRoomBeside", f"no other node takes its replacement while the pod still runs{why}"
                )
        elif renews and not candidate.target:
            # Most owners replace a pod while it still ends: nodes that take it then, too, come first.
            meanwhile = self._scheduler(profile).rank(replacement_of(pod, self._fork))
            ranking = both(ranking, meanwhile)
        maximum = MAX_SCORE * sum(profile.weights.values())
        chosen = self._chosen(candidate, strategy, ranking, maximum, is_forecast=is_forecast)
        if isinstance(chosen, Refusal):
            return chosen
        total, own = ranking.total_of(chosen.target), ranking.total_of(source)
        has_gain = own is not None and total is not None and chosen.target != source
        return Move(
            pod=pod,
            strategy=strategy,
            reason=candidate.reason,
            source=source,
            target=chosen.target,
            gain=total - own if has_gain and total is not None and own is not None else None,
            ties=1 if chosen.is_directed or surge else len(ranking.best),
            is_forecast=is_forecast,
            workload=workload,
            planner=self._rebalancing.planner,
            is_directed=chosen.is_directed,
            surge=surge,
            maximum=maximum,
            renews=renews,
        )

    def _chosen(
        self, candidate: Candidate, strategy: str, ranking: Ranking, maximum: int, *, is_forecast: bool
    ) -> TargetChoice | Refusal:
        """The node for the replacement, or why none will do."""
        pod, source = candidate.pod, candidate.node
        by_score = not (candidate.target or self.decides(strategy))
        has_order = candidate.destinations is not None and candidate.destinations.preference is not None
        least = (
            None if candidate.target or has_order else self._least_gain(strategy, maximum, by_score=by_score)
        )

        def objection(name: str) -> Refusal | None:
            return (
                self._ping_pong(candidate, strategy, name)
                or short_of_gain(ranking, source, name, least, compares=strategy in self._asking)
                or self._objection(strategy, Trip(pod, source, name))
            )

        if candidate.target:
            refusal = not_sent(candidate, ranking, self._is_target) or objection(candidate.target)
            return refusal or TargetChoice(candidate.target, is_directed=True)
        if is_forecast or by_score:
            return expected(candidate, ranking, self._is_target, objection, is_forecast=is_forecast)
        return best_admitted(
            candidate, ranking, self._is_target, objection, may_return=strategy in self._renewing
        )

    def _objection(self, strategy: str, trip: Trip) -> Refusal | None:
        """What strategies have against the move; moves of a bundle are judged together, at its end."""
        if not self.has_conscience or self._in_bundle:
            return None
        return self.conscience.objection(strategy, [trip], mends=strategy not in self._renewing)

    def _ping_pong(self, candidate: Candidate, strategy: str, target: str) -> Refusal | None:
        if strategy not in self._balancing or candidate.target:
            return None
        return self._memory.ping_pong(workload_of(candidate.pod).uid, strategy, target)

    def _least_gain(self, strategy: str, maximum: int, *, by_score: bool) -> int | None:
        """Points that a move must gain at least; None when it need not gain any."""
        asking = self._asking.get(strategy)
        if asking is not None:
            with calling(strategy, "least_gain"):
                return max(asking.least_gain(maximum), 1)
        share = self._rebalancing.minimum_gain
        if strategy in self._renewing or strategy in self._serving_pending:
            return None
        if by_score:
            return max(math.ceil((SCORE_GAIN if share is None else share) * maximum - TOLERANCE), 1)
        return None if share is None else math.ceil(share * maximum - TOLERANCE)

    def decides(self, strategy: str) -> bool:
        """Whether the strategy's purpose decides about its targets, instead of the scheduler's score."""
        return strategy in self._renewing or self.conscience.decides(strategy)

    def ranked(self, pod: PodInfo, source: str) -> Ranking | None:
        """Where a pod of ours could go, all moves so far made; None when nobody can say."""
        profile = self._rebalancing.profiles.get(pod.pod.spec.scheduler_name)
        if profile is None:
            return None
        try:
            return self._rank(pod, source, profile)
        except PluginError:
            return None

    def may_be_sent(self, pod: PodInfo, node: str, strategy: str) -> bool:
        """Whether a pod may be moved and told where to go: no protection, budget or lesson objects."""
        profile = self._rebalancing.profiles.get(pod.pod.spec.scheduler_name)
        if profile is None or pod.is_terminating or pod.uid in self._moved or pod.stands_in_for is not None:
            return False
        if any(each.places for each in interested(profile.extenders, pod)):
            return False
        try:
            protection = self._protection(Candidate(pod, node, ""))
            surge = protection if isinstance(protection, Surge) else None
            workload = surge.workload(pod.namespace) if surge else workload_of(pod)
            return not (
                isinstance(protection, Refusal)
                or (self._ledger.shortage(pod) if surge else self._ledger.refusal(pod))
                or self._lesson(pod, strategy, workload, surge)
            )
        except PluginError:
            return False

    def _rank(self, pod: PodInfo, source: str, profile: Profile) -> Ranking | None:
        standing = self._fork.displace(pod.uid)
        if standing is None:
            return None
        try:
            return self._scheduler(profile).rank(replacement_of(pod, self._fork))
        finally:
            self._fork.place(standing, source)

    def _scheduler(self, profile: Profile) -> ProfileScheduler:
        known = self._schedulers.get(id(profile))
        if known is None:
            known = self._schedulers[id(profile)] = ProfileScheduler(profile, self._fork)
        return known

    def _serving(self, name: str) -> ProfileScheduler | None:
        """The scheduler of that name on the fork, None when no policy serves it."""
        profile = self._rebalancing.profiles.get(name)
        return None if profile is None else self._scheduler(profile)

    def _is_target(self, name: str) -> bool:
        return self._rebalancing.is_target(self._fork.nodes[self._fork.rows[name]])
