"""RemovePodsFromUnhealthyNodes moves pods off nodes with a bad condition, few nodes at a time."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from planning.rounds import NOW, UNLIMITED, a_policy
from planning.test_rounds import AROUND, a_replica, refusals
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.selector_text import parse_selector
from plimsoll.model.taints import UNHEALTHY
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.strategies.remove_pods_from_unhealthy_nodes import (
    RemovePodsFromUnhealthyNodes,
    RemovePodsFromUnhealthyNodesArgs,
)
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from plimsoll.toolkit.descheduling.unhealthy_nodes import health_of

NAMES = ("a", "b", "c", "d", "e")
TAINT = f"{UNHEALTHY}:NoSchedule"


def condition(
    kind: str = "KernelDeadlock", status: str = "True", since: float | None = 600
) -> dict[str, Any]:
    """A condition that has held for so many seconds; None does not say since when."""
    then = None if since is None else (NOW - timedelta(seconds=since)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": kind, "status": status, "lastTransitionTime": then}


def a_scene(
    conditions: dict[str, list[dict[str, Any]]], closed: tuple[str, ...] = (), **labels: str
) -> Cluster:
    """Five nodes with a pod of one owner each, and one of another owner on each."""

    def node(name: str) -> Node:
        return a_node(
            name,
            cpu="10",
            memory="64Gi",
            labels={"pool": labels.get(name, "main")},
            taints=[TAINT] if name in closed else [],
            status={"conditions": conditions.get(name, [])},
        )

    return a_cluster(
        [node(name) for name in NAMES],
        [
            *(a_replica(f"{name}1", name, owner="ReplicaSet/one", cpu="1") for name in NAMES),
            *(a_pod(f"agent-{name}", node=name, owner="DaemonSet/agent", cpu="100m") for name in NAMES),
        ],
    )


def moved(cluster: Cluster, nodes: str = "", **args: Any) -> tuple[dict[str, str], EvictionPlan]:
    """The pods that leave with their targets, and the plan."""
    selector = parse_selector(nodes)
    policy = a_policy(("RemovePodsFromUnhealthyNodes", args), limits=UNLIMITED, nodes=selector)
    made = plan(policy, cluster, AROUND)
    return {move.pod.name: move.target for move in made.moves}, made


def test_pods_leave_a_node_with_a_bad_condition() -> None:
    pods, made = moved(a_scene({"b": [condition()]}))

    assert pods.keys() == {"b1"}
    assert made.moves[0].reason == (
        "its node has the condition KernelDeadlock=True since 2026-01-01T11:50:00Z"
    )
    assert made.moves[0].bundle == ""


@pytest.mark.parametrize(
    ("found", "goes"),
    [
        pytest.param(condition(since=299), False, id="not-long-enough"),
        pytest.param(condition(since=300), True, id="just-long-enough"),
        pytest.param(condition(since=None), False, id="nobody-knows-how-long"),
        pytest.param(condition(status="False"), False, id="another-status"),
        pytest.param(condition("MemoryPressure"), False, id="another-type"),
        pytest.param(condition("ReadonlyFilesystem"), True, id="the-second-type"),
    ],
)
def test_a_condition_must_have_held_for_its_time(found: dict[str, Any], goes: bool) -> None:
    pods, _ = moved(a_scene({"b": [condition("Ready"), found]}))

    assert bool(pods) is goes


def test_the_longest_unhealthy_nodes_come_first_and_the_others_wait() -> None:
    ill = {"b": [condition(since=400)], "d": [condition(since=900)]}

    one, made = moved(a_scene(ill))
    both, _ = moved(a_scene(ill), maxNodes=2)

    assert one.keys() == {"d1"}
    assert both.keys() == {"b1", "d1"}
    assert [said for _, said in made.remarks] == [
        "node b has the condition KernelDeadlock=True since 2026-01-01T11:53:20Z, and waits: maxNodes is 1"
    ]
    assert not {"b", "d"}.intersection((*one.values(), *both.values()))


def test_a_node_that_is_closed_already_counts_also_when_nothing_is_left_on_it() -> None:
    """And when it belongs to another policy: the bound is for the cluster."""
    pods, _ = moved(a_scene({"b": [condition()]}, closed=("e",)))

    assert pods == {}


def test_pods_do_not_leave_a_node_that_is_recovering_nor_go_there() -> None:
    ill = {"b": [condition(status="False", since=100)], "c": [condition()]}
    pods, _ = moved(a_scene(ill, closed=("b",)), maxNodes=2)

    assert pods.keys() == {"c1"}
    assert pods["c1"] in ("a", "d", "e")


def test_no_pod_goes_to_a_node_that_looks_ill_however_short() -> None:
    ill = {"b": [condition()], "c": [condition(since=1)]}
    pods, _ = moved(a_scene(ill))

    assert pods.keys() == {"b1"}
    assert pods["b1"] in ("a", "d", "e")


@pytest.mark.parametrize("kind", ["KernelDeadlock", "Ready"])
def test_nothing_is_done_while_half_of_the_nodes_look_ill(kind: str) -> None:
    """Whether by the same condition or not ready: three of five are half or more, two are less."""
    status = "False" if kind == "Ready" else "True"
    ill = {"b": [condition()], "c": [condition(kind, status, 1)]}

    two, _ = moved(a_scene(ill))
    three, made = moved(a_scene(ill | {"d": [condition(kind, status, 1)]}))

    assert two.keys() == {"b1"}
    assert three == {}
    ((_, said),) = made.remarks
    assert said == (
        "3 nodes of 5 look unhealthy, which is half or more: no node is closed and no pod is moved until"
        " fewer do; see whether the nodes or their reports are at fault"
    )


def test_half_is_enough_and_closed_nodes_that_are_well_again_do_not_count() -> None:
    args = RemovePodsFromUnhealthyNodesArgs(max_nodes=9)
    nodes = [a_node(name, status={"conditions": [condition()]}) for name in "ab"]
    well = [a_node(name, taints=[TAINT]) for name in "cd"]

    def halted(*found: Node) -> bool:
        return bool(health_of(args, found, lambda _: True, NOW).halted)

    sick_and_closed = a_node("e", taints=[TAINT], status={"conditions": [condition()]})
    found = health_of(args, [*nodes, *well, sick_and_closed], lambda _: True, NOW)
    assert found.halted
    assert (set(found.closed), found.leaving, set(found.waiting)) == ({"e"}, (), {"a", "b"})

    assert halted(*nodes, *well)
    assert not halted(nodes[0], *well)
    assert not halted(*well)
    assert not halted()


def test_a_node_that_is_not_ready_may_be_closed_and_keeps_its_pods() -> None:
    """Kubernetes deletes them; no kubelet would end what is evicted."""
    ready = {"type": "Ready", "status": "False", "timeoutSeconds": 60}
    cluster = a_scene({"b": [condition("Ready", "False")]})
    args = RemovePodsFromUnhealthyNodesArgs.model_validate({"unhealthyNodeConditions": [ready]})

    pods, _ = moved(cluster, unhealthyNodeConditions=[ready])

    assert pods == {}
    assert health_of(args, cluster.nodes, lambda _: True, NOW).closed.keys() == {"b"}


def test_only_nodes_of_the_policy_are_closed() -> None:
    ill = {"b": [condition()], "c": [condition(since=900)]}
    pods, _ = moved(a_scene(ill, c="other"), nodes="pool=main")

    assert pods.keys() == {"b1"}


def test_a_pod_that_must_stay_keeps_no_other() -> None:
    cluster = a_scene({"b": [condition()]})
    cluster.place(cluster.templates.info(a_pod("bare", node="b", cpu="1")), "b")

    pods, made = moved(cluster)

    assert pods.keys() == {"b1"}
    assert ("bare", "FailedBarePods") in refusals(made)


def test_another_policy_sends_nothing_to_a_closed_node() -> None:
    """Not even a pod that tolerates everything, where the scheduler would place it."""
    policy = a_policy(("RemoveDuplicates", {}))
    node = a_node("b", taints=[TAINT])

    assert policy.exclusion(node) == f"has the taint {UNHEALTHY}"
    assert policy.exclusion(a_node("b", taints=[f"{UNHEALTHY}:PreferNoSchedule"])) == ""


def test_pods_on_a_node_that_they_must_leave_are_complaints() -> None:
    policy = a_policy(("RemovePodsFromUnhealthyNodes", {}))
    made = PlanBuilder(policy, a_scene({"b": [condition()]}), AROUND)
    (strategy,) = policy.strategies
    assert isinstance(strategy, RemovePodsFromUnhealthyNodes)

    assert {each.sentence: count for each, count in strategy.complaints(made.context).items()} == {
        "node b is unhealthy and not empty": 1.0
    }


@pytest.mark.parametrize(
    "args",
    [
        {"unhealthyNodeConditions": []},
        {"unhealthyNodeConditions": [{"type": "Ready", "status": "Maybe"}]},
        {"unhealthyNodeConditions": [{"status": "True"}]},
        {"maxNodes": 0},
        {"recoverySeconds": -1},
    ],
)
def test_arguments_without_meaning_are_refused(args: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RemovePodsFromUnhealthyNodesArgs.model_validate(args)


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = RemovePodsFromUnhealthyNodes(RemovePodsFromUnhealthyNodesArgs())
    nodes = ({}, {}, {"status": {"conditions": [condition()]}})
