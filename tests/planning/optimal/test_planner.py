"""The Optimal planner: minimal, proven, feasible at every step, and never worse than Proven."""

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from planning.rounds import NOW, PLACE, UNLIMITED, a_policy
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import (
    EvictionPlan,
    Goal,
    Objective,
    PlanningContext,
    RebalancingConfig,
    replacement_of,
)
from plimsoll.planning.planners import ask_again, make_plan
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate
from plimsoll_optimal import planner
from trials.rounds import USUAL

AROUND = PlanningContext(now=NOW)
SPREAD: Any = ("RemovePodsViolatingTopologySpreadConstraint", {})
HOST, RACK = "kubernetes.io/hostname", "rack"


def optimal(
    *strategies: tuple[str, dict[str, Any]],
    objective: Objective = Objective.FEWEST_VIOLATIONS,
    limits: Limits = UNLIMITED,
    **given: Any,
) -> RebalancingConfig:
    goal = Goal(objective, seconds=10.0)
    return a_policy(*strategies, limits=limits, planner=Planner.OPTIMAL, goal=goal, **given)


def walked(cluster: Cluster, policy: RebalancingConfig, made: EvictionPlan) -> Cluster:
    """Make the moves one by one on a fork, each asked again and feasible when its turn comes."""
    fork = cluster.fork()
    scheduler = ProfileScheduler(policy.profiles[PLACE], fork)
    for move in made.moves:
        again = ask_again(move, policy, fork, AROUND)
        assert getattr(again, "target", "") == move.target, again
        pod = fork.displace(move.pod.uid)
        assert move.target in scheduler.rank(replacement_of(pod, fork)).nodes  # type: ignore[arg-type] # a fake has only what is used
        fork.place(replacement_of(pod, fork, move.target), move.target)  # type: ignore[arg-type] # a fake has only what is used
        validate(fork)
    return fork


def a_rack_that_came_back() -> Cluster:
    """Descheduler's issue 1535: 64 pods, 16 nodes in 4 racks, spread over both; one rack is empty."""
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        for key in (RACK, HOST)
    ]
    nodes = [
        a_node(f"{rack}{n}", cpu="64", labels={RACK: rack, HOST: f"{rack}{n}"})
        for rack in "abcd"
        for n in range(4)
    ]
    sizes = [6, 5, 5, 5, 6, 6, 5, 5, 6, 5, 5, 5]
    places = [node.name for node, size in zip(nodes, sizes, strict=False) for _ in range(size)]
    pods = [
        a_pod(
            f"web-{n}",
            node=place,
            cpu="1",
            labels={"app": "web"},
            owner="ReplicaSet/web",
            topologySpreadConstraints=constraints,
        )
        for n, place in enumerate(places)
    ]
    return a_cluster(nodes, pods)


def sizes_by(cluster: Cluster, key: str) -> dict[str, int]:
    return Counter(cluster.nodes[cluster.row_of_pod(uid)].labels[key] for uid in cluster.pods)  # type: ignore[index] # known to exist in this test


def test_issue_1535_takes_sixteen_moves_and_no_plan_takes_fewer() -> None:
    """The bound proves that 16 are the fewest; descheduler evicts as many or more, as its ties fall."""
    cluster = a_rack_that_came_back()
    policy = optimal(SPREAD)

    upstream = make_plan(replace(policy, planner=Planner.UPSTREAM), cluster, AROUND)
    made = make_plan(policy, cluster, AROUND)

    assert len(upstream.moves) >= len(made.moves) == 16
    assert made.optimisation.gap == pytest.approx(0, abs=1e-6)
    after = walked(cluster, policy, made)
    assert sizes_by(after, RACK) == {"a": 16, "b": 16, "c": 16, "d": 16}
    assert set(sizes_by(after, HOST).values()) == {4}


def test_limits_spread_the_optimum_over_cycles_and_make_it_no_dearer() -> None:
    """Five moves in a cycle: four cycles, sixteen moves in all, then none."""
    cluster = a_rack_that_came_back()
    policy = optimal(SPREAD, limits=Limits(total=Ceiling(count=5), per_workload=NO_CEILING))
    made = []

    while moves := (found := make_plan(policy, cluster, AROUND)).moves:
        made.append(len(moves))
        cluster = walked(cluster, policy, found)
        assert len(made) < 8

    assert made == [5, 5, 5, 1]
    assert found.optimisation.value == 0


def scattered(seed: int, nodes: int = 8, pods: int = 30) -> Cluster:
    """Pods of several owners anywhere, some where they may not be."""
    rng = random.Random(seed)
    names = [f"n{n}" for n in range(nodes)]
    made = [
        a_node(
            name,
            cpu="8",
            labels={HOST: name, "zone": "ab"[n % 2]},
            taints=["old=yes:NoSchedule"] if rng.random() < 0.15 else (),
        )
        for n, name in enumerate(names)
    ]
    room = dict.fromkeys(names, 8000)
    placed = []
    for n in range(pods):
        milli, owner = rng.choice([250, 500, 1000, 2000]), rng.randrange(6)
        free = [name for name in names if room[name] >= milli]
        node = rng.choice(free[: max(1, len(free) // 2)])
        room[node] -= milli
        placed.append(
            a_pod(
                f"p{n}",
                node=node,
                cpu=f"{milli}m",
                owner=f"ReplicaSet/r{owner}-{milli}",
                labels={"app": f"r{owner}"},
            )
        )
    return a_cluster(made, placed)


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("seed", [0, 4])
def test_never_worse_than_proven_and_feasible_at_every_step(objective: Objective, seed: int) -> None:
    """Whatever the objective; the bound is no better than what was found."""
    cluster = scattered(seed)
    policy = optimal(*USUAL, objective=objective, evictor={"minReplicas": 0})

    made = make_plan(policy, cluster, AROUND)

    found = made.optimisation
    assert found.bound <= found.value + 1e-6
    assert found.value <= found.proven + 1e-6
    assert found.value <= found.before + 1e-6
    walked(cluster, policy, made)


@pytest.mark.parametrize("owners", ["xyz", "xxx"])
def test_nodes_are_freed_completely(owners: str) -> None:
    """Three nodes with one small pod each: one is enough, also for pods of one owner."""
    nodes = [a_node(name, cpu="4", labels={HOST: name}) for name in ("a", "b", "c")]
    pods = [
        a_pod(f"p{name}", node=name, cpu="1", owner=f"ReplicaSet/{owner}")
        for name, owner in zip("abc", owners, strict=True)
    ]
    policy = optimal(objective=Objective.FEWEST_NODES, evictor={"minReplicas": 0})

    made = make_plan(policy, a_cluster(nodes, pods), AROUND)

    assert len(made.moves) == 2
    assert len({move.target for move in made.moves}) == 1
    assert made.optimisation.gap == pytest.approx(0, abs=1e-6)


def test_a_node_that_autoscalers_must_not_remove_is_not_emptied() -> None:
    """It is the one that the others' pods go to, as it stays in use anyway."""
    mark = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    nodes = [a_node(name, cpu="4", annotations=mark if name == "b" else {}) for name in ("a", "b", "c")]
    pods = [a_pod(f"p{n}", node=name, cpu="1", owner=f"ReplicaSet/{n}") for n, name in enumerate("abc")]
    policy = optimal(objective=Objective.FEWEST_NODES, evictor={"minReplicas": 0})

    made = make_plan(policy, a_cluster(nodes, pods), AROUND)

    assert {move.source for move in made.moves} == {"a", "c"}
    assert {move.target for move in made.moves} == {"b"}


def test_rules_that_the_program_does_not_know_are_learnt() -> None:
    """Two pods that cannot stand each other: where the filters reject one the program sends none again."""
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOST}
            ]
        }
    }
    nodes = [a_node(name, cpu="4", labels={HOST: name}) for name in ("a", "b", "c")]
    pods = [
        a_pod(f"db-{name}", node=name, cpu="1", owner="ReplicaSet/db", labels={"app": "db"}, affinity=apart)
        for name in ("a", "b", "c")
    ]
    policy = optimal(objective=Objective.FEWEST_NODES, evictor={"minReplicas": 0})

    made = make_plan(policy, a_cluster(nodes, pods), AROUND)

    assert made.moves == ()
    assert made.optimisation.value == made.optimisation.before


def test_a_converged_cluster_stays_untouched() -> None:
    """Nothing is wrong: no move, and the program says that none is better."""
    nodes = [a_node(name, cpu="4", labels={HOST: name}) for name in ("a", "b")]
    pods = [a_pod(f"p{n}", node=name, cpu="1", owner="ReplicaSet/web") for n, name in enumerate("ab")]

    made = make_plan(optimal(*USUAL), a_cluster(nodes, pods), AROUND)

    assert made.moves == ()
    assert made.optimisation.value == 0


LOW = ("LowNodeUtilization", {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}})


def an_over_used_node() -> Cluster:
    """Eight pods of a core on one of two nodes of ten."""
    pods = [a_pod(f"p{n}", node="n1", cpu="1", owner=f"ReplicaSet/r{n}") for n in range(8)]
    return a_cluster([a_node("n1", cpu="10"), a_node("n2", cpu="10")], pods)


@pytest.mark.parametrize("objective", [Objective.FEWEST_VIOLATIONS, Objective.SMALLEST_SPREAD])
@pytest.mark.parametrize(("seen", "moves"), [(0, False), (1, False), (2, True)])
def test_an_over_used_node_is_left_alone_at_first(objective: Objective, seen: int, moves: bool) -> None:
    """Three runs in a row are asked for; an even spread is no reason to hurry, either."""
    policy = replace(optimal(LOW, objective=objective, evictor={}), anomaly_rounds=3)
    around = replace(AROUND, over_for={("LowNodeUtilization", "n1"): seen})

    made = make_plan(policy, an_over_used_node(), around)

    assert bool(made.moves) is moves
    assert ("NotYet" in {each.refusal.reason for each in made.refused}) is not moves
    assert set(made.classes[0][1].overutilized) == {"n1"}, "so that the next run counts on"


def test_another_strategy_does_not_wait_for_a_node_to_be_over_used_for_long() -> None:
    """Pods that do not tolerate its taint go immediately; the rest stays."""
    cluster = an_over_used_node()
    cluster.set_node(a_node("n1", cpu="10", taints=["broken=yes:NoSchedule"]))
    tolerant = a_pod("t", node="n1", cpu="1", owner="ReplicaSet/t", tolerations=[{"operator": "Exists"}])
    cluster.place(cluster.templates.info(tolerant), "n1")
    low = ("LowNodeUtilization", {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 85}})
    policy = replace(optimal(low, ("RemovePodsViolatingNodeTaints", {}), evictor={}), anomaly_rounds=3)

    made = make_plan(policy, cluster, AROUND)

    assert {move.pod.name for move in made.moves} == {f"p{n}" for n in range(8)}


def test_failures_while_room_is_made_are_those_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each strategy, and none of them twice."""
    failures: list[Any] = []
    made: Any = SimpleNamespace(context=SimpleNamespace(failures=failures))
    search = SimpleNamespace(waiting=list, run=lambda: failures.append("of the search"))
    monkeypatch.setattr(planner, "NeighbourhoodSearch", lambda *_: search)
    monkeypatch.setattr(planner, "judge_strategy", lambda _, strategy: failures.append(strategy))
    serving: Any = ["first", "second"]
    nothing: Any = None

    found: Any = planner._make_room(serving, made, nothing, nothing)

    assert found.failures == ["first", "of the search", "second", "of the search"]
    assert failures == []
