"""Gives verdicts on proposals, and makes the moves of those that are accepted in the plan.

A candidate passes :mod:`plimsoll.planning.proven.checks`, then :mod:`plimsoll.planning.proven.proof`. The
moves of a bundle are all made or none; pods that share a ResourceClaim are one, too.
"""

from msgspec import UNSET
from msgspec.structs import replace

from plimsoll.devices.fork_devices import ForkDevices
from plimsoll.devices.shared_claims import SharedClaimGroup, together
from plimsoll.framework import PluginError
from plimsoll.framework.descheduling.proposals import (
    Beneficiary,
    Bundle,
    Candidate,
    Proposal,
    Refusal,
    Verdict,
)
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.model.kinds.pod import PodStatus
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.requests import DEFERRED, pending_resize
from plimsoll.model.prices import price_of
from plimsoll.planning.complaint_comparison import MENDS_NOTHING, NEW_COMPLAINT, ProposedMove
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.moves import TO_BE_EMPTIED, Move, Refused, workload_of
from plimsoll.planning.proven.checks import (
    NODE_CHECKS,
    POD_CHECKS,
    CheckedCandidate,
    first_refusal,
    limits,
)
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.proven.proof import prove
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.toolkit.descheduling.resize_room import resize_deficit

#: Why a pod of a bundle stays that another proposal has already moved.
MOVED = Refusal("Moved", "it moves already")

#: Why pods that leave one after the other stay if they share a claim.
ONE_BY_ONE = Refusal("SharedClaim", "it shares a ResourceClaim, and is to move only after another pod has")

#: Moves that ended this many seconds ago count as under way where nothing is reserved.
JUST_NOW_S = 1.0

#: The reason of refusals for pods of a bundle whose moves would not help.
NO_USE = "NoRoomMade"


def judge_strategy(plan: PlanBuilder, strategy: Strategy) -> None:
    """Judge all proposals of a strategy.

    Raises:
        PluginError: The strategy raised; earlier verdicts stand.
    """
    run_strategy(strategy, plan.context, lambda proposal: judge(plan, proposal, strategy.name))


def judge(
    plan: PlanBuilder, proposal: Proposal, strategy: str, whole: frozenset[str] = frozenset()
) -> Verdict | None:
    """Make the moves of a proposal in the plan, or refuse it; None when the cycle's total is used up.

    A plugin or evictor that raises affects this proposal only. ``whole`` has the uids of the pods that leave
    together with a single candidate, as the members of one group.
    """
    plan.load.begin()
    candidates = proposal.candidates if isinstance(proposal, Bundle) else (proposal,)
    shared = together(candidates, plan.fork) if plan.has_devices else None
    if shared is not None:
        return _judge_shared(plan, proposal, strategy, shared)
    if isinstance(proposal, Bundle):
        return _judge_all(plan, proposal, strategy)
    return _judge_one(plan, CheckedCandidate.of(proposal, strategy, whole=whole))


def _judge_one(plan: PlanBuilder, candidate: CheckedCandidate) -> Verdict | None:
    """The verdict on one pod."""
    pod = candidate.pod
    if pod.uid in plan.moved or pod.stands_in_for is not None:
        return Verdict.REFUSED  # strategies see replacements in their new places before they exist
    refusal = first_refusal(NODE_CHECKS, candidate, plan)
    if refusal is not None:
        return _refuse(plan, candidate, refusal, Verdict.NODE_CLOSED)
    try:
        found = first_refusal(POD_CHECKS, candidate, plan) or prove(candidate, plan)
        if isinstance(found, Refusal) and candidate.surge is not None and not candidate.surge_is_needed:
            candidate = replace(
                candidate, surge=None, unsurged=found.message, workload=candidate.owner, limit=UNSET
            )
            found = first_refusal(POD_CHECKS, candidate, plan) or prove(candidate, plan)
        limits(candidate, plan)  # a protected pod, too, ends the run whose total is used up
    except PluginError as exc:
        return _refuse(plan, candidate, Refusal("PluginError", str(exc)))
    if isinstance(found, Move):
        return _accept(plan, candidate, found)
    level = candidate.limit.level if candidate.limit else None
    if level is not None and level.ends_cycle:
        return _refuse(plan, candidate, found, None)
    closed = Verdict.NODE_CLOSED if level is LimitLevel.NODE else Verdict.REFUSED
    return _refuse(plan, candidate, found, closed)


def _refuse(
    plan: PlanBuilder,
    candidate: CheckedCandidate,
    refusal: Refusal,
    verdict: Verdict | None = Verdict.REFUSED,
) -> Verdict | None:
    plan.refused.append(Refused(candidate.pod, candidate.strategy, candidate.proposed.reason, refusal))
    return verdict


def _accept(plan: PlanBuilder, candidate: CheckedCandidate, move: Move) -> Verdict:
    after = candidate.after
    plan.tally.count(move.source, move.pod.namespace, move.workload)
    # A surge deletes its pod when one more healthy pod exists, so it uses no budget.
    budget = "" if move.surge else plan.ledger.take(move.pod, after.budget if after else "")
    plan.moves.append(replace(move, budget=budget, waits=after is not None))
    plan.load.moved(move)
    plan.make(move)
    return Verdict.ACCEPTED


def _judge_shared(
    plan: PlanBuilder, proposal: Proposal, strategy: str, shared: SharedClaimGroup | Refusal
) -> Verdict | None:
    """Book the moves of all pods that share claims, or of none of them."""
    bundle = proposal if isinstance(proposal, Bundle) else None
    candidates = proposal.candidates if isinstance(proposal, Bundle) else (proposal,)
    if isinstance(shared, SharedClaimGroup) and shared.is_shared and bundle is not None and bundle.one_by_one:
        shared = ONE_BY_ONE
    if isinstance(shared, Refusal):
        plan.refused += [Refused(each.pod, strategy, each.reason, shared) for each in candidates]
        return Verdict.REFUSED
    devices = plan.fork.index(ForkDevices)
    released = devices.release(shared.claims)
    plan.forget()
    verdict: Verdict | None
    if bundle is None and len(shared.candidates) == 1:
        verdict = _judge_one(plan, CheckedCandidate.of(shared.candidates[0], strategy))
    else:
        verdict = _judge_all(
            plan, replace(bundle or Bundle(candidates), candidates=shared.candidates), strategy
        )
    if verdict is not Verdict.ACCEPTED:
        devices.restore(released)
        plan.forget()
    return verdict


def _judge_all(plan: PlanBuilder, bundle: Bundle, strategy: str) -> Verdict | None:
    """Make all moves or none: those made are undone when one candidate must stay."""
    made, refused = len(plan.moves), len(plan.refused)
    tally, ledger, measured = plan.tally.copy(), plan.ledger.copy(), plan.context.measurements
    whole = frozenset(each.pod.uid for each in bundle.candidates if bundle.group)
    for candidate in bundle.candidates:
        after = _before(plan, candidate, 0 if bundle.follows else made) if bundle.one_by_one else None
        checked = CheckedCandidate.of(candidate, strategy, after=after, is_bundled=True, whole=whole)
        verdict = _judge_one(plan, checked)
        if verdict is not Verdict.ACCEPTED:
            why = plan.refused[-1].refusal if len(plan.refused) > refused else MOVED
            break
        if bundle.one_by_one:
            plan.set_replacement(plan.moves[-1], plan.moves[-1].pod.pod.status)
    else:
        no_use = _no_use(plan, bundle) or _complaint(plan, plan.moves[made:], strategy)
        if no_use is None:
            _mark_together(plan, bundle, made, strategy)
            if strategy in plan.traits.emptying:
                plan.empties({move.source for move in plan.moves[made:]})
            return Verdict.ACCEPTED
        verdict, why = Verdict.REFUSED, no_use
    del plan.refused[refused:]
    for move in reversed(plan.moves[made:]):
        plan.take_back(move)
    del plan.moves[made:]
    plan.tally, plan.ledger, plan.context.measurements = tally, ledger, measured
    plan.load.undo()
    for each in bundle.candidates:
        message = f"it goes only with others, and pod {candidate.pod.key} must stay: {why.message}"
        is_common = why.reason in (NO_USE, MENDS_NOTHING, NEW_COMPLAINT)
        own = why if each is candidate or is_common else Refusal("NotAll", message)
        plan.refused.append(Refused(each.pod, strategy, each.reason, own))
    return verdict


def _mark_together(plan: PlanBuilder, bundle: Bundle, made: int, strategy: str) -> None:
    """Mark the moves as one bundle, and place the beneficiary in the room."""
    name, beneficiary = bundle.candidates[0].pod.uid if bundle.candidates else "", bundle.beneficiary
    many = len(plan.moves) - made
    whole = frozenset(move.pod.uid for move in plan.moves[made:] if bundle.group)
    saves = strategy in plan.traits.saving
    plan.moves[made:] = [
        replace(
            move,
            bundle=name,
            part=(position, many),
            beneficiary=beneficiary,
            group=bundle.group,
            whole=whole,
            price=str(price_of(plan.context.node(move.source)) or "") if saves else "",
        )
        for position, move in enumerate(plan.moves[made:], 1)
    ]
    if bundle.one_by_one:
        for move in plan.moves[made:]:  # other proposals do not wait, unless they follow
            plan.set_replacement(move, move.pod.pod.status if bundle.follows else PodStatus(phase="Pending"))
    for each in beneficiary.all if beneficiary is not None else ():
        plan.moved.add(each.pod.uid)  # no other proposal of this plan moves it
        if each.pod.uid not in plan.fork.pods:  # a pod that is resized is there already
            plan.context.unplaced.discard(each.pod.uid)
            plan.fork.place(each.pod, each.node)
            plan.forget()


def _before(plan: PlanBuilder, candidate: Candidate, first: int) -> Move | None:
    """The move of the same workload that precedes a candidate of a bundle, from the plan's ``first`` on."""
    owner = workload_of(candidate.pod).key
    return next((move for move in reversed(plan.moves[first:]) if move.workload.key == owner), None)


def _no_use(plan: PlanBuilder, bundle: Bundle) -> Refusal | None:
    """Why the moves, all made, do not help their beneficiary."""
    with plan.context.prospects.attempt() as attempt:
        for each in bundle.beneficiary.all if bundle.beneficiary is not None else ():
            refusal = _no_use_for(plan, each, bundle)
            if refusal is not None:
                return refusal
            attempt.place(each.pod, each.node)  # members of a gang see the earlier ones
    return None


def _no_use_for(plan: PlanBuilder, beneficiary: Beneficiary, bundle: Bundle) -> Refusal | None:
    """Why the moves do not help one of their beneficiaries."""
    pod, node = beneficiary.pod, beneficiary.node
    if plan.exclusion(node) == TO_BE_EMPTIED:
        return Refusal(NO_USE, f"node {node} {TO_BE_EMPTIED}")
    above = next((each.pod for each in bundle.candidates if each.pod.priority > pod.priority), None)
    if above is not None:
        return Refusal(NO_USE, f"pod {above.key} has a higher priority than pod {pod.key}")
    if pod.uid in plan.fork.pods:
        return _no_use_for_resize(plan, pod, node)
    scheduler = plan.schedulers.serving(pod)
    if scheduler is None or pod.uid not in plan.context.unplaced:
        return Refusal(NO_USE, f"pod {pod.key} is not pending, or no SchedulingPolicy serves its scheduler")
    try:
        ranking = scheduler.rank(pod)
    except PluginError as exc:
        return Refusal(NO_USE, str(exc))
    if ranking.total_of(node) is None:
        return Refusal(NO_USE, f"pod {pod.key} would still not fit node {node}")
    return None


def _no_use_for_resize(plan: PlanBuilder, pod: PodInfo, node: str) -> Refusal | None:
    """Why the moves do not help a pod whose resize in place its node has deferred."""
    if pending_resize(pod.pod) != DEFERRED or plan.context.node_of(pod) != node:
        return Refusal(NO_USE, f"pod {pod.key} does not wait for a resize on node {node}")
    latest, now = plan.planning_context.touched.get(node), plan.planning_context.now.timestamp()
    if latest is not None and latest >= now - JUST_NOW_S:
        return Refusal(NO_USE, f"moves off or to node {node} are still under way")
    if resize_deficit(pod, plan.context).any():
        return Refusal(NO_USE, f"the resize of pod {pod.key} would still not fit node {node}")
    return None


def _complaint(plan: PlanBuilder, moves: list[Move], strategy: str) -> Refusal | None:
    """Why the strategies object to moves that are made already, all together."""
    together = [ProposedMove(move.pod, move.source, move.target) for move in moves if move.target]
    if not plan.compares_complaints or not together:
        return None
    traits, measured = plan.traits, plan.context.measurements
    mends = strategy not in traits.serving_pending | traits.restarting
    for move in reversed(moves):
        plan.take_back(move)
    try:
        return plan.complaints.refusal(strategy, together, mends=mends, strict=strategy in traits.by_use)
    finally:
        for move in moves:
            plan.make(move)
        plan.context.measurements = measured
