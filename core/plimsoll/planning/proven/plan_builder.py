"""Builds one plan: a fork with all moves made, remaining limits and budgets, and the proof.

:mod:`plimsoll.planning.proven.planner` lists the checks that a proposal passes. Longer than 400 lines because
all of them read one fork.
"""

from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from plimsoll.devices.book import DeviceBook
from plimsoll.engine.decision import Ranking
from plimsoll.engine.profile import Profile
from plimsoll.framework import MAX_SCORE, PluginError, PodInfo
from plimsoll.framework.descheduling.context import StrategyContext, considered_nodes
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.pod_indexes import UnplacedPods
from plimsoll.framework.descheduling.proposals import Candidate, Refusal, Verdict
from plimsoll.model.columns.admitted_shapes import AdmittedShapes, difference
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.deployment import SURGED
from plimsoll.model.kinds.pod import PodStatus
from plimsoll.planning.aftermath import shifted
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.complaint_ledger import NEW_COMPLAINT, WOULD_MOVE_AGAIN, ProposedMove
from plimsoll.planning.devices.fork_devices import follow_devices
from plimsoll.planning.fork_schedulers import ForkSchedulers, placing
from plimsoll.planning.kept_findings import KEPT
from plimsoll.planning.limits import NO_CEILING, LimitLevel, Limits, Tally, Workload
from plimsoll.planning.moves import (
    Move,
    PlanningContext,
    RebalancingConfig,
    Refused,
    replacement_of,
    replacement_uid,
    workload_of,
)
from plimsoll.planning.populations import Populations
from plimsoll.planning.proven.objections import Objections
from plimsoll.planning.proven.prospects import ForkProspects
from plimsoll.planning.proven.target_choice import (
    TargetChoice,
    TargetRows,
    best_admitted,
    both,
    expected,
    narrowed,
    not_sent,
    short_of_gain,
)
from plimsoll.planning.proven.template_proofs import TemplateProofs
from plimsoll.planning.surges import Surge

#: Refusals by complaints that may be less severe than what the move mends.
YIELDING = (NEW_COMPLAINT, WOULD_MOVE_AGAIN)

#: Refusals because the scheduler would place the replacement on no other node.
NOT_FEASIBLE = ("NoFeasibleNode", "NoOtherNode", "NotFeasible")

#: For plans that only search for what would be possible.
UNLIMITED = Limits(per_workload=NO_CEILING)


class PlanBuilder:
    """The state of one plan: the fork with all moves made, and the remaining limits and budgets."""

    def __init__(
        self, rebalancing: RebalancingConfig, cluster: Cluster, planning_context: PlanningContext
    ) -> None:
        self.moves: list[Move] = []
        self.refused: list[Refused] = []
        self._rebalancing = rebalancing
        for counts in KEPT:  # counted once and updated, not in every fork
            cluster.index(counts)
        self.fork = cluster.fork()
        self.has_devices = self.fork.objects.known_ledger(DeviceBook) is not None
        if self.has_devices:
            follow_devices(self.fork)
        self.moved: set[str] = set()
        self.schedulers = ForkSchedulers(rebalancing.profiles, self.fork)
        self._target_rows = TargetRows(self.fork, rebalancing.is_target)
        self._template_proofs = TemplateProofs(self.fork, self.schedulers, self._target_rows)
        self._by_template: dict[str, bool] = {}
        self.ledger = BudgetLedger(self.fork.objects.budgets.values())
        self.in_bundle = False
        prospects = ForkProspects(self.fork, rebalancing, self.schedulers)
        self.context = StrategyContext(
            cluster=self.fork,
            nodes=considered_nodes(self.fork, rebalancing.nodes),
            now=planning_context.now,
            evictors=tuple(rebalancing.evictors),
            planner=Planner.PROVEN,
            unplaced=UnplacedPods(planning_context.unplaced),
            measurements=planning_context.measurements,
            gangs=planning_context.gangs,
            prospects=prospects,
        )
        shapes = self.fork.index(AdmittedShapes)
        for waiting in self.context.unplaced.pending():
            shapes.add(waiting, -1)  # admitted as well, though it has no place yet
        self.objections = Objections(rebalancing, self.fork, self.context, planning_context)
        prospects.load_lines = self.objections.load
        populations = Populations(self.fork, rebalancing.evictors, rebalancing.nodes)
        self.tally = Tally(
            rebalancing.limits, populations, planning_context.in_flight, planning_context.recent
        )

    def judge(
        self, candidate: Candidate, strategy: str, but: LimitLevel | None = None, after: Move | None = None
    ) -> Verdict | None:
        """Judge one pod.

        The limit ``but`` does not apply to it. The move ``after``, of the same workload, ends before this one
        begins.
        """
        pod = candidate.pod
        given_back = after.budget if after else ""
        if pod.uid in self.moved or pod.stands_in_for is not None:
            return Verdict.REFUSED  # strategies see replacements in their new places before they exist
        hasty = self.objections.hasty(candidate.node, strategy)
        if hasty is not None:
            self.refused.append(Refused(pod, strategy, candidate.reason, hasty))
            return Verdict.NODE_CLOSED
        answer: Refusal | Move
        limit = None
        try:
            protection = self.objections.protection(candidate)
            surge = protection if isinstance(protection, Surge) else None
            workload = surge.workload(pod.namespace) if surge else workload_of(pod)
            limit = self.tally.reached(candidate.node, pod.namespace, workload, but)
            if after is not None and limit is not None and limit.level is LimitLevel.WORKLOAD:
                limit = None  # checked last: no other limit is reached
            answer = (
                (protection if isinstance(protection, Refusal) else None)
                or (limit.refusal if limit else None)
                or (self.ledger.shortage(pod) if surge else self.ledger.refusal(pod, given_back))
                or self.objections.lesson(strategy, pod, workload, [] if surge else self.ledger.over(pod))
                or self.objections.settling(pod, strategy)
                or self.objections.unmeasured(candidate, strategy, workload)
                or self._prove(candidate, strategy, workload, surge)
            )
        except PluginError as exc:
            answer = Refusal("PluginError", str(exc))
        if isinstance(answer, Move):
            self.tally.count(answer.source, pod.namespace, answer.workload)
            # A surge deletes its pod when one more healthy pod exists, so it uses no budget.
            budget = "" if answer.surge else self.ledger.take(pod, given_back)
            self.moves.append(replace(answer, budget=budget, waits=after is not None))
            self.objections.load.moved(answer)
            self.make(answer)
            return Verdict.ACCEPTED
        self.refused.append(Refused(pod, strategy, candidate.reason, answer))
        if limit is not None and limit.level.ends_cycle:
            return None
        if limit is not None and limit.level is LimitLevel.NODE:
            return Verdict.NODE_CLOSED
        return Verdict.REFUSED

    def booked(self) -> None:
        """Drop cached results; the fork has changed permanently."""
        self._template_proofs.forget()
        self.objections.conscience.forget()

    def set_replacement(self, move: Move, status: PodStatus) -> None:
        """Set the replacement's state in the fork."""
        self.booked()
        if move.target:
            info = replacement_of(move.pod, self.fork, move.target)
            self.fork.displace(info.uid)
            named = info.pod.status.resource_claim_statuses
            status = msgspec.structs.replace(status, resource_claim_statuses=named)
            changed = msgspec.structs.replace(info.pod, status=status)
            self.fork.place(self.fork.templates.info(changed, info.stands_in_for), move.target)

    def take_back(self, move: Move) -> None:
        """Undo a move in the fork."""
        self.booked()
        pod = move.pod
        self.moved.discard(pod.uid)
        if move.target:
            self.fork.displace(replacement_uid(pod))
            self.fork.place(pod, move.source)
            self.context.measurements = shifted(
                self.context.measurements, [(pod.key, move.target, move.source)]
            )
        else:
            self.context.unplaced.set(pod)

    def make(self, move: Move) -> None:
        """Make a move in the fork: remove the pod, place its replacement on the target."""
        self.booked()
        pod = move.pod
        self.moved.add(pod.uid)
        self.fork.displace(pod.uid)
        self.context.unplaced.discard(pod.uid)
        if move.target and move.target in self.fork.rows:
            self.fork.place(replacement_of(pod, self.fork, move.target), move.target)
            self.context.measurements = shifted(
                self.context.measurements, [(pod.key, move.source, move.target)]
            )

    def collect_protected(self, strategy: str) -> None:
        """Collect the pods that evictors protected from a strategy's search."""
        for each in self.context.protected:
            self.refused.append(Refused(each.pod, strategy, each.wanted, each.refusal))
        self.context.protected.clear()

    def _prove(
        self, candidate: Candidate, strategy: str, workload: Workload, surge: Surge | None = None
    ) -> Move | Refusal:
        pod = candidate.pod
        if pod.pod.is_terminal:
            return self._without_target(candidate, strategy, workload)
        named = pod.pod.spec.scheduler_name
        profile = self._rebalancing.profiles.get(named) or self._rebalancing.forecast
        if profile is None:
            return Refusal("OtherScheduler", f'scheduler "{named}" places the pod, and no policy serves it')
        is_forecast = named not in self._rebalancing.profiles
        if candidate.target and is_forecast:
            return Refusal("OtherScheduler", f'scheduler "{named}" places the pod and takes no target node')
        asked = placing(profile, pod)
        if asked is not None:
            return Refusal(
                "PlacedByExtender",
                f"extender {asked.name} has a say in where it goes; its next node cannot be proved",
            )
        if pod.uid not in self.fork.pods:
            return Refusal("Gone", f"the pod is not on node {candidate.node} any more")
        if surge is None and not is_forecast:
            known = self._refused_by_template(candidate, strategy, profile, workload)
            if known is not None:
                return known
        move = self._without_target(candidate, strategy, workload)
        return self._proved(candidate, move, profile, surge, is_forecast=is_forecast)

    def _without_target(self, candidate: Candidate, strategy: str, workload: Workload) -> Move:
        """The move of a pod that needs no target, or whose target is not proven yet."""
        return Move(
            pod=candidate.pod,
            strategy=strategy,
            reason=candidate.reason,
            source=candidate.node,
            target="",
            gain=None,
            ties=0,
            is_forecast=False,
            workload=workload,
            renews=strategy in self.objections.renewing,
        )

    def _proved(
        self,
        candidate: Candidate,
        move: Move,
        profile: Profile,
        surge: Surge | None,
        *,
        is_forecast: bool,
    ) -> Move | Refusal:
        """The move to the node that the scheduler chooses once the pod has left, or why the pod stays."""
        pod, source, strategy = candidate.pod, candidate.node, move.strategy
        ranking = self.schedulers.rank_without(pod, profile)
        if surge is not None:
            meanwhile = self.schedulers.of(profile).rank(replacement_of(pod, self.fork))
            alone, ranking = ranking, narrowed(ranking, meanwhile, source, self._exclusion)
            if {*ranking.nodes} <= {source} and {*alone.nodes} - {source, *meanwhile.nodes}:
                why = f": {meanwhile.diagnosis}" if meanwhile.diagnosis else ""
                return Refusal(
                    "NoRoomBeside", f"no other node takes its replacement while the pod still runs{why}"
                )
        elif move.renews and not candidate.target:
            # Most owners replace a pod while it still terminates: nodes that are feasible then too are
            # preferred.
            meanwhile = self.schedulers.of(profile).rank(replacement_of(pod, self.fork))
            ranking = both(ranking, meanwhile)
        maximum = MAX_SCORE * sum(profile.weights.values())
        chosen = self._chosen(candidate, strategy, ranking, maximum, is_forecast=is_forecast)
        if isinstance(chosen, Refusal):
            return self._with_difference(chosen, pod)
        total = ranking.total_of(chosen.target)
        own = None if chosen.target == source else ranking.total_of(source)
        return replace(
            move,
            target=chosen.target,
            gain=None if own is None or total is None else total - own,
            ties=1 if chosen.is_directed or surge else len(ranking.best),
            is_forecast=is_forecast,
            planner=self._rebalancing.planner,
            is_directed=chosen.is_directed,
            surge=surge,
            maximum=maximum,
            load=self.objections.load.change(strategy, pod, chosen.target),
        )

    def _with_difference(self, refusal: Refusal, pod: PodInfo) -> Refusal:
        """The refusal; if no other node is feasible, with what the replacement requests otherwise."""
        clause = difference(pod, self.fork) if refusal.reason in NOT_FEASIBLE else ""
        if not clause:
            return refusal
        return replace(refusal, message=f"{refusal.message.removesuffix('.')}; {clause}")

    def _refused_by_template(
        self, candidate: Candidate, strategy: str, profile: Profile, workload: Workload
    ) -> Refusal | None:
        """Why no pod of the template may move from there, if that is known without a proof."""
        pod = candidate.pod
        if (
            candidate.target
            or self.in_bundle
            or SURGED in pod.pod.metadata.annotations
            or pod.pod.spec.resource_claims  # freed devices may serve other nodes too
            or (candidate.destinations is not None and candidate.destinations.preference is not None)
            or not self._judges_by_template(strategy)
        ):
            return None

        def objection(name: str) -> Refusal | None:
            return self.objections.ping_pong(candidate, strategy, name) or self.objections.crowds(
                pod, strategy, name
            )

        return self._template_proofs.refusal(candidate, profile, (strategy, workload.key), objection)

    def _judges_by_template(self, strategy: str) -> bool:
        """Whether the strategy's complaints decide, and no gain is required."""
        known = self._by_template.get(strategy)
        if known is None:
            known = self._by_template[strategy] = (
                strategy not in self.objections.renewing
                and self.objections.decides(strategy)
                and self.objections.least_gain(strategy, MAX_SCORE, by_score=False) is None
            )
        return known

    def _chosen(
        self, candidate: Candidate, strategy: str, ranking: Ranking, maximum: int, *, is_forecast: bool
    ) -> TargetChoice | Refusal:
        """The node for the replacement, or why none is possible.

        A pod in a wrong place goes to a node that another strategy complains of less severely, or would
        empty, if no other is possible.
        """
        pod, source = candidate.pod, candidate.node
        may_yield = False

        def strictly(name: str) -> Refusal | None:
            nonlocal may_yield
            found = self.objections.complaint(strategy, ProposedMove(pod, source, name))
            may_yield = may_yield or (found is not None and found.reason in YIELDING)
            return found

        def leniently(name: str) -> Refusal | None:
            return self.objections.complaint(strategy, ProposedMove(pod, source, name), strict=False)

        choice = partial(self._choice, candidate, strategy, ranking, maximum, is_forecast=is_forecast)
        chosen = choice(strictly)
        if isinstance(chosen, Refusal) and may_yield and not self.objections.is_by_use(strategy):
            return choice(leniently)
        return chosen

    def _choice(
        self,
        candidate: Candidate,
        strategy: str,
        ranking: Ranking,
        maximum: int,
        complaint: Callable[[str], Refusal | None],
        *,
        is_forecast: bool,
    ) -> TargetChoice | Refusal:
        source = candidate.node
        by_score = not (candidate.target or self.objections.decides(strategy))
        has_order = candidate.destinations is not None and candidate.destinations.preference is not None
        least = (
            None
            if candidate.target or has_order
            else self.objections.least_gain(strategy, maximum, by_score=by_score)
        )

        def objection(name: str) -> Refusal | None:
            return (
                self.objections.ping_pong(candidate, strategy, name)
                or self.objections.heats(candidate, strategy, name)
                or short_of_gain(ranking, source, name, least, compares=strategy in self.objections.asking)
                or (None if self.in_bundle else complaint(name))
            )

        if candidate.target:
            refusal = not_sent(candidate, ranking, self._exclusion) or objection(candidate.target)
            return refusal or TargetChoice(candidate.target, is_directed=True)
        may_return = strategy in self.objections.renewing
        if is_forecast or by_score:
            return expected(
                candidate,
                ranking,
                self._exclusion,
                objection,
                is_forecast=is_forecast,
                may_return=may_return,
            )
        cool = partial(self.objections.load.cool, strategy, candidate.pod)
        return best_admitted(
            candidate, ranking, self._target_rows, objection, may_return=may_return, cool=cool
        )

    def ranked(self, pod: PodInfo) -> Ranking | None:
        """Rank the nodes for a pod after all moves so far; None if no profile can."""
        scheduler = self.schedulers.serving(pod)
        if scheduler is None or pod.uid not in self.fork.pods:
            return None
        try:
            return self.schedulers.rank_without(pod, scheduler.profile)
        except PluginError:
            return None

    def may_be_sent(self, pod: PodInfo, node: str, strategy: str) -> bool:
        """Whether a pod may be moved to a given node: no protection, budget or past move objects."""
        if pod.is_terminating or pod.uid in self.moved or pod.stands_in_for is not None:
            return False
        if self.schedulers.deciding(pod) is None:
            return False
        try:
            protection = self.objections.protection(Candidate(pod, node, ""))
            surge = protection if isinstance(protection, Surge) else None
            workload = surge.workload(pod.namespace) if surge else workload_of(pod)
            return not (
                isinstance(protection, Refusal)
                or (self.ledger.shortage(pod) if surge else self.ledger.refusal(pod))
                or self.objections.lesson(strategy, pod, workload, [] if surge else self.ledger.over(pod))
                or self.objections.settling(pod, strategy)
            )
        except PluginError:
            return False

    def _exclusion(self, name: str) -> str:
        return self._rebalancing.exclusion(self.fork.nodes[self.fork.rows[name]])
