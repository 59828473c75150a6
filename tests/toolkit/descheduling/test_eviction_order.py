"""Pods that rank alike take turns where upstream's decisions are reproduced, and are sorted elsewhere."""

import msgspec
import msgspec.structs
import pytest

from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.eviction_order import in_turn
from strategies.builders import a_context

NODES = [a_node("n1"), a_node("n2")]


def order(ranks: dict[str, int], pods: list[Pod], planner: Planner) -> list[str]:
    context = msgspec.structs.replace(a_context(NODES, pods), planner=planner)
    infos = sorted((context.cluster.pods[pod.uid] for pod in pods), key=lambda pod: pod.key)
    return [pod.name for pod in in_turn([(ranks.get(pod.name, 0), pod) for pod in infos], context)]


@pytest.mark.parametrize(
    ("planner", "expected"),
    [
        pytest.param(Planner.UPSTREAM, ["z", "a1", "a2", "b1", "a3", "a4"], id="in-turn"),
        pytest.param(Planner.PROVEN, ["z", "a1", "a2", "a3", "a4", "b1"], id="by-name"),
    ],
)
def test_rank_comes_first_then_each_owner_in_its_share(planner: Planner, expected: list[str]) -> None:
    """Of four pods of one owner and one of another the one stands in the middle; ranks are kept."""
    pods = [a_pod(f"a{n}", node="n1", owner="ReplicaSet/a") for n in range(1, 5)]
    pods += [a_pod("b1", node="n1", owner="ReplicaSet/b"), a_pod("z", node="n1", owner="ReplicaSet/a")]

    assert order({"z": -1}, pods, planner) == expected


def test_nodes_take_turns_too() -> None:
    """The pods of one owner on two nodes are taken from both."""
    pods = [a_pod(f"p{n}", node="n1" if n < 2 else "n2", owner="ReplicaSet/a") for n in range(4)]

    assert order({}, pods, Planner.UPSTREAM) == ["p0", "p2", "p1", "p3"]
