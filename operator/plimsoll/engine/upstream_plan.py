"""The Upstream planner for a policy: descheduler's decisions, told as a plan of ours.

What descheduler would evict is evicted, in its order and without a proof, under the policy's own limits.
The target of each move is a forecast: where our scheduler's code would put the replacement once the moves
before it are made; "" where it finds no place, which does not stop descheduler either.
"""

from collections.abc import Iterator

from plimsoll.engine.cycle import Scheduler
from plimsoll.engine.moves import (
    Circumstances,
    EvictionPlan,
    Move,
    Rebalancing,
    Refused,
    replacement_of,
    workload_of,
)
from plimsoll.engine.profile import Profile
from plimsoll.engine.upstream_cycle import StrategyProfile, UpstreamEviction, UpstreamPolicy, upstream_cycle
from plimsoll.framework import Cluster, PluginError
from plimsoll.framework.strategy import Refusal
from plimsoll.framework.strategy_context import Planner


def upstream_plan(rebalancing: Rebalancing, cluster: Cluster, circumstances: Circumstances) -> EvictionPlan:
    """Plan one cycle as descheduler does; the cluster is only read."""
    policy = UpstreamPolicy(
        (StrategyProfile("policy", tuple(rebalancing.evictors), tuple(rebalancing.strategies)),),
        rebalancing.nodes,
        rebalancing.limits,
    )
    outcome = upstream_cycle(
        policy,
        cluster,
        circumstances.now,
        unplaced=circumstances.unplaced,
        measurements=circumstances.measurements,
        in_flight=circumstances.in_flight,
        recent=circumstances.recent,
    )
    return EvictionPlan(
        tuple(_forecasts(rebalancing, cluster.fork(), outcome.evictions)),
        tuple(Refused(each.pod, each.strategy, each.wanted, each.refusal) for each in outcome.refused),
        tuple(failure.error for failure in outcome.failures),
        tuple(outcome.classes),
        tuple(outcome.remarks),
    )


def still_stands(move: Move, cluster: Cluster) -> Move | Refusal:
    """All that descheduler would ask right before an eviction: whether the pod is still there."""
    standing, row = cluster.pods.get(move.pod.uid), cluster.row_of_pod(move.pod.uid)
    if move.pod.pod.is_terminal:
        return move
    if standing is None or row is None or cluster.nodes[row].name != move.source:
        return Refusal("Gone", f"pod {move.pod.key} is not on node {move.source} any more")
    return move


def _forecasts(rebalancing: Rebalancing, fork: Cluster, evictions: list[UpstreamEviction]) -> Iterator[Move]:
    """Each eviction as a move, with the place that its replacement may find."""
    schedulers: dict[int, Scheduler] = {}

    def scheduler(profile: Profile) -> Scheduler:
        return schedulers.setdefault(id(profile), Scheduler(profile, fork))

    for each in evictions:
        pod, target = each.pod, ""
        profile = rebalancing.profiles.get(pod.pod.spec.scheduler_name) or rebalancing.forecast
        fork.displace(pod.uid)
        if profile is not None and not pod.pod.is_terminal:
            try:
                best = scheduler(profile).rank(replacement_of(pod, fork)).best
            except PluginError:
                best = ()
            if best:
                target = best[0]
                fork.place(replacement_of(pod, fork, target), target)
        yield Move(
            pod=pod,
            strategy=each.strategy,
            reason=each.reason,
            source=each.node,
            target=target,
            gain=None,
            ties=0,
            is_forecast=True,
            workload=workload_of(pod),
            planner=Planner.UPSTREAM,
        )
