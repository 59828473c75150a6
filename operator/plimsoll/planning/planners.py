"""Selects the planner of a policy, for plans and for the validation right before an eviction."""

from dataclasses import replace

from plimsoll.framework.descheduling.context import considered_nodes
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.descheduling.strategy import by_load
from plimsoll.load.summary import summary_of
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.imbalance import imbalance
from plimsoll.planning.moves import EvictionPlan, Move, PlanningContext, RebalancingConfig
from plimsoll.planning.optimal.planner import optimal_plan
from plimsoll.planning.optimal.spread_repair import mend_exactly
from plimsoll.planning.proven import planner as proven
from plimsoll.planning.scope import never_evict
from plimsoll.planning.upstream.planner import still_stands, upstream_run


def make_plan(rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext) -> EvictionPlan:
    """Plan one cycle with the policy's planner; the cluster is only read."""
    match rebalancing.planner:
        case Planner.UPSTREAM:
            made = upstream_run(rebalancing, cluster, context).rehearse()
        case Planner.OPTIMAL:
            made = optimal_plan(rebalancing, cluster, context)
        case Planner.PROVEN:
            made = proven_plan(rebalancing, cluster, context)
    made = replace(made, imbalance=imbalance(cluster, rebalancing.nodes, context.measurements))
    moving = {each.name for each in rebalancing.strategies if by_load(each) is not None}
    if not moving or rebalancing.planner is Planner.UPSTREAM:
        return made
    hot = {node for name, found in made.classes if name in moving for node in found.overutilized}
    return replace(
        made,
        load=summary_of(cluster, considered_nodes(cluster, rebalancing.nodes)),
        hot=tuple(sorted(hot)),
    )


def proven_plan(rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext) -> EvictionPlan:
    """Plan one cycle with planner Proven; the solver repairs topology spread if single moves cannot."""
    return proven.plan(rebalancing, cluster, context, mend_exactly)


def ask_again(
    move: Move, rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext
) -> Move | Refusal:
    """Whether a planned move is still right in the present cluster."""
    if rebalancing.planner is Planner.UPSTREAM:
        standing = cluster.pods.get(move.pod.uid, move.pod)
        return never_evict(standing, cluster.objects) or still_stands(move, cluster)
    return proven.revalidate(move, rebalancing, cluster, context)
