"""Cycle after cycle: the plans of Proven come to an end, and no pod ever comes back."""

import random

import pytest

from engine.rounds import NOW, UNLIMITED, USUAL, a_policy, live
from plimsoll.engine.limits import NO_CEILING, Limits
from plimsoll.engine.moves import Circumstances
from plimsoll.engine.plan import plan
from plimsoll.engine.upstream_cycle import StrategyProfile, UpstreamPolicy, upstream_cycle
from plimsoll.testing.builders import a_cluster, a_node, a_pod

AROUND = Circumstances(now=NOW)
HOSTNAME = "kubernetes.io/hostname"
BALANCE = (
    "LowNodeUtilization",
    {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}},
)


def a_replica(name, node, **kwargs):
    return a_pod(name, node=node, **{"owner": "ReplicaSet/web", "labels": {"app": "web"}, **kwargs})


def refusals(made):
    return {(each.pod.name, each.refusal.reason) for each in made.refused}


def upstream_would_move(policy, cluster):
    """Names of the pods that descheduler evicts, with the same strategies and evictor."""
    profile = StrategyProfile("p", tuple(policy.evictors), tuple(policy.strategies))
    outcome = upstream_cycle(UpstreamPolicy((profile,), limits=Limits(per_workload=NO_CEILING)), cluster, NOW)
    return [each.pod.name for each in outcome.evictions]


def test_two_nodes_play_no_ping_pong():
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


def test_a_best_node_that_cannot_be_reached_moves_nobody():
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


def test_a_tainted_target_is_none():
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


def test_the_only_replica_of_a_service_stays():
    """Owners need two pods unless the policy says otherwise (requirement 4)."""
    cluster = a_cluster([a_node("n1", taints=["x:NoSchedule"]), a_node("n2")], [a_replica("only", "n1")])

    made = plan(a_policy(("RemovePodsViolatingNodeTaints", {})), cluster, AROUND)

    assert refusals(made) == {("only", "MinReplicas")}
    assert len(plan(a_policy(("RemovePodsViolatingNodeTaints", {}), evictor={}), cluster, AROUND).moves) == 1


def test_a_pod_that_overloads_any_node_moves_once_at_most():
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


def test_moves_planned_together_do_not_crowd_one_node():
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


def some_start(seed):
    """A cluster that nobody planned: pods of seven applications thrown on nodes of many kinds."""
    dice = random.Random(seed)
    nodes = [
        a_node(
            f"n{number}",
            cpu=dice.choice(["2", "4", "8"]),
            memory=dice.choice(["8Gi", "16Gi"]),
            pods=dice.choice([10, 30]),
            labels={"zone": dice.choice("abc"), "disk": dice.choice(["ssd", "hdd"])},
            taints=["x:NoSchedule"] if dice.random() < 0.15 else (),
            unschedulable=dice.random() < 0.1,
        )
        for number in range(dice.randint(2, 9))
    ]
    kinds = {app: some_kind(app, dice) for app in "abcdefg"}
    pods = []
    for number in range(dice.randint(3, 8 * len(nodes))):
        app = dice.choice(sorted(kinds))
        pods.append(
            a_replica(
                f"p{number}",
                dice.choice(nodes).name,
                **{"owner": f"ReplicaSet/{app}", "labels": {"app": app}, **kinds[app]},
            )
        )
    return a_cluster(nodes, pods)


def some_kind(app, dice):
    term = {
        "topologyKey": dice.choice([HOSTNAME, "zone"]),
        "labelSelector": {"matchLabels": {"app": app}},
    }
    spread = {"maxSkew": 1, "whenUnsatisfiable": dice.choice(["DoNotSchedule", "ScheduleAnyway"]), **term}
    prefers = {
        "weight": 5,
        "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
    }
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    extra = dice.choice(
        [
            {},
            {"affinity": {"podAntiAffinity": {required: [term]}}},
            {"topologySpreadConstraints": [spread]},
            {"affinity": {"nodeAffinity": {preferred: [prefers]}}},
            {"node_selector": {"disk": "ssd"}},
            {"tolerations": [{"operator": "Exists"}]},
        ]
    )
    return {
        "cpu": dice.choice([None, "100m", "500m", "1"]),
        "memory": dice.choice([None, "256Mi", "2Gi"]),
        **extra,
    }


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "limits", [pytest.param({}, id="safe"), pytest.param({"limits": UNLIMITED}, id="unlimited")]
)
def test_every_start_converges(seed, limits):
    """From any start, cycles end; nobody comes back, nobody is left without a node."""
    story = live(some_start(seed), a_policy(*USUAL, **limits), seed=seed)

    assert story.returned == []
    assert story.pending == []
