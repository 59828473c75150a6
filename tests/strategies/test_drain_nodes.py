"""DrainNodes empties the named nodes whole, in order, and sends nothing to others of them."""

from typing import Any

import pytest

from planning.rounds import NOW, UNLIMITED, a_policy
from planning.test_budgets import READY, a_budget
from planning.test_rounds import AROUND, a_replica, refusals
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.limits import Limits
from plimsoll.planning.moves import EvictionPlan, Move, PlanningContext
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.proven.planner import revalidate
from plimsoll.strategies.drain_nodes import DrainNodes, DrainNodesArgs
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from plimsoll.toolkit.scheduling.topology_levels import ZONE


def a_scene(*more: Any) -> Cluster:
    """Four nodes, of which three have two pods each, of owners with further pods on the fourth."""
    owners = ("a1", "a2", "b1", "b2", "c1", "c2")
    zones = {"a": "1", "b": "1", "c": "2", "d": "2"}
    return a_cluster(
        [a_node(name, cpu="10", memory="64Gi", labels={ZONE: zone}) for name, zone in zones.items()],
        [
            *(a_replica(each, each[0], owner=f"ReplicaSet/{each}", cpu="1") for each in owners),
            *(a_replica(f"{each}-2", "d", owner=f"ReplicaSet/{each}", cpu="100m") for each in owners),
            a_pod("agent-a", node="a", owner="DaemonSet/agent", cpu="100m"),
            *more,
        ],
    )


def drained(cluster: Cluster, **args: Any) -> tuple[dict[str, str], EvictionPlan]:
    """The pods that leave with their targets, and the plan."""
    made = plan(a_policy(("DrainNodes", args), limits=UNLIMITED), cluster, AROUND)
    return {move.pod.name: move.target for move in made.moves}, made


def test_a_node_is_emptied_of_all_but_its_agents() -> None:
    moved, made = drained(a_scene(), nodes=["a"])

    assert moved.keys() == {"a1", "a2"}
    assert len({move.bundle for move in made.moves}) == 1


def test_no_replacement_goes_to_a_node_of_the_same_maintenance() -> None:
    """Neither to those that are to be emptied now, nor to the others; though d is the fullest."""
    moved, _ = drained(a_scene(), nodes=["a", "b"], avoided=["c"])

    assert moved == dict.fromkeys(("a1", "a2", "b1", "b2"), "d")


@pytest.mark.parametrize(
    ("args", "sources"),
    [
        ({"most": 2}, {"a", "b"}),
        ({"most": 0}, set()),
        ({}, {"a", "b", "c"}),
        ({"mostPerZone": 1}, {"a", "c"}),
        ({"mostPerZone": 1, "busyZones": {"1": 1}}, {"c"}),
        ({"mostPerZone": 2, "busyZones": {"1": 1}, "most": 2}, {"a", "c"}),
    ],
)
def test_so_many_nodes_are_begun(args: dict[str, Any], sources: set[str]) -> None:
    _, made = drained(a_scene(), nodes=["a", "b", "c", "gone"], **args)

    assert {move.source for move in made.moves} == sources


def test_one_pod_that_must_stay_keeps_its_node_and_no_other() -> None:
    moved, made = drained(a_scene(a_pod("solo", node="a", cpu="1")), nodes=["a", "b"], most=1)

    assert moved.keys() == {"b1", "b2"}
    assert ("solo", "FailedBarePods") in refusals(made)


def test_a_node_with_agents_stays_where_they_are_not_to_be_ignored() -> None:
    moved, made = drained(a_scene(), nodes=["a", "b"], ignoreDaemonSets=False)

    assert moved.keys() == {"b1", "b2"}
    assert ("agent-a", "DaemonSetPods") in refusals(made)


@pytest.mark.parametrize(("longest", "sources"), [(59, {"b"}), (60, {"a", "b"}), (None, {"a", "b"})])
def test_a_pod_that_may_take_too_long_to_end_keeps_its_node(longest: int | None, sources: set[str]) -> None:
    slow = a_replica("slow", "a", owner="ReplicaSet/a1", cpu="1", terminationGracePeriodSeconds=60)

    _, made = drained(a_scene(slow), nodes=["a", "b"], longestGraceSeconds=longest)

    assert {move.source for move in made.moves} == sources
    assert (("slow", "LongGracePeriod") in refusals(made)) == (longest == 59)


@pytest.mark.parametrize(("in_turn", "sources"), [(False, {"a"}), (True, {"a", "b", "c"})])
def test_pods_of_one_owner_leave_several_nodes_one_after_another(in_turn: bool, sources: set[str]) -> None:
    """Where a run may do so; limit, budget and the ready replicas are then those after the one before."""
    cluster = a_cluster(
        [a_node(name, cpu="10", memory="64Gi") for name in "abcd"],
        [
            a_replica(f"web-{node}", node, cpu="1", status={"conditions": READY["conditions"]})
            for node in "abc"
        ],
    )
    budget = a_budget(disruptionsAllowed=1, currentHealthy=3)
    cluster.objects.budgets["default/web"] = budget
    args = {"nodes": ["a", "b", "c"], "inTurn": in_turn}

    made = plan(a_policy(("DrainNodes", args), limits=Limits()), cluster, AROUND)

    assert {move.source for move in made.moves} == sources


def test_a_pod_leaves_again_within_the_hour() -> None:
    """Unlike for strategies that choose nodes themselves: the node it came to may be the next one."""
    around = PlanningContext(now=NOW, moved=frozenset(("uid-default-a1",)))

    made = plan(a_policy(("DrainNodes", {"nodes": ["a"]}), limits=UNLIMITED), a_scene(), around)

    assert {move.pod.name for move in made.moves} == {"a1", "a2"}


@pytest.mark.parametrize(
    ("args", "elsewhere", "busy", "target"),
    [
        ({}, (), "4", ("c", False)),
        ({"avoided": ["c"]}, (), "4", ("b", True)),
        ({}, ("c",), "4", ("b", True)),
        # As good as the node that waits: the scheduler may choose either, so it is sent.
        ({}, ("b",), "5", ("c", True)),
        ({"avoided": ["c"]}, ("b",), "4", None),
    ],
)
def test_the_second_look_takes_no_node_that_is_to_be_drained(
    args: dict[str, Any], elsewhere: tuple[str, ...], busy: str, target: tuple[str, bool] | None
) -> None:
    """The planned node is full meanwhile: another one is taken, but none that waits, here or elsewhere."""
    cluster = a_cluster(
        [a_node(name, cpu="10", memory="64Gi") for name in "abcd"],
        [
            a_replica("web-1", "a", cpu="1"),
            a_pod("agent", node="a", owner="DaemonSet/agent", cpu="7"),
            a_pod("big-b", node="b", cpu="5", owner="ReplicaSet/big"),
            a_pod("big-c", node="c", cpu=busy, owner="ReplicaSet/big"),
        ],
    )
    policy = a_policy(
        ("DrainNodes", {"nodes": ["a"], **args}), limits=UNLIMITED, evictor={}, leaving=frozenset(elsewhere)
    )
    (move,) = plan(policy, cluster, AROUND).moves
    assert (move.target, move.is_directed, move.surge) == ("d", False, None)
    cluster.place(cluster.templates.info(a_pod("thief", cpu="9900m", node="d")), "d")

    again = revalidate(move, policy, cluster, AROUND)

    assert ((again.target, again.is_directed) if isinstance(again, Move) else None) == target


class TestConformance(StrategyConformance):
    """The laws that every strategy obeys."""

    strategy = DrainNodes(DrainNodesArgs(nodes=[f"n{number}" for number in range(10)]))
