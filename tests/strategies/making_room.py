"""Plans of strategies that ask where pods could go, with all default plugins."""

from datetime import UTC, datetime
from typing import Any

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import EvictionPlan, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan, proven_plan
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.strategies.default_evictor import DefaultEvictor, DefaultEvictorArgs
from plimsoll.testing.builders import a_cluster

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)


def a_rebalancing(*strategies: Strategy, **kwargs: Any) -> RebalancingConfig:
    evictor = DefaultEvictor(DefaultEvictorArgs.model_validate({"minReplicas": 0}))
    kwargs.setdefault("limits", Limits(per_workload=NO_CEILING))
    profiles = {"default-scheduler": PROFILE}
    return RebalancingConfig(strategies=strategies, evictors=(evictor,), profiles=profiles, **kwargs)


def planned(
    strategy: Strategy, nodes: list[Node], pods: list[Pod], *, cluster: Cluster | None = None, **kwargs: Any
) -> EvictionPlan:
    """The plan of one strategy for these nodes and pods; those without a node are pending."""
    cluster = cluster or a_cluster(nodes, pods)
    pending = [cluster.templates.info(pod) for pod in pods if not pod.spec.node_name]
    make = make_plan if "planner" in kwargs else proven_plan
    return make(a_rebalancing(strategy, **kwargs), cluster, PlanningContext(NOW, unplaced=pending))


def moves_of(found: EvictionPlan) -> list[tuple[str, ...]]:
    """(pod, source, target) of each move, in order."""
    return [(move.pod.name, move.source, move.target) for move in found.moves]


def served(found: EvictionPlan) -> dict[str, Any]:
    """Nodes by the name of the pending pod that room is made for."""
    return {move.beneficiary.pod.name: move.beneficiary.node for move in found.moves if move.beneficiary}
