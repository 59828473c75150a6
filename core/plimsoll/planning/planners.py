"""Selects the planner of a policy, for plans and for the validation right before an eviction.

Plans leave out pods that may not last on their nodes. Users may assign a pod to a node by ``spec.nodeName``.
No scheduler checks whether it fits, and a kubelet may refuse it in the same second: no reason to move
other pods. Planners and strategies see a pod only

* once a scheduler has bound it or its kubelet has started it, if its node has what all of its pods request;
* once it has existed for ``LASTS_S`` in any case.

The room of such a pod counts again when a move is judged right before the eviction. Planner Upstream sees all
pods, as descheduler does.

A planner is imported when a policy names it; Proven's is there for all that judges single moves.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.context import considered_nodes
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.descheduling.strategy import MendsSpread, by_load
from plimsoll.load.summary import summary_of
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.counted import counted
from plimsoll.model.kinds.requests import pending_resize
from plimsoll.planning.imbalance import imbalance
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.moves import EvictionPlan, Move, PlanningContext, RebalancingConfig
from plimsoll.planning.proven import planner as proven
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.rebalancing_rules import held_by_rules
from plimsoll.planning.scope import never_evict
from plimsoll.planning.solver import INSTALL_SOLVER, OPTIMAL, SPREAD_REPAIR, has_solver, installed
from plimsoll.planning.unwanted import emptied_later, unwanted
from plimsoll.toolkit.descheduling.resize_room import awaited_row

if TYPE_CHECKING:
    from plimsoll.planning.upstream.planner import UpstreamRun

#: Reasons of refusals that may not apply to a later run.
_LIMITS = frozenset(level.value for level in LimitLevel)

#: Seconds after its creation from which a pod counts in each plan.
LASTS_S = 300.0


def make_plan(rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext) -> EvictionPlan:
    """Plan one cycle with the policy's planner; the cluster is only read."""
    match rebalancing.planner:
        case Planner.UPSTREAM:
            made = begin_upstream_run(rebalancing, cluster, context).rehearse()
        case Planner.OPTIMAL:
            made = installed(OPTIMAL)(rebalancing, lasting(cluster, context.now), context)
        case Planner.PROVEN:
            made = proven_plan(rebalancing, lasting(cluster, context.now), context)
    if rebalancing.deletion_costs and rebalancing.hold is None:
        gone, later = unwanted(made, rebalancing, cluster), emptied_later(made, rebalancing, cluster)
        made = replace(made, unwanted=gone, later=later)
    made = made.held(rebalancing.hold)
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

    return upstream_run(rebalancing, cluster, context)


def proven_plan(rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext) -> EvictionPlan:
    """Plan one cycle with planner Proven; the solver repairs topology spread if single moves cannot."""
    return proven.plan(rebalancing, cluster, context, _mend)


def _mend(
    plan: PlanBuilder, strategy: MendsSpread, rebalancing: RebalancingConfig, context: PlanningContext
) -> str:
    """Repair topology spread exactly if single moves cannot; returns how, in a sentence for the status."""
    single = sum(move.strategy == strategy.name for move in plan.moves)
    if single:
        return f"topology spread: {counted(single, 'move')} planned one at a time"
    refused = [each.refusal.reason for each in plan.refused if each.strategy == strategy.name]
    if not refused or not _LIMITS.isdisjoint(refused):
        return ""
    if not has_solver():
        return (
            "topology spread: no single move helps any more; moves that help only together were not searched"
            f" for, because the solver is not installed ({INSTALL_SOLVER})"
        )
    said: str = installed(SPREAD_REPAIR)(plan, strategy, rebalancing, context)
    return said


def ask_again(
    move: Move, rebalancing: RebalancingConfig, cluster: Cluster, context: PlanningContext
) -> Move | Refusal:
    """Whether a planned move is still right in the present cluster."""
    if rebalancing.planner is Planner.UPSTREAM:
        return still_goes(move, rebalancing, cluster)
    return proven.revalidate(move, rebalancing, cluster, context)


def still_goes(move: Move, rebalancing: RebalancingConfig, cluster: Cluster) -> Move | Refusal:
    """Whether a move of planner Upstream is still right, by its pod and the rules of its namespace."""
    from plimsoll.planning.upstream.planner import still_stands  # noqa: PLC0415 - as above

    standing = cluster.pods.get(move.pod.uid, move.pod)
    return (
        never_evict(standing, cluster.objects)
        or held_by_rules(standing, rebalancing.evictors)
        or still_stands(move, cluster)
    )


# -- pods that may not last ------------------------------------------------------------------------------


def lasting(cluster: Cluster, now: datetime) -> Cluster:
    """The cluster without pods that may not last; the given one if all do."""
    young = timedelta(seconds=LASTS_S)
    oldest, youngest = now - young, now + young  # the clocks of two machines differ
    over = _over_committed(cluster)
    passing = [
        pod
        for pod in cluster.pods.values()
        if (created := pod.pod.metadata.creation_timestamp) is not None
        and oldest < created < youngest
        and pod.pod.node_name
        and (_is_stray(pod) or _adds_to(over.get(pod.pod.node_name, frozenset()), pod))
    ]
    if not passing:
        return cluster
    rest = cluster.fork()
    for pod in passing:
        rest.displace(pod.uid)
    return rest


def _over_committed(cluster: Cluster) -> dict[str, frozenset[str]]:
    """By node whose pods request more than it has: the resources. What resizes wait for is not taken yet."""
    count = len(cluster)
    is_over = cluster.requested[:count] > cluster.allocatable[:count]
    found = {}
    for row in np.flatnonzero(is_over.any(axis=1)).tolist():
        waits = [awaited_row(pod, cluster) for pod in cluster.pods_on(row) if pending_resize(pod.pod)]
        taken = cluster.requested[row] - sum(waits, np.zeros_like(cluster.requested[row]))
        axes = np.flatnonzero(taken > cluster.allocatable[row])
        found[cluster.nodes[row].name] = frozenset(cluster.resources[axis] for axis in axes)
    return found


def _adds_to(resources: frozenset[str], pod: PodInfo) -> bool:
    """Whether the pod requests one of these resources; each pod takes one of the node's pods."""
    return "pods" in resources or any(pod.requests.get(each, 0) for each in resources)


def _is_stray(pod: PodInfo) -> bool:
    """Whether neither a scheduler has bound it nor a kubelet has started it."""
    status, bound = pod.pod.status, pod.pod.condition("PodScheduled")
    return (
        status.start_time is None and status.phase != "Running" and (bound is None or bound.status != "True")
    )
