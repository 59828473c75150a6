"""KeptFindings, against plans that count everything."""

import gc
import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.pod_indexes import PodsByTemplate
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.framework.selectors import selector_of_labels
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.pod_counts import PodClass, PodCounts
from plimsoll.model.kinds.pod import ContainerStatus, PodCondition, PodStatus
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.planning.proven.plan_builder import KEPT
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.rebalancing.runs.kept_findings import KeptFindings
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod
from trials.rounds import USUAL
from trials.starts import some_start

AROUND = PlanningContext(now=datetime(2026, 1, 1, 12, tzinfo=UTC))

#: Strategies with arguments under which they find something in the starts.
STRATEGIES: tuple[tuple[str, dict[str, Any]], ...] = (
    *USUAL,
    ("HighNodeUtilization", {"thresholds": {"cpu": 40}}),
    ("PodLifeTime", {"maxPodLifeTimeSeconds": 3_600}),
    ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 1}),
    ("FollowScore", {}),
)


def a_policy(*strategies: tuple[str, dict[str, Any]], total: int = 4) -> RebalancingConfig:
    registry = StrategyRegistry(IN_TREE)
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return RebalancingConfig(
        strategies=[registry.build(name, args, name) for name, args in strategies],
        evictors=(EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 2}, "evictor"),),
        profiles={
            "default-scheduler": build_profile(
                ProfileConfig("default-scheduler"), Registry(PLUGINS), defaults
            )
        },
        limits=Limits(total=Ceiling(count=total)),
    )


def change(cluster: Cluster, chance: random.Random) -> None:
    """Something that a watch may show, or a plan may do to its fork."""
    pods = sorted(cluster.pods)
    nodes = sorted(cluster.rows)
    what = chance.randrange(7)
    if what == 0 and pods:
        cluster.displace(chance.choice(pods))
    elif what == 1 and pods:
        cluster.place(cluster.pods[chance.choice(pods)], chance.choice([*nodes, "unknown"]))
    elif what == 2 and pods:  # a status that counts the same in all columns
        info = cluster.pods[chance.choice(pods)]
        ready = PodCondition(type="Ready", status=chance.choice(["True", "False"]))
        restarted = ContainerStatus(name="main", restart_count=chance.randrange(4))
        phase = chance.choice(["Running", "Running", "Failed"])
        status = PodStatus(phase=phase, conditions=(ready,), container_statuses=(restarted,))
        row = cluster.row_of_pod(info.uid)
        name = "unknown" if row is None else cluster.nodes[row].name
        changed = msgspec.structs.replace(info.pod, status=status)
        cluster.place(cluster.templates.info(changed), name)
    elif what == 3 and nodes:
        cluster.remove_node(chance.choice(nodes))
    elif what == 4:
        cluster.set_node(a_node(chance.choice([*nodes, "late", "later"]), cpu="8"))
    else:
        number, app = chance.randrange(30), chance.choice("abc")
        pod = a_pod(f"q{number}", owner=f"ReplicaSet/{app}", labels={"app": app}, cpu="250m", **rules(chance))
        cluster.place(cluster.templates.info(pod), chance.choice([*nodes, "late"]))


def rules(chance: random.Random) -> dict[str, Any]:
    """What a pod requires of the places of others; often nothing."""
    selector = {"matchLabels": {"app": chance.choice("abc")}}
    term = {"topologyKey": chance.choice(["kubernetes.io/hostname", "zone"]), "labelSelector": selector}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return chance.choice(
        [
            {},
            {},
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
            {"topologySpreadConstraints": [{**spread, "labelSelector": selector}]},
        ]
    )


def counted(cluster: Cluster) -> list[Any]:
    """All that the indexes say."""
    found = [cluster.index(kind) for kind in KEPT]
    templates, counts = cluster.index(PodsByTemplate), cluster.index(PodCounts)
    classes = [
        counts.of(PodClass(((None, selector_of_labels({"app": app})),), living=living))
        for app in "abcd"
        for living in (True, False)
    ]
    names = [node.name for node in cluster.nodes]
    return [
        [(each.total, dict(zip(names, each.column.tolist(), strict=False))) for each in classes],
        *(vars(index).get("counts") or vars(index).get("groups") for index in found),
        {key: set(ruled) for key, ruled in templates.ruled.items()},
        {
            (namespace, app): set(templates.matching(namespace, selector_of_labels({"app": app})))
            for namespace in ("default", "elsewhere")
            for app in "abcd"
        },
    ]


@given(st.integers(0, 10_000), st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=6))
@settings(deadline=None)
def test_indexes_that_are_kept_say_what_new_ones_say(seed: int, steps: list[tuple[int, bool]]) -> None:
    """Whatever happens between plans, to the cluster or to the forks that plans were made on."""
    chance = random.Random(seed)
    cluster, kept = some_start(seed), KeptFindings()
    for changes, forgets in steps:
        for _ in range(changes):
            change(cluster, chance)
        fork = cluster.fork()
        kept.bring_up(fork)

        assert counted(fork) == counted(cluster.fork())

        for _ in range(changes):
            change(fork, chance)  # as a plan does
        if forgets:
            kept.clear()


@pytest.mark.parametrize("strategy", [*STRATEGIES, None], ids=lambda each: each[0] if each else "all")
def test_a_warm_plan_is_the_cold_one(strategy: tuple[str, dict[str, Any]] | None) -> None:
    """Each strategy alone, and all of them, on a cluster that changes between runs."""
    policy = a_policy(*([strategy] if strategy else STRATEGIES))
    moved = refused = 0
    for seed in (0, 3):
        chance = random.Random(seed)
        cluster, kept = some_start(seed), KeptFindings()
        for _ in range(4):
            fork = cluster.fork()
            kept.bring_up(fork)
            warm = make_plan(policy, fork, AROUND)
            cold = make_plan(policy, cluster.fork(), AROUND)

            assert warm == cold

            moved, refused = moved + len(warm.moves), refused + len(warm.refused)
            for _ in range(6):
                change(cluster, chance)
    assert moved or refused


def test_a_plan_goes_when_it_has_been_made() -> None:
    """Without the garbage collector, which the operator lets look at old objects rarely."""
    policy, cluster = a_policy(*STRATEGIES), some_start(1)

    def clusters() -> int:
        return sum(isinstance(each, Cluster) for each in gc.get_objects())

    make_plan(policy, cluster, AROUND)
    gc.collect()
    before = clusters()
    gc.disable()
    try:
        assert make_plan(policy, cluster, AROUND).moves
        assert clusters() == before
    finally:
        gc.enable()
