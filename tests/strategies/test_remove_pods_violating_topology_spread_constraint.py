"""RemovePodsViolatingTopologySpreadConstraint, against the cases of upstream's own tests."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint,
)
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import a_context, a_strategy, evicted

ZONE = "zone"


def a_constraint(**more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def zones(*counts: int, **pod: Any) -> list[Pod]:
    """One node a zone, with so many pods on each."""
    constraint = pod.pop("constraint", a_constraint())
    return [
        a_pod(
            f"z{zone}-{number:03}",
            node=f"n{zone}",
            owner="ReplicaSet/web",
            labels={"app": "web", **pod.get("labels", {})},
            topologySpreadConstraints=[constraint],
            **{key: value for key, value in pod.items() if key != "labels"},
        )
        for zone, count in enumerate(counts)
        for number in range(count)
    ]


def nodes_of(count: int, **kwargs: Any) -> list[Node]:
    return [
        a_node(f"n{zone}", cpu="64", pods=500, labels={ZONE: f"z{zone}"}, **kwargs) for zone in range(count)
    ]


def moved(
    counts: tuple[int, ...],
    nodes: list[Node] | None = None,
    *,
    exact: bool = True,
    args: dict[str, Any] | None = None,
    **pod: Any,
) -> list[str]:
    context = a_context(nodes or nodes_of(len(counts)), zones(*counts, **pod), exact=exact)
    return evicted(a_strategy(RemovePodsViolatingTopologySpreadConstraint, **(args or {})), context)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((2, 1), 0),
        ((3, 1), 1),
        ((5, 2), 1),
        ((4, 0), 2),
        ((0, 1, 100), 66),
        ((0, 1, 3, 5), 3),
        ((8, 7, 0), 5),
        ((5, 5, 5), 0),
        # rounded up for each pair of domains
        ((7, 1, 1), 4),
        ((10, 0, 0), 7),
    ],
)
def test_pods_leave_domains_with_more_than_their_share(counts: tuple[int, ...], expected: int) -> None:
    """As many as upstream's pairwise balancing takes."""
    assert len(moved(counts)) == expected


def test_the_skew_that_is_allowed_is_left() -> None:
    """[2,6] with maxSkew 2 becomes [3,5]; [100,0] with 5 becomes [52,48]."""
    assert len(moved((2, 6), constraint=a_constraint(maxSkew=2))) == 1
    assert len(moved((100, 0), constraint=a_constraint(maxSkew=5))) == 48


def test_the_highest_priority_goes_first_upstream_and_last_here() -> None:
    """Upstream's order is a known defect (issue 1624)."""
    pods = zones(4, 0)
    pods = [
        a_pod(
            pod.name,
            node="n0",
            owner="ReplicaSet/web",
            labels={"app": "web"},
            priority=number * 100,
            topologySpreadConstraints=[a_constraint()],
        )
        for number, pod in enumerate(pods)
    ]
    strategy = a_strategy(RemovePodsViolatingTopologySpreadConstraint)

    assert sorted(evicted(strategy, a_context(nodes_of(2), pods))) == ["z0-002", "z0-003"]
    assert evicted(strategy, a_context(nodes_of(2), pods, exact=False))[:2] == ["z0-000", "z0-001"]


def test_upstream_moves_a_pod_with_a_priority_before_one_without() -> None:
    """Even if the priority is below 0."""
    pods = zones(1, 0) + [
        a_pod(
            f"z0-{number}",
            node="n0",
            owner="ReplicaSet/web",
            labels={"app": "web"},
            priority=priority,
            topologySpreadConstraints=[a_constraint()],
        )
        for number, priority in ((1, -1), (2, None))
    ]
    strategy = a_strategy(RemovePodsViolatingTopologySpreadConstraint)

    assert evicted(strategy, a_context(nodes_of(2), pods)) == ["z0-1"]


def test_terminating_pods_do_not_count() -> None:
    """[4,2] with two of the four terminating is [2,2]."""
    pods = zones(2, 2) + [
        a_pod(
            f"going-{number}",
            node="n0",
            owner="ReplicaSet/web",
            labels={"app": "web"},
            metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
            topologySpreadConstraints=[a_constraint()],
        )
        for number in range(2)
    ]

    assert (
        evicted(a_strategy(RemovePodsViolatingTopologySpreadConstraint), a_context(nodes_of(2), pods)) == []
    )


def test_pods_that_fit_nowhere_stay_unless_forced() -> None:
    """With no room in the small zone, only topologyBalanceNodeFit: false makes the autoscaler act."""
    nodes = [*nodes_of(1), a_node("n1", cpu="1m", labels={ZONE: "z1"})]
    force = {"topologyBalanceNodeFit": False}

    assert moved((4, 0), nodes, cpu="1") == []
    assert len(moved((4, 0), nodes, cpu="1", args=force)) == 2


def test_domains_that_the_constraint_ignores_do_not_count() -> None:
    """Node affinity is honoured by default, taints on request."""
    linux = [a_node(f"n{zone}", labels={ZONE: f"z{zone}", "os": "linux"}) for zone in range(2)]
    other = a_node("n2", labels={ZONE: "z2", "os": "other"})
    tainted = a_node("n2", labels={ZONE: "z2"}, taints=["x:NoSchedule"])

    assert moved((2, 2, 0), [*linux, other], node_selector={"os": "linux"}) == []
    assert moved((2, 2, 0), [*linux, tainted], constraint=a_constraint(nodeTaintsPolicy="Honor")) == []


def test_revisions_may_be_distinguished() -> None:
    """matchLabelKeys: pods of two revisions are counted apart."""
    constraint = a_constraint(matchLabelKeys=["revision"])
    old = zones(1, 0, constraint=constraint, labels={"revision": "1"})
    new = [
        a_pod(
            "new",
            node="n0",
            owner="ReplicaSet/web",
            labels={"app": "web", "revision": "2"},
            topologySpreadConstraints=[constraint],
        )
    ]
    strategy = a_strategy(RemovePodsViolatingTopologySpreadConstraint)

    assert evicted(strategy, a_context(nodes_of(2), old + new)) == []
    assert len(moved((2, 0), constraint=constraint, labels={"revision": "1"})) == 1


def test_soft_constraints_count_on_request() -> None:
    """ScheduleAnyway is repaired only when listed."""
    soft = a_constraint(whenUnsatisfiable="ScheduleAnyway")

    assert moved((3, 0), constraint=soft) == []
    assert len(moved((3, 0), constraint=soft, args={"constraints": ["ScheduleAnyway"]})) == 1


def test_protected_pods_count_here_and_not_upstream() -> None:
    """[3 protected + 1, 0]: upstream sees one pod; the scheduler, and so we, see four (issue 413)."""
    protected = [
        a_pod(
            f"local-{number}",
            node="n0",
            owner="ReplicaSet/web",
            labels={"app": "web"},
            volumes=[{"name": "v", "emptyDir": {}}],
            topologySpreadConstraints=[a_constraint()],
        )
        for number in range(3)
    ]
    pods = [*protected, *zones(1, 0)]
    strategy = a_strategy(RemovePodsViolatingTopologySpreadConstraint)

    assert evicted(strategy, a_context(nodes_of(2), pods)) == []
    assert evicted(strategy, a_context(nodes_of(2), pods, exact=False)) == ["z0-000"]


def test_a_key_that_no_node_has_is_no_constraint() -> None:
    """There is no domain at all."""
    assert moved((3, 0), constraint=a_constraint(topologyKey="nobody")) == []


def test_other_pods_do_not_count() -> None:
    """Pods of the namespace that the selector does not match, and those out of the strategy's scope."""
    others = [a_pod(f"other{n}", node="n0", owner="ReplicaSet/x", labels={"app": "x"}) for n in range(9)]
    context = a_context(nodes_of(2), [*zones(1, 1), *others])
    scope = {"namespaces": {"exclude": ["default"]}}

    assert evicted(a_strategy(RemovePodsViolatingTopologySpreadConstraint), context) == []
    assert moved((4, 0), args=scope) == []


def test_a_closed_node_is_left_alone() -> None:
    """The node limit skips the other victims of that node only."""
    context = a_context(nodes_of(3), zones(6, 6, 0))

    names = evicted(a_strategy(RemovePodsViolatingTopologySpreadConstraint), context, per_node=1)

    assert sorted(name[:2] for name in names) == ["z0", "z1"]
    assert len(moved((9, 0, 0))) == 6
    closing = a_context(nodes_of(3), zones(9, 0, 0))
    assert len(evicted(a_strategy(RemovePodsViolatingTopologySpreadConstraint), closing, per_node=1)) == 1


def test_malformed_selectors_and_unknown_kinds() -> None:
    """A selector that means nothing is no constraint; an unknown kind is refused."""
    bogus = a_constraint(labelSelector={"matchExpressions": [{"key": "a", "operator": "Bogus"}]})

    assert moved((4, 0), constraint=bogus) == []
    with pytest.raises(ValidationError, match="DoNotSchedule"):
        a_strategy(RemovePodsViolatingTopologySpreadConstraint, constraints=["Never"])


COST = "controller.kubernetes.io/pod-deletion-cost"


def test_the_cheapest_of_equal_priority_leave_here() -> None:
    """By the deletion cost that its owner gave each of them."""
    pods = [
        a_pod(
            f"p{number}",
            node="n0",
            owner="ReplicaSet/web",
            labels={"app": "web"},
            annotations={COST: str(cost)},
            topologySpreadConstraints=[a_constraint()],
        )
        for number, cost in enumerate((3, -2, 8, -7))
    ]
    strategy = a_strategy(RemovePodsViolatingTopologySpreadConstraint)

    assert evicted(strategy, a_context(nodes_of(2), pods, exact=False))[:2] == ["p3", "p1"]


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(
        RemovePodsViolatingTopologySpreadConstraint, constraints=["DoNotSchedule", "ScheduleAnyway"]
    )
