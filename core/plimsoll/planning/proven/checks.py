"""Decides whether a pod is moved: protections, limits, budgets, recent moves, complaints, in a fixed order.

The first refusal counts. A check takes a candidate, or a node that is tried as its target, and the plan so
far. It returns why the pod stays, or None. It changes nothing in the plan. The tables at the end of this
module are the order.
"""

from collections.abc import Callable, Iterable
from typing import Self, TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from plimsoll.engine.decision import Ranking
from plimsoll.engine.plugin_calls import called
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.proposals import Candidate, Refusal
from plimsoll.framework.plugin_answers import of_kind
from plimsoll.model.columns.admitted_shapes import inadmissible
from plimsoll.model.gang_members import GangMembers
from plimsoll.planning.complaint_comparison import ProposedMove
from plimsoll.planning.fork_schedulers import placing
from plimsoll.planning.limits import LimitLevel, LimitReached, Workload
from plimsoll.planning.moves import Move, workload_of
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.proven.target_choice import short_of_gain
from plimsoll.planning.surges import Surge

#: Why a pod is not planned again.
MOVING = "an earlier move of the pod is under way"

#: Why a replacement stays for a while.
REPLACED = "it replaced a pod that was moved within the last hour"


class CheckedCandidate(Struct):
    """A candidate on its way through the checks.

    Attributes:
        proposed: What the strategy proposed; ``pod`` and ``node`` are its own.
        owner: The pod's owner.
        workload: Whose limit counts: the owner, or the Deployment of a surge.
        after: The move of the same workload that ends before this one begins, or None.
        is_bundled: Whether it moves only together with others: the limit of a node does not apply, and
            complaints are compared for all of them.
        whole: Uids of the pods of its group, itself included, that leave whole; empty if it leaves by itself.
        surge: The rollout or the replica more that moves it instead of an eviction; set by ``protections``.
        surge_is_needed: Whether the pod may not be evicted instead.
        unsurged: Why no surge moves it, though the policy asks for surges; "" if one does.
        limit: The limit that keeps it; unset until somebody has looked.
    """

    proposed: Candidate
    pod: PodInfo
    node: str
    strategy: str
    owner: Workload
    workload: Workload
    after: Move | None = None
    is_bundled: bool = False
    whole: frozenset[str] = frozenset()
    surge: Surge | None = None
    surge_is_needed: bool = False
    unsurged: str = ""
    limit: LimitReached | UnsetType | None = UNSET

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        strategy: str,
        *,
        after: Move | None = None,
        is_bundled: bool = False,
        whole: frozenset[str] = frozenset(),
    ) -> Self:
        """A strategy's candidate that no check has seen."""
        owner = workload_of(candidate.pod)
        pod, node = candidate.pod, candidate.node
        return cls(
            candidate, pod, node, strategy, owner, owner, after=after, is_bundled=is_bundled, whole=whole
        )


class TriedNode(Struct, frozen=True):
    """A node that is tried as the target of a candidate.

    Attributes:
        ranking: The scheduler's ranking for the replacement; None while nothing is ranked for it alone.
        least_gain: The least gain of the move in points; None if it need not gain any.
        is_strict: Whether no complaint may increase, however little severe.
    """

    candidate: CheckedCandidate
    name: str
    ranking: Ranking | None = None
    least_gain: int | None = None
    is_strict: bool = True


CheckedT = TypeVar("CheckedT")

Check = Callable[[CheckedT, PlanBuilder], Refusal | None]
"""Why the candidate stays, or does not go to the node, in the plan so far; None if this check admits it."""


def first_refusal(checks: Iterable[Check[CheckedT]], checked: CheckedT, plan: PlanBuilder) -> Refusal | None:
    """The refusal of the first check that has one."""
    for check in checks:
        refusal = check(checked, plan)
        if refusal is not None:
            return refusal
    return None


# -- of a node: why no pod may leave it in this run ------------------------------------------------------


def over_used_often_enough(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """The node was over-used in as many runs in a row as the policy asks for."""
    asked = plan.rebalancing.anomaly_rounds
    if asked <= 1 or not any(candidate.node in found.overutilized for found in plan.context.classes):
        return None
    seen = plan.planning_context.over_for.get((candidate.strategy, candidate.node), 0) + 1
    if seen >= asked:
        return None
    return Refusal(
        "NotYet",
        f"node {candidate.node} was over-used in {seen} of the {asked} runs in a row that the policy asks"
        " for",
    )


def load_of_source(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """The node's load stays high by itself, and was read again since its latest move."""
    return plan.load.of_node(candidate.strategy, candidate.node)


# -- of a pod: why it may not leave its node -------------------------------------------------------------


def protections(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """No evictor protects the pod, nor its group; what forbids an eviction only may admit a surge."""
    pod, context = candidate.pod, plan.context
    asked, uid = context.present, pod.uid
    is_known = uid in asked.evictable and uid in asked.movable  # the strategy has just asked
    for evictor in () if is_known else plan.rebalancing.evictors:
        refusal = called(evictor.name, "filter", evictor.filter, pod, context)
        last = called(evictor.name, "preEvictionFilter", evictor.pre_eviction_filter, pod, context)
        if refusal is None and last is None:
            continue
        for each in (refusal, last):
            if each is None:
                continue
            of_kind(each, Refusal, evictor.name, "filter")
            if candidate.whole:
                return each  # a surge would bring up one member before the others
            surge = plan.surging.of(pod) if each.yields_to_surge and plan.surging else None
            if not isinstance(surge, Surge):
                return context.surges.lift(pod, each) if each.yields_to_surge else each
            candidate.surge, candidate.surge_is_needed = surge, True
    if plan.surging and candidate.surge is None and not candidate.unsurged and not candidate.whole:
        found = plan.surging.at_best(pod)
        candidate.surge, candidate.unsurged = (found, "") if isinstance(found, Surge) else (None, found)
    if candidate.surge is not None and candidate.surge.replicas is None:
        candidate.workload = candidate.surge.workload(pod.namespace)
    return context.bound_to_gang(pod, candidate.whole)


def limits(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """No limit of the run, the node, the namespace or the workload is used up."""
    if candidate.limit is UNSET:
        but = LimitLevel.NODE if candidate.is_bundled else None
        reached = plan.tally.reached(candidate.node, candidate.pod.namespace, candidate.workload, but)
        # The limit of a workload is the last: where it is reached, no other is.
        is_last = reached is not None and reached.level is LimitLevel.WORKLOAD
        leaves_whole = bool(candidate.whole) and candidate.pod.uid in plan.fork.index(GangMembers)
        candidate.limit = None if is_last and (candidate.after or leaves_whole) else reached
    return candidate.limit.refusal if candidate.limit else None


def disruption_budget(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """The PodDisruptionBudget of the pod allows one more disruption after the moves so far."""
    if candidate.surge is not None:
        return plan.ledger.shortage(candidate.pod)
    refusal = plan.ledger.refusal(candidate.pod, candidate.after.budget if candidate.after else "")
    if refusal is None or not candidate.unsurged:
        return refusal
    return replace(refusal, message=f"{refusal.message}, and no surge can move it: {candidate.unsurged}")


def ready_replacements(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """No replacement of an earlier move of the owner is still not ready.

    A strategy that wants a fresh pod may restart this very replacement, and ended pods may be deleted.
    """
    unready, pod = plan.planning_context.unready, candidate.pod
    found = unready.get(candidate.workload.key) or unready.get(candidate.owner.key)
    if found is None or pod.pod.is_terminal:
        return None
    if found.uid == pod.uid and candidate.strategy in plan.traits.restarting:
        return None
    return found.refusal


def blocked_budget(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """The API server has not just refused an eviction for the pod's budget; a surge needs none."""
    budgets = [] if candidate.surge else plan.ledger.over(candidate.pod)
    return plan.planning_context.memory.budget(budgets[0].key) if budgets else None


def fruitless_moves(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """Earlier moves of the owner have not just failed.

    The workload of a surge is the Deployment; evictions of its pods are recorded for their ReplicaSet.
    """
    held_back, strategy = plan.planning_context.memory.held_back, candidate.strategy
    refusal = held_back(candidate.workload.key, strategy)
    if refusal is None and candidate.surge is not None:
        return held_back(candidate.owner.key, strategy)
    return refusal


def already_moving(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """No earlier move is about to take the pod off its node."""
    is_moving = candidate.pod.uid in plan.planning_context.moving
    return Refusal("AlreadyMoving", MOVING) if is_moving else None


def moved_recently(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """The pod has not replaced a moved one within the hour, unless a fresh pod or an empty node is wanted."""
    traits, strategy = plan.traits, candidate.strategy
    if candidate.pod.uid not in plan.planning_context.moved:
        return None
    if strategy in traits.restarting or strategy in traits.ordered:
        return None
    return Refusal("MovedRecently", REPLACED)


def admission(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """No LimitRange refuses to create the pod again."""
    if candidate.pod.pod.is_terminal:
        return None
    said = inadmissible(candidate.pod, plan.fork)
    return Refusal("LimitRange", f"its replacement would not be created: {said}") if said else None


def load_of_pod(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """For a move by load: pod and node are measured, and neither owner nor run had enough such moves."""
    return plan.load.of_source(candidate.strategy, candidate.pod, candidate.node, candidate.workload)


def trusted_forecasts(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """Enough earlier forecasts came true, if another scheduler places the replacement."""
    pod, rebalancing = candidate.pod.pod, plan.rebalancing
    is_forecast = not pod.is_terminal and pod.spec.scheduler_name not in rebalancing.profiles
    return rebalancing.distrust if is_forecast else None


def known_scheduler(candidate: CheckedCandidate, plan: PlanBuilder) -> Refusal | None:
    """A scheduler of a policy places the replacement, or an assumed one; and no extender decides about it."""
    pod, rebalancing = candidate.pod, plan.rebalancing
    if pod.pod.is_terminal:
        return None
    named = pod.pod.spec.scheduler_name
    profile = rebalancing.profile_of(pod)
    if profile is None:
        return Refusal("OtherScheduler", f'scheduler "{named}" places the pod, and no policy serves it')
    if candidate.proposed.target and named not in rebalancing.profiles:
        return Refusal("OtherScheduler", f'scheduler "{named}" places the pod and takes no target node')
    extender = placing(profile, pod)
    if extender is None:
        return None
    return Refusal(
        "PlacedByExtender",
        f"extender {extender.name} has a say in where it goes; its next node cannot be proved",
    )


# -- of a target: why the replacement may not go there ---------------------------------------------------


def left_recently(tried: TriedNode, plan: PlanBuilder) -> Refusal | None:
    """For a move for balance or by load: no pod of the owner has just left the node."""
    candidate = tried.candidate
    balances = candidate.strategy in plan.traits.balancing and not candidate.proposed.target
    if not (balances or plan.load.guides(candidate.strategy, candidate.pod)):
        return None
    return plan.planning_context.memory.ping_pong(candidate.owner.key, candidate.strategy, tried.name)


def load_of_target(tried: TriedNode, plan: PlanBuilder) -> Refusal | None:
    """The node's use stays below its threshold with the pod, if use matters to the strategy."""
    return plan.load.of_target(tried.candidate.strategy, tried.candidate.pod, tried.name)


def gain(tried: TriedNode, plan: PlanBuilder) -> Refusal | None:
    """The scheduler's score rises by what the policy or the strategy asks for."""
    ranking, least, candidate = tried.ranking, tried.least_gain, tried.candidate
    if ranking is None or least is None:
        return None
    compares = candidate.strategy in plan.traits.asking_gain
    return short_of_gain(ranking, candidate.node, tried.name, least, compares=compares)


def complaints(tried: TriedNode, plan: PlanBuilder) -> Refusal | None:
    """The strategy's own complaints decrease, and no strategy has a new one; a bundle is compared whole."""
    candidate = tried.candidate
    if candidate.is_bundled or not plan.compares_complaints:
        return None
    mends = candidate.strategy not in plan.traits.restarting
    move = ProposedMove(candidate.pod, candidate.node, tried.name)
    return plan.complaints.refusal(candidate.strategy, [move], mends=mends, strict=tried.is_strict)


def known_complaint(tried: TriedNode, plan: PlanBuilder) -> Refusal | None:
    """No pod with the same requests has caused a complaint on the node in this plan, from any source."""
    candidate = tried.candidate
    if not plan.compares_complaints or candidate.strategy not in plan.traits.by_use:
        return None
    return plan.complaints.known_refusal(candidate.pod, tried.name)


# -- their order -----------------------------------------------------------------------------------------

#: Why no pod may leave a node in this run; strategies propose no other pods of the node then.
NODE_CHECKS: tuple[Check[CheckedCandidate], ...] = (over_used_often_enough, load_of_source)

#: Why a pod may not leave its node; the proof of its target follows.
POD_CHECKS: tuple[Check[CheckedCandidate], ...] = (
    protections,
    limits,
    disruption_budget,
    ready_replacements,
    blocked_budget,
    fruitless_moves,
    already_moving,
    moved_recently,
    admission,
    load_of_pod,
    known_scheduler,
    trusted_forecasts,
)

#: Of these, what keeps the pod whatever limits the run has, for planners that know the rest.
WITHOUT_LIMITS = tuple(
    each for each in POD_CHECKS if each not in (limits, load_of_pod, known_scheduler, trusted_forecasts)
)

#: Why the replacement may not go to a node that is feasible for it, as a part of the proof.
TARGET_CHECKS: tuple[Check[TriedNode], ...] = (left_recently, load_of_target, gain, complaints)

#: The same as far as it is known without a comparison, for all pods of a template and an owner.
TEMPLATE_CHECKS: tuple[Check[TriedNode], ...] = (left_recently, known_complaint)
