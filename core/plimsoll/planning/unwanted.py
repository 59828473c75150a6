"""Names the pods and nodes of which a plan wants less without moving anything now.

A ReplicaSet that shrinks deletes the pods of the least ``controller.kubernetes.io/pod-deletion-cost`` first,
and a pod that it deletes need not be moved: that saves a restart (docs/adr/0064). So does a pod of a rollout
that does not come to a node that is to be emptied (docs/adr/0068).
"""

from collections.abc import Iterable, Iterator

from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.strategy import empties_nodes
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.workload import ReplicaSet
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.moves import EvictionPlan, RebalancingConfig
from plimsoll.toolkit.descheduling.leaving_pods import may_leave
from plimsoll.toolkit.descheduling.unmovable_pods import StayRule

#: Reasons of refusals that say: not now, though there is a place.
LATER = frozenset(
    {
        *(level.value for level in LimitLevel),
        "Budget",
        "BudgetBackoff",
        "ReplacementNotReady",
        "SeveralBudgets",
    }
)

#: Reasons that say: not now, or not while there is no room.
NOT_NOW = LATER | {"NoHeadroom", "NoRoom", "NotAll"}

#: Uids in one plan, at most: each costs a write when it comes, and one when it goes.
MOST = 200


def unwanted(plan: EvictionPlan, rebalancing: RebalancingConfig, cluster: Cluster) -> tuple[str, ...]:
    """Uids of pods that the plan moves or would move, and of the pods of nodes that it would empty.

    Only pods of ReplicaSets that want several, and none that an evictor keeps permanently: its owner does not
    want it to go before its siblings.
    """
    stays = StayRule(lambda _: tuple(rebalancing.evictors), rebalancing.planner, surges=rebalancing.surge)
    found = dict.fromkeys(
        pod.uid
        for pod in _named(plan, rebalancing, cluster)
        if _has_siblings(pod, cluster) and not stays.keeps(pod, cluster.objects)
    )
    return tuple(found)[:MOST]


def emptied_later(
    plan: EvictionPlan, rebalancing: RebalancingConfig, cluster: Cluster
) -> frozenset[tuple[str, str]]:
    """Nodes that the plan empties, and the first that it would empty but for a limit or a budget: name, uid.

    The first alone: the next ones are places for its pods.
    """
    emptying = _emptying(rebalancing)
    sources = {each.source for each in plan.moves if each.strategy in emptying}
    waiting = (each for each in plan.refused if each.refusal.reason in LATER and each.strategy in emptying)
    rows = (cluster.row_of_pod(each.pod.uid) for each in waiting)
    first = next((cluster.nodes[row].name for row in rows if row is not None), None)
    if first is not None and all(each.target != first for each in plan.moves):
        sources.add(first)
    return frozenset((name, cluster.nodes[cluster.rows[name]].uid) for name in sources)


def _emptying(rebalancing: RebalancingConfig) -> frozenset[str]:
    return frozenset(each.name for each in rebalancing.strategies if empties_nodes(type(each)))


def _named(plan: EvictionPlan, rebalancing: RebalancingConfig, cluster: Cluster) -> Iterator[PodInfo]:
    emptying = _emptying(rebalancing)
    wanted = [each for each in plan.refused if each.refusal.reason in NOT_NOW]
    yield from (move.pod for move in plan.moves)
    yield from (each.pod for each in wanted)
    rows = (cluster.row_of_pod(each.pod.uid) for each in wanted if each.strategy in emptying)
    for row in dict.fromkeys(row for row in rows if row is not None):
        yield from filter(may_leave, _in_order(cluster.pods_on(row)))


def _in_order(pods: Iterable[PodInfo]) -> list[PodInfo]:
    return sorted(pods, key=lambda each: each.key)


def _has_siblings(pod: PodInfo, cluster: Cluster) -> bool:
    owner = cluster.objects.controller_of(pod.pod)
    return isinstance(owner, ReplicaSet) and owner.spec.replicas > 1
