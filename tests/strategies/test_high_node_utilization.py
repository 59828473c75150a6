"""HighNodeUtilization, against the cases of upstream's own tests."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.strategies.high_node_utilization import HighNodeUtilization
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import a_context, a_strategy, an_evictor, evicted, pods_on

EXTENDED = "example.com/x"


def moved(nodes: list[Node], pods: list[Pod], **args: Any) -> list[str]:
    context = a_context(nodes, pods, evictor=an_evictor(nodeFit=True))
    return evicted(a_strategy(HighNodeUtilization, **args), context)


def three(**kwargs: Any) -> list[Node]:
    return [a_node(name, cpu="4", **kwargs) for name in ("n1", "n2", "n3")]


def test_pods_leave_nodes_under_the_line() -> None:
    """30 % is 1200m and 3 pods of 10: a critical pod stays, the plain and the cordoned node's go."""
    nodes = [
        a_node("n1", cpu="4", pods=10),
        a_node("n2", cpu="4", pods=10),
        a_node("n3", cpu="4", pods=10, unschedulable=True),
    ]
    pods = [
        *pods_on("n1", 1, cpu="400m"),
        a_pod("critical", node="n1", owner="ReplicaSet/web", cpu="400m", priority=2_000_000_000),
        *pods_on("n2", 4, cpu="400m"),
        *pods_on("n3", 1, cpu="400m"),
    ]

    assert moved(nodes, pods, thresholds={"cpu": 30, "pods": 30}) == ["n3-0", "n1-0"]


@pytest.mark.parametrize(("exact", "gone"), [(False, ["n3-0"]), (True, ["n3-0", "n1-0"])])
def test_a_node_that_autoscalers_must_not_remove_is_no_source(exact: bool, gone: list[str]) -> None:
    """Descheduler, which does not know the annotation, empties it."""
    mark = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    nodes = [a_node("n1", cpu="4", annotations=mark), a_node("n2", cpu="4"), a_node("n3", cpu="4")]
    pods = [*pods_on("n1", 1, cpu="400m"), *pods_on("n2", 5, cpu="400m"), *pods_on("n3", 1, cpu="300m")]
    context = a_context(nodes, pods, evictor=an_evictor(), exact=exact)

    assert evicted(a_strategy(HighNodeUtilization, thresholds={"cpu": 30}), context) == gone


def test_nothing_happens_when_no_node_or_every_node_is_under() -> None:
    """All under-used and no node to take the pods; or none at all."""
    pods = [pod for name in ("n1", "n2", "n3") for pod in pods_on(name, 3, cpu="400m")]

    assert moved(three(), pods, thresholds={"cpu": 20}) == []
    assert moved(three(), pods, thresholds={"cpu": 40}) == []


@pytest.mark.parametrize(
    ("counts", "args", "told"),
    [
        ((3, 3), {"thresholds": {"cpu": 20}}, "no node is underutilized, nothing to do here"),
        ((3, 3), {"thresholds": {"cpu": 40}}, "all nodes are underutilized, nothing to do here"),
        ((1, 3), {"thresholds": {"cpu": 20}, "numberOfNodes": 1}, "is less or equal than numberOfNodes (1)"),
        ((1, 0), {"thresholds": {"cpu": 20}}, "no node is available to schedule the pods, nothing to do"),
    ],
)
def test_who_does_nothing_says_why(counts: tuple[int, ...], args: dict[str, Any], told: str) -> None:
    """What upstream only logs; a full node that is cordoned takes no pods."""
    nodes = [a_node("n1", cpu="4"), a_node("n2", cpu="4", unschedulable=not counts[1])]
    pods = [*pods_on("n1", counts[0], cpu="400m"), *pods_on("n2", counts[1] or 5, cpu="400m")]
    context = a_context(nodes, pods, exact=False)

    assert evicted(a_strategy(HighNodeUtilization, **args), context) == []
    (remark,) = context.remarks
    assert told in remark


def test_more_nodes_than_the_number_must_be_under() -> None:
    """NumberOfNodes 1 and one under-used node: nothing."""
    pods = [*pods_on("n1", 1, cpu="400m"), *pods_on("n2", 4, cpu="400m"), *pods_on("n3", 4, cpu="400m")]

    assert moved(three(), pods, thresholds={"cpu": 20}, numberOfNodes=1) == []
    assert moved(three(), pods, thresholds={"cpu": 20}) == ["n1-0"]


def test_the_room_of_the_destinations_ends_it() -> None:
    """Destination of 2000m with 1600m used: the first 400m fill it, the low priority goes."""
    nodes = [a_node("n1", cpu="4"), a_node("n2", cpu="2")]
    pods = [
        a_pod("low", node="n1", owner="ReplicaSet/a", cpu="400m", priority=0),
        a_pod("high", node="n1", owner="ReplicaSet/b", cpu="400m", priority=10_000),
        *pods_on("n2", 4, cpu="400m"),
    ]

    assert moved(nodes, pods, thresholds={"cpu": 30}) == ["low"]


def test_a_destination_without_the_resource_takes_nothing() -> None:
    """The room of every resource must be positive."""
    nodes = [a_node("n1", allocatable={EXTENDED: 8}), a_node("n2", cpu="4"), a_node("n3")]
    pods = [*pods_on("n1", 1, requests={EXTENDED: 1}), *pods_on("n2", 4, cpu="900m")]

    assert moved(nodes, pods, thresholds={"cpu": 50, EXTENDED: 40}) == []


def test_only_pods_that_request_a_resource_of_the_thresholds() -> None:
    """OnlyThresholdingResources leaves the others."""
    nodes = [a_node(name, cpu="4", allocatable={EXTENDED: 8}) for name in ("n1", "n2")]
    pods = [
        *pods_on("n1", 1, requests={EXTENDED: 1}),
        *pods_on("n1", 1, prefix="plain-"),
        *pods_on("n2", 4, requests={EXTENDED: 1}),
    ]
    mode = {"evictionModes": ["OnlyThresholdingResources"]}

    assert moved(nodes, pods, thresholds={EXTENDED: 40}) == ["n1-0", "plain-n1-0"]
    assert moved(nodes, pods, thresholds={EXTENDED: 40}, **mode) == ["n1-0"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "no resource threshold"),
        ({"thresholds": {"cpu": -1}}, "range"),
        ({"thresholds": {"cpu": 20}, "evictionModes": ["All"]}, "OnlyThresholdingResources"),
        (
            {"thresholds": {"cpu": 20}, "evictableNamespaces": {"include": ["a"]}},
            "inclusion is not supported",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(args: dict[str, Any], message: str) -> None:
    """With upstream's words where it has them."""
    with pytest.raises(ValidationError, match=message):
        a_strategy(HighNodeUtilization, **args)


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(HighNodeUtilization, thresholds={"cpu": 50, "memory": 50})
