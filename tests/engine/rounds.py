"""Cycle after cycle of the Proven planner, with a scheduler that breaks its ties by dice."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime

from plimsoll.engine.cycle import Outcome, Scheduler
from plimsoll.engine.limits import NO_CEILING, Ceiling, Limits
from plimsoll.engine.moves import Circumstances, Move, Rebalancing, replacement_of
from plimsoll.engine.plan import plan, revalidate
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.strategy_registry import EvictorRegistry, StrategyRegistry
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLACE = "default-scheduler"
UNLIMITED = Limits(per_workload=NO_CEILING)
SAFE = Limits(
    total=Ceiling(count=10),
    per_node=Ceiling(count=2),
    per_namespace=Ceiling(count=5),
    per_workload=Ceiling(count=1),
)


def a_profile():
    """kube-scheduler's default plugins."""
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return build_profile(ProfileConfig(PLACE), Registry(PLUGINS), defaults)


def a_policy(*strategies, limits=SAFE, evictor=None, **kwargs):
    """Strategies as (name, args), with the safe evictor."""
    registry = StrategyRegistry(IN_TREE)
    return Rebalancing(
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


USUAL = (
    ("RemovePodsViolatingNodeTaints", {}),
    (
        "RemovePodsViolatingNodeAffinity",
        {
            "nodeAffinityType": [
                "requiredDuringSchedulingIgnoredDuringExecution",
                "preferredDuringSchedulingIgnoredDuringExecution",
            ]
        },
    ),
    ("RemovePodsViolatingInterPodAntiAffinity", {}),
    ("RemoveDuplicates", {}),
    ("RemovePodsViolatingTopologySpreadConstraint", {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}),
    (
        "LowNodeUtilization",
        {"thresholds": {"cpu": 30, "pods": 30}, "targetThresholds": {"cpu": 50, "pods": 60}},
    ),
)


@dataclass
class Story:
    """What happened.

    Attributes:
        moves: By cycle.
        returned: Moves whose replacement came back to the node that it was moved from.
        pending: Moves whose replacement found no node.
        dropped: Moves that did not hold any more when their turn came.
    """

    moves: list[list[Move]] = field(default_factory=list)
    returned: list[Move] = field(default_factory=list)
    pending: list[Move] = field(default_factory=list)
    dropped: list[Move] = field(default_factory=list)

    @property
    def total(self):
        return sum(len(each) for each in self.moves)


def live(cluster, policy, *, cycles=60, seed=0):
    """Plan, evict and place until a cycle plans nothing; the cluster is changed."""
    dice = random.Random(seed)
    scheduler = Scheduler(policy.profiles[PLACE], cluster, choose=dice.randrange)
    story = Story()
    around = Circumstances(now=NOW)
    for _ in range(cycles):
        made = plan(policy, cluster, around)
        assert made.failures == ()
        if not made.moves:
            return story
        story.moves.append(list(made.moves))
        for move in made.moves:
            present = revalidate(move, policy, cluster, around)
            if not isinstance(present, Move):
                story.dropped.append(move)
                continue
            pod = cluster.displace(move.pod.uid)
            waiting = replacement_of(pod, cluster)
            if present.is_directed:
                scheduler.nominations.add(waiting, present.target)
            decision = scheduler.schedule(waiting)
            scheduler.nominations.remove(waiting.uid)
            if decision.outcome is not Outcome.SCHEDULED:
                story.pending.append(move)
                continue
            if decision.node == move.source:
                story.returned.append(move)
            fresh = replacement_of(pod, cluster, decision.node)
            cluster.place(fresh, decision.node)
        cluster.validate()
    raise AssertionError(f"no end after {cycles} cycles and {story.total} moves")
