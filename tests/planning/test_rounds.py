"""Cycle after cycle: the plans of Proven and Optimal come to an end, and no pod ever comes back."""

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from planning.rounds import NOW, PLACE, UNLIMITED, a_policy, live
from plimsoll.framework.descheduling.complaints import Gravity
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.moves import EvictionPlan, Goal, Move, Objective, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.proven.planner import revalidate
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll_optimal.problem import VIOLATION, WEIGHTS
from trials.rounds import USUAL, rounds, upstream_moves
from trials.starts import READY, some_start

AROUND = PlanningContext(now=NOW)
HOSTNAME = "kubernetes.io/hostname"
BALANCE = (
    "LowNodeUtilization",
    {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}},
)


def a_replica(name: str, node: str, **kwargs: Any) -> Pod:
    return a_pod(name, node=node, **{"owner": "ReplicaSet/web", "labels": {"app": "web"}, **kwargs})


def refusals(made: EvictionPlan) -> set[tuple[str, ...]]:
    return {(each.pod.name, each.refusal.reason) for each in made.refused}


def upstream_would_move(policy: RebalancingConfig, cluster: Cluster) -> list[str]:
    """Names of the pods that descheduler evicts, with the same strategies and evictor."""
    return [move.pod.name for move in upstream_moves(policy, cluster, NOW)]


def test_two_nodes_play_no_ping_pong() -> None:
    """Three duplicates on the only roomy node: upstream evicts one each cycle, and it comes back."""
    cluster = a_cluster(
        [a_node("big", cpu="16"), a_node("small", cpu="2")],
        [a_replica(f"p{n}", "big", cpu="1500m") for n in range(3)]
        + [a_replica("other", "small", owner="ReplicaSet/other", cpu="1500m")],
    )
    policy = a_policy(("RemoveDuplicates", {}))

    assert upstream_would_move(policy, cluster) == ["p2"]
    made = plan(policy, cluster, AROUND)
    assert made.moves == ()
    assert refusals(made) == {("p2", "NoOtherNode")}


def test_a_best_node_that_cannot_be_reached_moves_no_pod() -> None:
    """The preferred node is full: upstream evicts for ever (issues 1707, 1920)."""
    prefers = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {
                        "matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]
                    },
                }
            ]
        }
    }
    cluster = a_cluster(
        [a_node("n1"), a_node("best", cpu="1", labels={"disk": "ssd"})],
        [a_replica(f"p{n}", "n1", cpu="1", affinity=prefers) for n in range(2)]
        + [a_replica("full", "best", owner="ReplicaSet/full", cpu="1")],
    )
    policy = a_policy(
        (
            "RemovePodsViolatingNodeAffinity",
            {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]},
        )
    )

    assert upstream_would_move(policy, cluster) == ["p0", "p1"]
    assert plan(policy, cluster, AROUND).moves == ()


def test_a_tainted_node_is_no_target() -> None:
    """Every other node is tainted too: the pods stay, and the scheduler's sentence says why."""
    cluster = a_cluster(
        [a_node("n1", taints=["x:NoSchedule"]), a_node("n2", taints=["y:NoSchedule"])],
        [a_replica(f"p{n}", "n1") for n in range(2)],
    )
    policy = a_policy(("RemovePodsViolatingNodeTaints", {}))

    assert upstream_would_move(policy, cluster) == ["p0", "p1"]
    made = plan(policy, cluster, AROUND)
    assert refusals(made) == {("p0", "NoFeasibleNode"), ("p1", "NoFeasibleNode")}
    assert made.refused[0].refusal.message == "0/2 nodes are available: 2 node(s) had untolerated taint(s)."


def test_the_only_replica_of_a_service_stays() -> None:
    """Owners need two pods unless the policy says otherwise (requirement 4)."""
    cluster = a_cluster([a_node("n1", taints=["x:NoSchedule"]), a_node("n2")], [a_replica("only", "n1")])

    made = plan(a_policy(("RemovePodsViolatingNodeTaints", {})), cluster, AROUND)

    assert refusals(made) == {("only", "MinReplicas")}
    assert len(plan(a_policy(("RemovePodsViolatingNodeTaints", {}), evictor={}), cluster, AROUND).moves) == 1


def test_a_pod_that_overloads_any_node_moves_once_at_most() -> None:
    """It takes four fifths of a node wherever it is: it finds the emptier node and stays there."""
    cluster = a_cluster(
        [a_node("n1", cpu="10"), a_node("n2", cpu="10")],
        [
            a_replica("large", "n1", owner="ReplicaSet/large", cpu="8"),
            *(a_replica(f"small{n}", "n1", cpu="200m") for n in range(3)),
        ],
    )

    story = live(cluster, a_policy(BALANCE, evictor={}, limits=UNLIMITED))

    assert sum(move.pod.name == "large" for cycle in story.moves for move in cycle) <= 1
    assert story.returned == []


def test_moves_planned_together_do_not_crowd_one_node() -> None:
    """Ten pods of a tainted node, three small ones left: each gets the place that the others left it."""
    cluster = a_cluster(
        [a_node("old", cpu="20", taints=["x:NoSchedule"])]
        + [a_node(f"new{n}", cpu="4", memory="64Gi") for n in range(3)],
        [a_replica(f"p{n}", "old", cpu="1") for n in range(14)],
    )

    made = plan(a_policy(("RemovePodsViolatingNodeTaints", {}), limits=UNLIMITED), cluster, AROUND)

    assert len(made.moves) == 12
    landed = [move.target for move in made.moves]
    assert {node: landed.count(node) for node in landed} == {"new0": 4, "new1": 4, "new2": 4}
    assert {reason for _, reason in refusals(made)} == {"NoFeasibleNode"}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "limits", [pytest.param({}, id="safe"), pytest.param({"limits": UNLIMITED}, id="unlimited")]
)
def test_every_start_converges(seed: int, limits: dict[str, Any]) -> None:
    """From any start, cycles end; no pod comes back, none is left without a node."""
    story = live(some_start(seed), a_policy(*USUAL, **limits), seed=seed)

    assert story.returned == []
    assert story.pending == []


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("seed", [3, 4])
def test_every_cycle_of_optimal_lowers_its_objective_until_none_can(seed: int, objective: Objective) -> None:
    """By more than the price of its moves, so there is an end to them; no pod comes back on the way."""
    goal = Goal(objective, seconds=0.3)

    story = live(some_start(seed), a_policy(*USUAL, planner=Planner.OPTIMAL, goal=goal), seed=seed)

    found = [each.before for each in story.objectives]
    for moves, (before, after) in zip(story.moves, pairwise(found), strict=True):
        assert after + len(moves) * goal.move_price < before + 1e-6
    assert (story.returned, story.homeless, story.dropped, story.over_limit) == ([], [], [], 0)
    assert all(each.value <= min(each.before, each.proven) for each in story.objectives)


def test_optimal_leaves_a_pod_alone_that_overloads_any_node() -> None:
    """Wherever it goes that node is over-used then: granting the wish makes the next one."""
    cluster = a_cluster(
        [a_node("n1", cpu="10"), a_node("n2", cpu="10")],
        [a_replica("large", "n1", owner="ReplicaSet/large", cpu="8")],
    )
    policy = a_policy(BALANCE, evictor={}, limits=UNLIMITED, planner=Planner.OPTIMAL)

    made = make_plan(policy, cluster, AROUND)

    assert made.moves == ()
    assert made.optimisation.value == made.optimisation.before == VIOLATION


OVER_ZONES = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def test_optimal_evens_out_domains_one_move_at_a_time() -> None:
    """One pod of an owner in a cycle: each leaves fewer pods too many, though the largest domain stays."""
    cluster = a_cluster(
        [a_node(f"n-{zone}", cpu="16", labels={"zone": zone}) for zone in "abcd"],
        [
            a_replica(f"{zone}{n}", f"n-{zone}", cpu="1", topologySpreadConstraints=[OVER_ZONES])
            for zone in "ab"
            for n in range(4)
        ],
    )
    policy = a_policy(("RemovePodsViolatingTopologySpreadConstraint", {}), planner=Planner.OPTIMAL)

    story = live(cluster, policy)

    assert [len(moves) for moves in story.moves] == [1, 1, 1, 1]
    assert [each.before for each in story.objectives] == [
        count * VIOLATION * WEIGHTS[Gravity.RULE] for count in (6, 5, 2, 1, 0)
    ]


def test_optimal_moves_replicas_one_by_one_though_the_last_ready_one_is_protected() -> None:
    """Once one has moved, another is the last ready one: that its protection ends is no new violation."""
    cluster = a_cluster(
        [*(a_node(f"n{n}") for n in range(3)), a_node("right", labels={"disk": "ssd"})],
        [a_replica(f"p{n}", f"n{n}", status=READY, node_selector={"disk": "ssd"}) for n in range(3)],
    )
    by_affinity = (
        "RemovePodsViolatingNodeAffinity",
        {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    )

    story = live(cluster, a_policy(by_affinity, planner=Planner.OPTIMAL))

    assert [len(moves) for moves in story.moves] == [1, 1, 1]


def test_optimal_moves_another_replica_than_the_one_that_was_just_moved() -> None:
    """Either would even out the zones; one of them has come within the hour."""
    cluster = a_cluster(
        [a_node(f"n-{zone}", labels={"zone": zone}) for zone in "ab"],
        [a_replica(f"p{n}", "n-a", topologySpreadConstraints=[OVER_ZONES]) for n in range(2)],
    )
    policy = a_policy(
        ("RemovePodsViolatingTopologySpreadConstraint", {}),
        planner=Planner.OPTIMAL,
        evictor={"minReplicas": 0},
    )

    def moved(*recently: str) -> list[str]:
        around = PlanningContext(now=NOW, moved=frozenset(f"uid-default-{name}" for name in recently))
        return [move.pod.name for move in make_plan(policy, cluster, around).moves]

    assert moved("p0") == ["p1"]
    assert moved("p1") == ["p0"]
    assert moved("p0", "p1") == []


@pytest.mark.parametrize("seed", [3, 7])
def test_proven_rests_where_upstream_loops(seed: int) -> None:
    """The same start for both: no pod comes back with Proven, no limit is broken, and it evicts no more."""
    stories = {}
    for planner in (Planner.UPSTREAM, Planner.PROVEN):
        policy = replace(a_policy(*USUAL), planner=planner)
        stories[planner] = rounds(some_start(seed), policy, PLACE, AROUND, cycles=30, seed=seed)

    proven, upstream = stories[Planner.PROVEN], stories[Planner.UPSTREAM]
    assert (proven.rested, proven.returned, proven.homeless, proven.over_limit) == (True, [], [], 0)
    assert proven.evicted <= upstream.evicted
    assert upstream.over_limit == 0


def test_a_replacement_may_be_moved_again() -> None:
    """The rounds would prove nothing if a pod that has moved were left alone for ever."""
    cluster = a_cluster(
        [a_node("n1", taints=["x:NoSchedule"]), a_node("n2")], [a_replica(f"p{n}", "n1") for n in range(2)]
    )
    policy = a_policy(("RemovePodsViolatingNodeTaints", {}), limits=UNLIMITED)
    live(cluster, policy)
    assert {pod.name for pod in cluster.pods.values()} == {"p0-r", "p1-r"}
    cluster.set_node(a_node("n1"))
    cluster.set_node(a_node("n2", taints=["x:NoSchedule"]))

    live(cluster, policy)

    assert {pod.name for pod in cluster.pods.values()} == {"p0-r-r", "p1-r-r"}


def test_the_server_of_the_rounds_refuses_what_a_budget_does_not_allow() -> None:
    """Upstream does not look at budgets: its evictions are refused, and Proven asks for none."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    budget = convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0},
        },
    )
    blocked = {}
    for planner in (Planner.UPSTREAM, Planner.PROVEN):
        cluster = a_cluster(
            [a_node("n1", taints=["x:NoSchedule"]), a_node("n2")],
            [a_replica(f"p{n}", "n1", status=ready) for n in range(2)],
        )
        cluster.objects.budgets[budget.key] = budget
        policy = replace(a_policy(("RemovePodsViolatingNodeTaints", {})), planner=planner)
        story = rounds(cluster, policy, PLACE, AROUND, cycles=3, seed=0)
        assert story.evicted == 0
        blocked[planner] = len(story.blocked)

    assert blocked == {Planner.UPSTREAM: 3, Planner.PROVEN: 0}


@pytest.mark.parametrize(("seen", "moves"), [(0, False), (1, False), (2, True)])
def test_an_over_used_node_is_left_alone_at_first(seen: int, moves: bool) -> None:
    """Three runs in a row are asked for; the look right before the eviction waits no more."""
    cluster = a_cluster(
        [a_node("n1", cpu="10"), a_node("n2", cpu="10")],
        [a_replica(f"p{n}", "n1", owner=f"ReplicaSet/r{n}", cpu="1") for n in range(8)],
    )
    policy = replace(a_policy(BALANCE, evictor={}, limits=UNLIMITED), anomaly_rounds=3)

    made = plan(policy, cluster, replace(AROUND, over_for={("LowNodeUtilization", "n1"): seen}))

    assert bool(made.moves) is moves
    if not moves:
        ((pod, reason),) = refusals(made)
        assert (pod, reason) == ("p0", "NotYet")
        assert f"was over-used in {seen + 1} of the " in made.refused[0].refusal.message
    else:
        assert isinstance(revalidate(made.moves[0], policy, cluster, AROUND), Move)
