"""Computes descheduler's evictions from the start of a scene, with placements by our scheduler."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import PodInfo, Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.policies.rebalancing import Registries, rebalancing_of
from plimsoll.strategies import EVICTORS, IN_TREE
from trials.rounds import rounds

if TYPE_CHECKING:
    from e2e.measures import View
    from e2e.scene import Obj

#: Descheduler's cycles, and random choices of the scheduler among which it has the least evictions.
CYCLES, SEEDS = 10, 3


def evictions_of_descheduler(view: View, spec: Obj, scheduler: str) -> int:
    """Evictions until it evicts no more pods, or its cycles are over; the luckiest of a few runs.

    Args:
        view: The start.
        spec: Of the policy; its planner does not matter.
        scheduler: Name that the pods ask for.
    """
    return min(_evictions(view, spec, scheduler, seed) for seed in range(SEEDS))


def restarts_of_descheduler(view: View, spec: Obj, scheduler: str) -> int:
    """Evictions in one cycle without limits: the simulated replacements are no fresher than the pods."""
    cluster, unplaced = _cluster(view)
    policy = replace(_policy(spec, scheduler, cluster), limits=Limits(per_workload=NO_CEILING))
    return len(make_plan(policy, cluster, PlanningContext(datetime.now(UTC), unplaced)).moves)


def _evictions(view: View, spec: Obj, scheduler: str, seed: int) -> int:
    cluster, unplaced = _cluster(view)
    around = PlanningContext(datetime.now(UTC), unplaced)
    policy = _policy(spec, scheduler, cluster)
    return rounds(cluster, policy, scheduler, around, cycles=CYCLES, seed=seed).evicted


def _cluster(view: View) -> tuple[Cluster, list[PodInfo]]:
    """The placed pods on their nodes, and those that hold no place."""
    cluster, unplaced = Cluster(), []
    for node in view.nodes.values():
        cluster.set_node(convert(Node, node))
    for document in view.pods:
        pod = cluster.templates.info(convert(Pod, document))
        if pod.pod.is_terminal or not pod.pod.node_name:
            unplaced.append(pod)
        else:
            cluster.place(pod, pod.pod.node_name)
    return cluster, unplaced


def _policy(spec: Obj, scheduler: str, cluster: Cluster) -> RebalancingConfig:
    asked = {**spec, "rebalancing": {**spec["rebalancing"], "planner": "Upstream"}}
    policy = SchedulingPolicy.model_validate(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": "upstream"},
            "spec": asked,
        }
    )
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return rebalancing_of(
        policy,
        Registries(StrategyRegistry(IN_TREE), EvictorRegistry(EVICTORS)),
        profiles={scheduler: build_profile(ProfileConfig(scheduler), Registry(PLUGINS), defaults)},
        objects=cluster.objects,
        now=datetime.now(UTC),
    )
