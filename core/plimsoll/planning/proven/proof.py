"""Decides where a move ends: the node that the scheduler gives the replacement, after all moves so far.

The nodes that the scheduler ranks for the replacement on the plan's fork are tried in their order; the first
that the checks of targets admit is the target.
"""

import math
from functools import partial

from msgspec.structs import replace

from plimsoll.engine.decision import Ranking
from plimsoll.engine.plugin_calls import called
from plimsoll.engine.profile import Profile
from plimsoll.framework import MAX_SCORE
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.plugin_answers import of_kind
from plimsoll.model.columns.admitted_shapes import difference
from plimsoll.model.kinds.deployment import SURGED
from plimsoll.planning.complaint_comparison import NEW_COMPLAINT, TOLERANCE, WOULD_MOVE_AGAIN
from plimsoll.planning.moves import MOST_EQUALS, SCORE_GAIN, Move, replacement_of
from plimsoll.planning.proven.checks import (
    TARGET_CHECKS,
    TEMPLATE_CHECKS,
    CheckedCandidate,
    TriedNode,
    first_refusal,
)
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.proven.target_choice import (
    TargetChoice,
    best_admitted,
    both,
    expected,
    narrowed,
    not_sent,
)

#: Refusals by complaints that may be less severe than what the move mends.
YIELDING = frozenset({NEW_COMPLAINT, WOULD_MOVE_AGAIN})

#: Refusals because the scheduler would place the replacement on no other node.
NOT_FEASIBLE = ("NoFeasibleNode", "NoOtherNode", "NotFeasible")


def prove(candidate: CheckedCandidate, plan: PlanBuilder) -> Move | Refusal:
    """The move to the node that the scheduler chooses once the pod has left, or why the pod stays."""
    pod, rebalancing, strategy = candidate.pod, plan.rebalancing, candidate.strategy
    if pod.pod.is_terminal:
        return _to_no_node(candidate, plan)
    is_forecast = pod.pod.spec.scheduler_name not in rebalancing.profiles
    profile = rebalancing.profile_of(pod)
    assert profile is not None, "known_scheduler has refused it"
    if pod.uid not in plan.fork.pods:
        return Refusal("Gone", f"the pod is not on node {candidate.node} any more")
    known = None if is_forecast else _refused_by_template(candidate, profile, plan)
    ranking = known or _ranking(candidate, profile, plan)
    if isinstance(ranking, Refusal):
        return ranking
    maximum = MAX_SCORE * sum(profile.weights.values())
    chosen = _target(candidate, ranking, maximum, plan, is_forecast=is_forecast)
    if isinstance(chosen, Refusal):
        changed = difference(pod, plan.fork) if chosen.reason in NOT_FEASIBLE else ""
        clause = f"; its replacement will request {changed}"
        return replace(chosen, message=chosen.message.removesuffix(".") + clause) if changed else chosen
    total = ranking.total_of(chosen.target)
    own = None if chosen.target == candidate.node else ranking.total_of(candidate.node)
    return replace(
        _to_no_node(candidate, plan),
        target=chosen.target,
        gain=None if own is None or total is None else total - own,
        ties=1 if chosen.is_directed or candidate.surge else len(ranking.best),
        is_forecast=is_forecast,
        planner=rebalancing.planner,
        is_directed=chosen.is_directed,
        surge=candidate.surge,
        unsurged=candidate.unsurged,
        maximum=maximum,
        load=plan.load.change(strategy, pod, chosen.target),
        proven_with=difference(pod, plan.fork),
        equals=tuple(each for each in ranking.best if each != chosen.target)[:MOST_EQUALS]
        if is_forecast and chosen.target in ranking.best
        else (),
    )


def _to_no_node(candidate: CheckedCandidate, plan: PlanBuilder) -> Move:
    """The move of a pod that has ended and needs no target, or whose target is added."""
    return Move(
        pod=candidate.pod,
        strategy=candidate.strategy,
        reason=candidate.proposed.reason,
        source=candidate.node,
        target="",
        gain=None,
        ties=0,
        is_forecast=False,
        workload=candidate.workload,
        renews=candidate.strategy in plan.traits.restarting,
    )


def purpose_decides(strategy: str, plan: PlanBuilder) -> bool:
    """Whether the strategy's purpose decides about its targets, rather than the scheduler's score."""
    return strategy in plan.traits.restarting or plan.complaints.decides(strategy)


def _refused_by_template(candidate: CheckedCandidate, profile: Profile, plan: PlanBuilder) -> Refusal | None:
    """Why no pod of the template may move from there, if that is known without a proof."""
    pod, strategy, serves = candidate.pod, candidate.strategy, candidate.proposed.destinations
    if (
        candidate.proposed.target
        or candidate.is_bundled
        or candidate.surge is not None
        or SURGED in pod.pod.metadata.annotations
        or pod.pod.spec.resource_claims  # freed devices may serve other nodes too
        or (serves is not None and serves.preference is not None)
    ):
        return None
    proofs = plan.template_proofs
    if strategy not in proofs.applies:
        proofs.applies[strategy] = (
            strategy not in plan.traits.restarting
            and purpose_decides(strategy, plan)
            and _least_gain(strategy, MAX_SCORE, plan, by_score=False) is None
        )
    if not proofs.applies[strategy]:
        return None

    def refusal(node: str) -> Refusal | None:
        return first_refusal(TEMPLATE_CHECKS, TriedNode(candidate, node), plan)

    return proofs.refusal(candidate.proposed, profile, (strategy, candidate.workload.key), refusal)


def _ranking(candidate: CheckedCandidate, profile: Profile, plan: PlanBuilder) -> Ranking | Refusal:
    """The nodes for the replacement, or why none has room while the pod still runs."""
    pod, source = candidate.pod, candidate.node
    ranking = plan.schedulers.rank_without(pod, profile)
    restarts = candidate.strategy in plan.traits.restarting and not candidate.proposed.target
    if candidate.surge is None and not restarts:
        return ranking
    meanwhile = plan.schedulers.of(profile).rank(replacement_of(pod, plan.fork))
    if candidate.surge is None:
        # Most owners replace a pod while it still terminates: nodes that are feasible then too are preferred.
        return both(ranking, meanwhile)
    both_running = narrowed(ranking, meanwhile, source, plan.exclusion)
    if {*both_running.nodes} <= {source} and {*ranking.nodes} - {source, *meanwhile.nodes}:
        why = f": {meanwhile.diagnosis}" if meanwhile.diagnosis else ""
        return Refusal("NoRoomBeside", f"no other node takes its replacement while the pod still runs{why}")
    return both_running


def _target(
    candidate: CheckedCandidate, ranking: Ranking, maximum: int, plan: PlanBuilder, *, is_forecast: bool
) -> TargetChoice | Refusal:
    """The node for the replacement, or why none is possible.

    A pod in a wrong place goes to a node that another strategy complains of less severely, or would empty, if
    no other is possible.
    """
    strategy, proposed, reasons = candidate.strategy, candidate.proposed, set[str]()
    by_score = not (proposed.target or purpose_decides(strategy, plan))
    has_order = proposed.destinations is not None and proposed.destinations.preference is not None
    is_free = proposed.target or has_order
    least = None if is_free else _least_gain(strategy, maximum, plan, by_score=by_score)

    def choice(*, is_strict: bool) -> TargetChoice | Refusal:
        def refusal(node: str) -> Refusal | None:
            tried = TriedNode(candidate, node, ranking, least, is_strict)
            found = first_refusal(TARGET_CHECKS, tried, plan)
            if found is not None:
                reasons.add(found.reason)
            return found

        if proposed.target:
            problem = not_sent(proposed, ranking, plan.exclusion) or refusal(proposed.target)
            return problem or TargetChoice(proposed.target, is_directed=True)
        may_return = strategy in plan.traits.restarting
        if is_forecast or by_score:
            return expected(
                proposed, ranking, plan.exclusion, refusal, is_forecast=is_forecast, may_return=may_return
            )
        cool = partial(plan.load.cool, strategy, candidate.pod)
        return best_admitted(proposed, ranking, plan.target_rows, refusal, may_return=may_return, cool=cool)

    chosen = choice(is_strict=True)
    if isinstance(chosen, Refusal) and reasons & YIELDING and strategy not in plan.traits.by_use:
        return choice(is_strict=False)
    return chosen


def _least_gain(strategy: str, maximum: int, plan: PlanBuilder, *, by_score: bool) -> int | None:
    """The least gain of a move, in points of a ``maximum``; None if it need not gain any."""
    asking, percent = plan.traits.asking_gain.get(strategy), plan.rebalancing.minimum_gain_percent
    share = None if percent is None else percent / 100
    if asking is not None:
        least = of_kind(
            called(strategy, "least_gain", asking.least_gain, maximum), int, strategy, "least_gain"
        )
        return max(least, math.ceil((share or 0.0) * maximum - TOLERANCE), 1)
    if strategy in plan.traits.restarting or strategy in plan.traits.serving_pending:
        return None
    if by_score:
        return max(math.ceil((SCORE_GAIN if share is None else share) * maximum - TOLERANCE), 1)
    return None if share is None else math.ceil(share * maximum - TOLERANCE)
