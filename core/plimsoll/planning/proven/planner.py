"""The Proven planner, the default: decides which pods move where, each proven with all others placed.

The strategies run one after the other, those of kind Deschedule first. Each sees the cluster with the moves
of earlier ones made. :mod:`plimsoll.planning.proven` lists the checks that a candidate passes.
"""

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from plimsoll.framework import PluginError
from plimsoll.framework.descheduling.measurements import NodeClasses, Planner
from plimsoll.framework.descheduling.proposals import Candidate, Destinations, Refusal, Verdict
from plimsoll.framework.descheduling.strategy import MendsSpread, StrategyKind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import EvictionPlan, Move, PlanningContext, RebalancingConfig
from plimsoll.planning.proven.plan_builder import UNLIMITED, PlanBuilder
from plimsoll.planning.proven.proof import purpose_decides
from plimsoll.planning.proven.verdicts import judge, judge_strategy
from plimsoll.toolkit.descheduling.disruption_signals import unreadable_cost

#: Maximum number of pods whose costs remarks name.
REMARKS = 3

#: Plans and makes moves that repair a topology spread only together; returns a remark, or "".
SpreadRepair = Callable[[PlanBuilder, MendsSpread, RebalancingConfig, PlanningContext], str]


def plan(
    rebalancing: RebalancingConfig,
    cluster: Cluster,
    planning_context: PlanningContext,
    repair: SpreadRepair | None = None,
) -> EvictionPlan:
    """Plan one cycle; the cluster is only read.

    ``repair`` runs after the single moves of a strategy that repairs topology spread.
    """
    plan = PlanBuilder(rebalancing, cluster, planning_context)
    failures: list[PluginError] = []
    classes: list[tuple[str, NodeClasses]] = []
    remarks: list[tuple[str, str]] = []
    for kind in StrategyKind:
        for strategy in rebalancing.strategies:
            if strategy.kind is not kind:
                continue
            name = strategy.name
            if said := _left_behind(plan, name):
                remarks.append((name, said))
                continue
            try:
                judge_strategy(plan, strategy)
                if repair and plan.compares_complaints and isinstance(strategy, MendsSpread):
                    said = repair(plan, strategy, rebalancing, planning_context)
                    plan.context.remarks += [said] if said else []
            except PluginError as exc:
                failures.append(exc)
            plan.collect_protected(name)
            classes += [(name, found) for found in plan.context.classes]
            plan.context.classes.clear()
            remarks += [(name, said) for said in plan.context.remarks]
            plan.context.remarks.clear()
            failures += plan.context.failures
            plan.context.failures.clear()
    remarks += _unreadable_costs(plan)
    return EvictionPlan(
        tuple(plan.moves), tuple(plan.refused), tuple(failures), tuple(classes), tuple(remarks)
    )


def _left_behind(plan: PlanBuilder, strategy: str) -> str:
    """Why a strategy that empties nodes by itself empties no more of them, "" if it may."""
    if strategy not in plan.traits.saving:
        return ""
    nodes = [each.metadata for each in plan.fork.nodes]
    born = {each.name: each.creation_timestamp.timestamp() for each in nodes if each.creation_timestamp}
    return plan.planning_context.memory.left_behind(strategy, born)


def _unreadable_costs(plan: PlanBuilder) -> list[tuple[str, str]]:
    """Remarks about costs that cannot be read, of the pods on nodes that others leave, one a pod."""
    fork, found = plan.fork, dict[str, tuple[str, str]]()
    concerned = [(move.strategy, move.pod) for move in plan.moves]
    for strategy, node in dict.fromkeys((move.strategy, move.source) for move in plan.moves):
        concerned += [(strategy, pod) for pod in fork.pods_on(fork.rows[node]) if pod.stands_in_for is None]
    for strategy, pod in concerned:
        said = unreadable_cost(pod.pod.metadata.annotations)
        if said:
            found.setdefault(pod.key, (strategy, f"pod {pod.key}: {said}"))
    return list(found.values())[:REMARKS]


def _hand_on(plan: PlanBuilder) -> None:
    """Count what takes the places of moved pods with the use of these, as the plan did."""
    book, fork = plan.context.load_book, plan.fork
    if book is None:
        return
    for uid, moved in plan.planning_context.replaced.items():
        row = fork.row_of_pod(uid)
        if row is not None and book.hand_on(moved, fork.pods[uid], row):
            fork.touch(np.array([row]))


def revalidate(
    move: Move, rebalancing: RebalancingConfig, cluster: Cluster, planning_context: PlanningContext
) -> Move | Refusal:
    """Check whether a move is still right in the present cluster, right before its eviction.

    Args:
        move: The planned move.
        rebalancing: The policy of the plan; its limits are not checked again, as the plan observed them.
        cluster: The present cluster.
        planning_context: The present context; ``in_flight`` must not count this move.

    Returns:
        The move with the present pod and target, or why it must be dropped.
    """
    standing = cluster.pods.get(move.pod.uid)
    row = cluster.row_of_pod(move.pod.uid)
    free = replace(rebalancing, limits=UNLIMITED, minimum_gain_percent=None)
    plan = PlanBuilder(free, cluster, replace(planning_context, moved=frozenset(), touched={}))
    _hand_on(plan)
    plan.complaints.only_reported()
    # Moves of a bundle were judged together.
    plan.compares_complaints = plan.compares_complaints and not move.bundle
    if move.target:
        if standing is None or row is None or cluster.nodes[row].name != move.source:
            return Refusal("Gone", f"the pod is not on node {move.source} any more")
    elif move.pod.uid not in plan.context.unplaced:
        return Refusal("Gone", "the pod is gone already")
    pod = standing or move.pod
    alone = move.planner is not Planner.OPTIMAL and not move.bundle
    purposeful = purpose_decides(move.strategy, plan)
    if move.is_directed and not (alone and purposeful):
        again = Candidate(pod, move.source, move.reason, move.target)
    elif move.target and purposeful and (alone or move.surge) and not move.is_forecast:
        # A surge goes where its record says, or not at all; another node that is as good does not end it.
        again = Candidate(
            pod, move.source, move.reason, destinations=Destinations.among(frozenset((move.target,)))
        )
    else:
        again = Candidate(pod, move.source, move.reason)
    for uid in move.whole - {pod.uid}:  # all of them leave, and the budget must allow it
        if uid in cluster.pods:
            plan.ledger.take(cluster.pods[uid])
    verdict = judge(plan, again, move.strategy, move.whole)
    if verdict is not Verdict.ACCEPTED:
        return plan.refused[0].refusal
    return replace(plan.moves[0], group=move.group, whole=move.whole)
