"""Computes what the moves of a plan leave of the policy's limits and of PodDisruptionBudgets."""

from collections import Counter
from collections.abc import Iterable

from plimsoll.inspection.plans.answer import BudgetAllowance, LimitAllowance
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.limits import LimitLevel, Tally, Workload
from plimsoll.planning.moves import EvictionPlan, Move, PlanningContext, RebalancingConfig
from plimsoll.planning.populations import Populations

#: Fields of spec.rebalancing.limits.
FIELDS = {
    LimitLevel.TOTAL: "total",
    LimitLevel.MINUTE: "perMinute",
    LimitLevel.BUDGET: "budgets",
    LimitLevel.NODE: "perNode",
    LimitLevel.NAMESPACE: "perNamespace",
    LimitLevel.RULE: "maxMovesPerHour",
    LimitLevel.WORKLOAD: "perWorkload",
}

#: Reasons of refusals that are due to a PodDisruptionBudget.
BY_BUDGET = ("Budget", "SeveralBudgets", "BudgetBackoff")


def limit_allowances(
    rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext, moves: Iterable[Move]
) -> tuple[LimitAllowance, ...]:
    """The limits on the whole run, then those on the nodes, namespaces and workloads that pods leave."""
    made = tuple(moves)
    populations = Populations(cluster, rebalancing.evictors, rebalancing.nodes)
    tally = Tally(rebalancing.limits, populations, context.in_flight, context.recent, context.hourly)
    for move in made:
        tally.count(move.source, move.pod.namespace, move.workload)
    trips = dict.fromkeys((move.source, move.pod.namespace, move.workload) for move in made)
    found: dict[tuple[LimitLevel, str], LimitAllowance] = {}
    for trip in trips or [("", "", Workload("", ""))]:
        for each in tally.ceilings(*trip):
            known = (each.level, each.key or each.subject)
            most = None if known in found or (not made and not each.level.ends_cycle) else tally.most(each)
            if most is not None:
                found[known] = LimitAllowance(
                    limit=FIELDS[each.level],
                    subject=each.subject or None,
                    allowed=most,
                    used=each.used,
                    left=max(most - each.used, 0),
                )
    order = list(FIELDS)
    return tuple(found[each] for each in sorted(found, key=lambda one: (order.index(one[0]), one[1])))


def budget_allowances(cluster: Cluster, made: EvictionPlan) -> tuple[BudgetAllowance, ...]:
    """The PodDisruptionBudgets of moving pods, and of pods that stay because of one."""
    ledger = BudgetLedger(cluster.objects.budgets.values())
    concerned = {}
    last: dict[str, Move] = {}
    for move in made.moves:
        before = last.get(move.workload.key)
        if move.surge is None:  # a surged pod leaves only after one more healthy pod exists
            ledger.take(move.pod, before.budget if before and move.waits else "")
        last[move.workload.key] = move
        concerned.update({each.key: each for each in ledger.over(move.pod)})
    refused: Counter[str] = Counter()
    for pod in {each.pod.uid: each.pod for each in made.refused if each.refusal.reason in BY_BUDGET}.values():
        covering = ledger.over(pod)
        concerned.update({each.key: each for each in covering})
        refused.update(each.key for each in covering)
    return tuple(
        BudgetAllowance(
            budget=key,
            allowed=budget.status.disruptions_allowed,
            used=ledger.taken(key),
            left=max(budget.status.disruptions_allowed - ledger.taken(key), 0),
            refused=refused[key],
        )
        for key, budget in sorted(concerned.items())
    )
