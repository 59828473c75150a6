"""The second node, the second pod of a node and the second pod of a kind, in order."""

from typing import Any

import pytest

from plimsoll.framework.descheduling.proposals import Bundle, Verdict
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.strategies.low_node_utilization import LowNodeUtilization
from plimsoll.strategies.make_room_for_pending import MakeRoomForPending
from plimsoll.strategies.remove_pods_violating_inter_pod_anti_affinity import (
    RemovePodsViolatingInterPodAntiAffinity,
)
from plimsoll.strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint,
)
from plimsoll.testing.builders import a_node, a_pod
from strategies.builders import a_context, a_strategy, evicted


def proposed(strategy: Any, context: Any, verdict: Verdict) -> list[tuple[str, ...]]:
    """The names of the pods of each proposal, if each gets this verdict."""
    found: list[tuple[str, ...]] = []

    def judge(proposal: Any) -> Verdict:
        together = proposal.candidates if isinstance(proposal, Bundle) else (proposal,)
        found.append(tuple(each.pod.name for each in together))
        return verdict

    run_strategy(strategy, context, judge)
    return found


def test_the_node_that_is_furthest_above_its_line_is_relieved_first() -> None:
    """By percent points above the line of any resource; upstream takes the largest sum of amounts."""
    nodes = [a_node(name, cpu=cpu, pods=50) for name, cpu in (("a", "40"), ("b", "4"), ("idle", "40"))]
    pods = [a_pod(f"{name}{n}", node=name, owner=f"ReplicaSet/{name}{n}", cpu=cpu)
            for name, count, cpu in (("a", 6, "5"), ("b", 4, "950m")) for n in range(count)]  # fmt: skip
    strategy = a_strategy(LowNodeUtilization, thresholds={"cpu": 30}, targetThresholds={"cpu": 60})

    assert evicted(strategy, a_context(nodes, pods, exact=False))[0].startswith("b")
    assert evicted(strategy, a_context(nodes, pods))[0].startswith("a")


def test_pods_that_the_arguments_leave_out_hide_no_others() -> None:
    """Those of another namespace are seen first."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [
        a_pod(
            name,
            namespace=namespace,
            node="n1",
            labels={"app": "web"},
            affinity=rule,
            owner=f"ReplicaSet/{name}",
        )
        for namespace in ("left-out", "shop")
        for name in ("a", "b")
    ]
    strategy = a_strategy(RemovePodsViolatingInterPodAntiAffinity, namespaces={"exclude": ["left-out"]})

    assert evicted(strategy, a_context([a_node("n1"), a_node("n2")], pods, exact=False)) == ["a"]


@pytest.mark.parametrize("exact", [False, True])
def test_a_node_that_was_closed_is_left_by_both_sides_of_a_rule(exact: bool) -> None:
    """Also by pods that declare no rule and stand next to one that does."""
    rule = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    pods = [
        a_pod(f"{node}-{n}", node=node, labels={"app": "web"}, owner=f"ReplicaSet/{node}{n}", affinity=rule)
        for node in ("n1", "n2")
        for n in range(3)
    ]
    pods += [
        a_pod(f"{node}-x", node=node, labels={"app": "web"}, owner="ReplicaSet/x") for node in ("n1", "n2")
    ]
    context = a_context([a_node(each) for each in ("n1", "n2", "n3")], pods, exact=exact)

    found = proposed(a_strategy(RemovePodsViolatingInterPodAntiAffinity), context, Verdict.NODE_CLOSED)

    assert [name[:2] for (name,) in found] == ["n1", "n2"]


def test_upstream_moves_pods_that_may_go_anywhere_before_those_with_a_node_selector() -> None:
    """Whatever their names and priorities."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }

    def pod(name: str, priority: int, **more: Any) -> Any:
        return a_pod(
            name,
            node="n1",
            labels={"app": "web"},
            owner="ReplicaSet/web",
            priority=priority,
            topologySpreadConstraints=[constraint],
            **more,
        )

    nodes = [a_node(f"n{n}", labels={"zone": f"z{n}", "disk": "ssd"}) for n in (1, 2)]
    wish = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    prefers = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": wish}]
        }
    }
    pods = [
        pod("z-bound", 9, node_selector={"disk": "ssd"}),
        pod("y-bound", 8, affinity=prefers),
        pod("a-free", 1),
    ]

    strategy = a_strategy(RemovePodsViolatingTopologySpreadConstraint)

    assert evicted(strategy, a_context(nodes, pods)) == ["a-free"]


def test_what_helps_no_pod_is_not_proposed_again_for_its_sibling() -> None:
    """But for a pod of another size it is."""
    nodes = [a_node("one", cpu="4"), a_node("two", cpu="1")]
    placed = [a_pod(f"s{n}", node="one", owner=f"ReplicaSet/s{n}", cpu="1") for n in range(2)]

    def proposals(*sizes: str) -> int:
        waiting = [a_pod(f"w{n}", cpu=cpu) for n, cpu in enumerate(sizes)]
        context = a_context(nodes, [*placed, *waiting], exact=False)
        return len(proposed(a_strategy(MakeRoomForPending), context, Verdict.REFUSED))

    alone = proposals("3")
    assert alone > 0
    assert proposals("3", "3", "3") == alone
    assert proposals("3", "2500m") > alone
