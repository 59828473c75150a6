"""The state of one plan: a fork with all moves made, what limits and budgets have left, and the proof.

See :mod:`plimsoll.engine.plan` for what a proposal passes on its way.
"""

from dataclasses import replace

import msgspec

from plimsoll.engine.budgets import BudgetLedger
from plimsoll.engine.cycle import Scheduler
from plimsoll.engine.decision import Ranking
from plimsoll.engine.extender import interested
from plimsoll.engine.limits import LimitLevel, Tally, Workload
from plimsoll.engine.moves import (
    REPLACEMENT,
    Circumstances,
    Move,
    Rebalancing,
    Refused,
    is_awaited,
    replacement_of,
    workload_of,
)
from plimsoll.engine.populations import Populations
from plimsoll.engine.profile import Profile
from plimsoll.engine.prospecting import ForkProspects
from plimsoll.engine.proving import narrowed, not_sent, unexpected
from plimsoll.engine.runtime import calling
from plimsoll.engine.strategy_run import run_strategy
from plimsoll.engine.surging import Surge, Surging
from plimsoll.framework import MAX_SCORE, Cluster, PluginError, PodInfo
from plimsoll.framework.strategy import (
    AsksForGain,
    Beneficiary,
    Bundle,
    Candidate,
    Proposal,
    Refusal,
    Strategy,
    StrategyKind,
    Verdict,
)
from plimsoll.framework.strategy_context import (
    OwnerCounts,
    Planner,
    ReadyCounts,
    StrategyContext,
    UnplacedPods,
    considered_nodes,
)
from plimsoll.model.pod import PodStatus

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
        for counts in (OwnerCounts, ReadyCounts):  # counted once and kept up to date, not in every fork
            cluster.index(counts)
        self._fork = cluster.fork()
        self._moved: set[str] = set()
        self._schedulers: dict[int, Scheduler] = {}
        self._ledger = BudgetLedger(self._fork.objects.budgets.values())
        self._memory = circumstances.memory
        self._over_for = circumstances.over_for
        self._asking = {each.name: each for each in rebalancing.strategies if isinstance(each, AsksForGain)}
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
        if pod.uid in self._moved or is_awaited(pod):
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
        for candidate in bundle.candidates:
            after = self._before(candidate, made) if bundle.one_by_one else None
            verdict = self._judge(candidate, strategy, LimitLevel.NODE, after)
            if bundle.one_by_one and verdict is Verdict.ACCEPTED:
                self._replace(self.moves[-1], self.moves[-1].pod.pod.status)
            if verdict is not Verdict.ACCEPTED:
                why = self.refused[-1].refusal if len(self.refused) > refused else MOVED
                break
        else:
            no_use = self._no_use(bundle) if bundle.beneficiary is not None else None
            if no_use is None:
                self._book_together(bundle, made)
                return Verdict.ACCEPTED
            verdict, why = Verdict.REFUSED, no_use
        del self.refused[refused:]
        for move in reversed(self.moves[made:]):
            self._take_back(move)
        del self.moves[made:]
        self._tally, self._ledger = tally, ledger
        for each in bundle.candidates:
            message = f"it goes only with others, and pod {candidate.pod.key} must stay: {why.message}"
            own = why if each is candidate or why.reason == NO_USE else Refusal("NotAll", message)
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
            self._fork.place(
                self._fork.templates.info(msgspec.structs.replace(info.pod, status=status)), move.target
            )

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
            self._fork.displace(f"{REPLACEMENT}{pod.uid}")
            self._fork.place(pod, move.source)
        else:
            self.context.unplaced.set(pod)

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

    def _prove(
        self, candidate: Candidate, strategy: str, workload: Workload, surge: Surge | None = None
    ) -> Move | Refusal:
        pod, source = candidate.pod, candidate.node
        if pod.pod.is_terminal:
            return Move(
                pod, strategy, candidate.reason, source, "", None, 0, is_forecast=False, workload=workload
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
        if candidate.target:
            refusal, target = not_sent(candidate, ranking, self._is_target), candidate.target
        else:
            refusal = unexpected(source, ranking, self._rebalancing.margin, self._is_target)
            target = next(iter(ranking.best), "")
        refusal = refusal or self._short_of_gain(strategy, profile, ranking, source, target)
        if refusal is not None:
            return refusal
        if strategy in self._balancing and not candidate.target:
            for name in (target,) if surge else ranking.best:
                back = self._memory.ping_pong(workload.uid, strategy, name)
                if back is not None:
                    return back
        total, own = ranking.total_of(target), ranking.total_of(source)
        return Move(
            pod=pod,
            strategy=strategy,
            reason=candidate.reason,
            source=source,
            target=target,
            gain=None if own is None or total is None else total - own,
            ties=1 if candidate.target or surge else len(ranking.best),
            is_forecast=is_forecast,
            workload=workload,
            planner=self._rebalancing.planner,
            is_directed=bool(candidate.target),
            surge=surge,
        )

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
        if profile is None or pod.is_terminating or pod.uid in self._moved or is_awaited(pod):
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

    def _short_of_gain(
        self, strategy: str, profile: Profile, ranking: Ranking, source: str, target: str
    ) -> Refusal | None:
        """Why the move gains less than its strategy asks for."""
        asking = self._asking.get(strategy)
        if asking is None:
            return None
        own, total = ranking.total_of(source), ranking.total_of(target)
        if own is None or total is None:
            return Refusal("NoComparison", f"node {source}, its own, is not feasible and has no score")
        with calling(strategy, "least_gain"):
            least = asking.least_gain(MAX_SCORE * sum(profile.weights.values()))
        if total - own >= least:
            return None
        return Refusal(
            "SmallGain",
            f"node {target} beats its own node by {total - own} points, the strategy asks for {least}",
        )

    def _scheduler(self, profile: Profile) -> Scheduler:
        known = self._schedulers.get(id(profile))
        if known is None:
            known = self._schedulers[id(profile)] = Scheduler(profile, self._fork)
        return known

    def _serving(self, name: str) -> Scheduler | None:
        """The scheduler of that name on the fork, None when no policy serves it."""
        profile = self._rebalancing.profiles.get(name)
        return None if profile is None else self._scheduler(profile)

    def _is_target(self, name: str) -> bool:
        return self._rebalancing.is_target(self._fork.nodes[self._fork.rows[name]])
