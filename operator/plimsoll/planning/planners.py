"""Selects the planner of a policy, for plans and for the validation right before an eviction.

A planner is imported when a policy names it; Proven's is there for all that judges single moves.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.framework.descheduling.context import considered_nodes
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.descheduling.strategy import MendsSpread, by_load
from plimsoll.load.summary import summary_of
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.imbalance import imbalance
from plimsoll.planning.lasting_pods import lasting
from plimsoll.planning.moves import EvictionPlan, Move, PlanningContext, RebalancingConfig
from plimsoll.planning.proven import planner as proven
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.scope import never_evict

if TYPE_CHECKING:
    from plimsoll.planning.upstream.planner import UpstreamRun


def make_plan(rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext) -> EvictionPlan:
    """Plan one cycle with the policy's planner; the cluster is only read."""
    match rebalancing.planner:
        case Planner.UPSTREAM:
            made = begin_upstream_run(rebalancing, cluster, context).rehearse()
        case Planner.OPTIMAL:
            from plimsoll.planning.optimal.planner import optimal_plan  # noqa: PLC0415 - as above

            made = optimal_plan(rebalancing, lasting(cluster, context.now), context)
        case Planner.PROVEN:
            made = proven_plan(rebalancing, lasting(cluster, context.now), context)
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


def begin_upstream_run(
    rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext
) -> "UpstreamRun":
    """Begin a cycle of planner Upstream, which receives the outcome of each eviction."""
    from plimsoll.planning.upstream.planner import upstream_run  # noqa: PLC0415 - as above

    return upstream_run(rebalancing, lasting(cluster, context.now), context)


def proven_plan(rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext) -> EvictionPlan:
    """Plan one cycle with planner Proven; the solver repairs topology spread if single moves cannot."""
    return proven.plan(rebalancing, cluster, context, _mend)


def _mend(
    book: PlanBuilder, strategy: MendsSpread, rebalancing: RebalancingConfig, context: PlanningContext
) -> str:
    from plimsoll.planning.optimal.spread_repair import mend_exactly  # noqa: PLC0415 - as above

    return mend_exactly(book, strategy, rebalancing, context)


def ask_again(
    move: Move, rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext
) -> Move | Refusal:
    """Whether a planned move is still right in the present cluster."""
    if rebalancing.planner is Planner.UPSTREAM:
        from plimsoll.planning.upstream.planner import still_stands  # noqa: PLC0415 - as above

        standing = cluster.pods.get(move.pod.uid, move.pod)
        return never_evict(standing, cluster.objects) or still_stands(move, cluster)
    return proven.revalidate(move, rebalancing, cluster, context)
