"""Strategies of one policy do not fight: no pod that one has moved is moved again by another."""

from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from planning.rounds import NOW, PLACE, UNLIMITED, a_profile
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.aftermath import settled
from plimsoll.planning.moves import EvictionPlan, Move, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.policies.rebalancing import Registries, rebalancing_of
from plimsoll.strategies import EVICTORS, IN_TREE
from trials.rounds import USUAL, rounds
from trials.starts import some_start

AROUND = PlanningContext(now=NOW)
LAWFUL = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15)

LOW: tuple[str, dict[str, Any]] = USUAL[5]
LOW_OF_MEMORY = (
    "LowNodeUtilization",
    {"thresholds": {"memory": 20}, "targetThresholds": {"memory": 40}},
)
LOW_OF_MEAN = (
    "LowNodeUtilization",
    {"useDeviationThresholds": True, "thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 10}},
)
HIGH = ("HighNodeUtilization", {"thresholds": {"cpu": 30}})
HIGH_OF_MEMORY = ("HighNodeUtilization", {"thresholds": {"memory": 20}})
FOLLOW = ("FollowScore", {"marginPercent": 5})
EMPTY: tuple[str, dict[str, Any]] = ("ConsolidateNodes", {})
BLOCKS = ("DefragmentResource", {"block": {"cpu": 1}})

#: Strategies that take pods off nodes for how much they are used, by lines that stay where they are.
BY_LINES = (LOW, LOW_OF_MEMORY, HIGH, HIGH_OF_MEMORY, EMPTY)
BY_USE = (*BY_LINES, FOLLOW, BLOCKS)
ANY = (
    *(*USUAL, *BY_USE[1:], LOW_OF_MEAN),
    ("MakeRoomForPending", {"maxMovesPerPod": 3}),
    ("PodLifeTime", {"maxPodLifeTimeSeconds": 100_000}),
    ("RemoveFailedPods", {}),
    ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 5}),
)
RUNS = 40


def configured(*strategies: tuple[str, dict[str, Any]], limits: dict[str, Any]) -> RebalancingConfig:
    """As a SchedulingPolicy says that leaves the planner and all else to their defaults."""
    spec = {"strategies": [{"name": name, "args": args} for name, args in strategies], "limits": limits}
    policy = SchedulingPolicy.model_validate(
        {"metadata": {"name": "p"}, "spec": {"rebalancing": spec | {"mode": "Enforce"}}}
    )
    return rebalancing_of(
        policy,
        Registries(StrategyRegistry(IN_TREE), EvictorRegistry(EVICTORS)),
        profiles={PLACE: a_profile()},
        objects=some_start(0).objects,
        now=NOW,
    )


def carried_out(cluster: Cluster, made: EvictionPlan) -> tuple[Cluster, dict[str, Move]]:
    """The cluster with replacements that are pods like any others, and the moves by their uids."""
    fork, heirs = cluster.fork(), dict[str, Move]()
    for move in made.moves:
        fork.displace(move.pod.uid)
    for move in made.moves:
        pod = settled(move.pod, fork, move.target, NOW).pod
        named = msgspec.structs.replace(pod.metadata, name=f"{pod.name}-r", uid=f"{move.pod.uid}-r")
        spec = msgspec.structs.replace(pod.spec, node_name=move.target)
        heir = fork.templates.info(msgspec.structs.replace(pod, metadata=named, spec=spec))
        fork.place(heir, move.target)
        heirs[heir.uid] = move
    return fork, heirs


ALL = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%", "perMinute": "100%"}
FEW = {"total": 10, "perNode": 2, "perNamespace": 5, "perWorkload": 1, "perMinute": "100%"}


@LAWFUL
@given(
    seed=st.integers(0, 10**6),
    first=st.sampled_from(BY_USE),
    second=st.sampled_from(BY_LINES),
    limits=st.sampled_from([ALL, FEW]),
)
def test_no_target_becomes_a_source_of_another_strategy(
    seed: int, first: Any, second: Any, limits: dict[str, Any]
) -> None:
    """Asked alone right after the run, without any memory, neither wants a pod that the other has moved."""
    policy = configured(*{each[0]: each for each in (first, second)}.values(), limits=limits)
    cluster = some_start(seed)

    for _ in range(3):
        cluster, heirs = carried_out(cluster, make_plan(policy, cluster, AROUND))
        for strategy in policy.strategies:
            if strategy.name not in {name for name, _ in BY_LINES}:
                continue
            alone = replace(policy, strategies=[strategy], limits=UNLIMITED)
            wanted = {move.pod.uid for move in make_plan(alone, cluster, AROUND).moves}
            assert not {uid for uid in wanted & heirs.keys() if heirs[uid].strategy != strategy.name}


@LAWFUL
@given(
    seed=st.integers(0, 10**6),
    pair=st.lists(st.sampled_from(ANY), min_size=2, max_size=2, unique_by=lambda each: each[0]),
    limits=st.sampled_from([ALL, FEW]),
)
def test_no_pod_is_moved_twice_and_runs_end(
    seed: int, pair: list[tuple[str, dict[str, Any]]], limits: dict[str, Any]
) -> None:
    """Any two of the shipped strategies, run after run within an hour, restarts included."""
    policy = configured(*pair, limits=limits)

    story = rounds(some_start(seed), policy, PLACE, AROUND, cycles=RUNS, seed=seed)

    assert (story.again, story.returned, story.rested) == ([], [], True)
