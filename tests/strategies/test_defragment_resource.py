"""DefragmentResource: blocks gained by packing, none lost, and rest when none can be gained."""

from typing import Any

import pytest

from plimsoll.framework import ConfigurationError
from plimsoll.framework.descheduling.registry import StrategyRegistry
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.moves import EvictionPlan
from plimsoll.strategies.defragment_resource import DefragmentResource, DefragmentResourceArgs
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import a_strategy
from strategies.making_room import moves_of, planned

GPU = "example.com/gpu-milli"


def gpus(name: str, count: int) -> Node:
    return a_node(name, cpu="32", allocatable={GPU: count * 1000})


def user(name: str, node: str, milli: int, **kwargs: Any) -> Pod:
    return a_pod(name, node=node, owner="ReplicaSet/small", requests={GPU: milli}, **kwargs)


def packed(
    nodes: list[Node], pods: list[Pod], block: dict[str, Any] | None = None, **args: Any
) -> EvictionPlan:
    return planned(a_strategy(DefragmentResource, block=block or {GPU: 1000}, **args), nodes, pods)


class TestConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = DefragmentResource(DefragmentResourceArgs(block={"cpu": "1"}))
    nodes = ({"cpu": "1", "memory": "16Gi", "pods": 110, "taints": (), "unschedulable": False},)
    pods = ({"cpu": "500m", "memory": "1Mi"},)


def test_two_halves_become_a_whole() -> None:
    """Each node has 500 of 1,000 free: no block. Moved together one node has 1,000: a block."""
    nodes, pods = [gpus("a", 1), gpus("b", 1)], [user("x", "a", 500), user("y", "b", 500)]

    found = packed(nodes, pods)

    assert moves_of(found) == [("x", "a", "b")]
    assert found.moves[0].reason == f"frees a block of 1000 {GPU}"


def test_a_packed_cluster_stays_untouched() -> None:
    """What the first plan leaves: b is full, a is free; there is no block to gain."""
    nodes, pods = [gpus("a", 1), gpus("b", 1)], [user("x", "b", 500), user("y", "b", 500)]

    assert moves_of(packed(nodes, pods)) == []


def test_no_block_is_gained_by_losing_another() -> None:
    """A would gain one and b, which has exactly one free, would lose it."""
    nodes, pods = [gpus("a", 1), gpus("b", 2)], [user("x", "a", 500), user("y", "b", 1000)]

    assert moves_of(packed(nodes, pods)) == []


def test_a_block_may_need_several_resources() -> None:
    """A GPU without cpu is of no use: node a has a GPU free and 2 cpus, the block takes 8."""
    nodes = [gpus("a", 2), a_node("plain", cpu="32")]
    pods = [a_pod("hog", cpu="30", node="a", owner="ReplicaSet/hog")]

    assert moves_of(packed(nodes, pods, block={GPU: 1000, "cpu": "8"})) == [("hog", "a", "plain")]
    assert moves_of(packed(nodes, pods)) == []  # by the GPUs alone nothing is to be gained


def test_a_block_needs_no_room_for_another_pod_unless_it_says_so() -> None:
    """Node b has a block free, and room for one more pod, which takes none of it."""
    nodes = [gpus("a", 1), a_node("b", cpu="32", pods=1, allocatable={GPU: 1500})]
    pods = [user("x", "a", 500)]

    assert moves_of(packed(nodes, pods)) == [("x", "a", "b")]
    assert moves_of(packed(nodes, pods, block={GPU: 1000, "pods": 1})) == []


def test_a_block_takes_as_many_moves_as_it_lacks() -> None:
    """Node a lacks 800 of its block, two pods of 400; node b has 900 free, which make none."""
    nodes = [gpus("a", 1), gpus("b", 2)]
    pods = [user("x0", "a", 400), user("x1", "a", 400), user("y", "b", 1100)]

    assert moves_of(packed(nodes, pods)) == [("x0", "a", "b"), ("x1", "a", "b")]
    assert moves_of(packed(nodes, pods, maxMovesPerBlock=1)) == []


def test_the_order_of_arrival_decides_nothing() -> None:
    """Ties fall by name."""
    nodes = [gpus(name, 1) for name in "abcd"]
    pods = [user(f"x{name}", name, 500) for name in "abcd"]

    assert moves_of(packed(nodes, pods)) == moves_of(packed(nodes[::-1], pods[::-1]))


def test_pods_of_higher_priority_than_said_stay() -> None:
    """The default is 0."""
    nodes = [gpus("a", 1), gpus("b", 1)]
    pods = [user("x", "a", 500, priority=1), user("y", "b", 500, priority=1)]

    assert moves_of(packed(nodes, pods)) == []
    assert len(packed(nodes, pods, highestPriority=1).moves) == 1


@pytest.mark.parametrize("block", [{}, {"cpu": "0"}, {"cpu": "-1"}, {"cpu": "lots"}])
def test_a_block_of_nothing_is_refused(block: dict[str, Any]) -> None:
    """With the argument's name."""
    with pytest.raises(ConfigurationError, match="block"):
        StrategyRegistry([DefragmentResource]).build("DefragmentResource", {"block": block}, "here")
