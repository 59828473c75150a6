"""Policies for planners, and cycle after cycle of them."""

from datetime import UTC, datetime
from typing import Any

from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE
from trials.rounds import Story, rounds

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLACE = "default-scheduler"
UNLIMITED = Limits(per_workload=NO_CEILING)
SAFE = Limits(
    total=Ceiling(count=10),
    per_node=Ceiling(count=2),
    per_namespace=Ceiling(count=5),
    per_workload=Ceiling(count=1),
)


def a_profile() -> Profile:
    """kube-scheduler's default plugins."""
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return build_profile(ProfileConfig(PLACE), Registry(PLUGINS), defaults)


def a_policy(
    *strategies: tuple[str, dict[str, Any]],
    limits: Any = SAFE,
    evictor: Any = None,
    **kwargs: Any,
) -> RebalancingConfig:
    """Strategies as (name, args), with the safe evictor."""
    registry = StrategyRegistry(IN_TREE)
    return RebalancingConfig(
        strategies=[registry.build(name, args, name) for name, args in strategies],
        evictors=(
            EvictorRegistry(EVICTORS).build(
                "DefaultEvictor", {"minReplicas": 2} if evictor is None else evictor, "evictor"
            ),
        ),
        profiles={PLACE: a_profile()},
        limits=limits,
        **kwargs,
    )


def live(cluster: Cluster, policy: RebalancingConfig, *, cycles: int = 60, seed: int = 0) -> Story:
    """Plan, evict and place until a cycle plans nothing; the cluster is changed."""
    story = rounds(cluster, policy, PLACE, PlanningContext(now=NOW), cycles=cycles, seed=seed)
    assert story.rested, f"no end after {cycles} cycles and {story.total} moves"
    return story
