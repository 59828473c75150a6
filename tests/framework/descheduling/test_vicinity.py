"""Pods near a move count as they do in the whole cluster."""

import pytest

from plimsoll.framework.descheduling.complaints import Vicinity, pods_near
from plimsoll.testing.builders import a_node, a_pod
from strategies.builders import a_context

NODES = [a_node("n1"), a_node("n2"), a_node("n3")]
PODS = [
    a_pod("here", node="n1"),
    a_pod("there", node="n2"),
    a_pod("aside", node="n3"),
    a_pod("ended", node="n1", status={"phase": "Failed"}),
    a_pod("waiting"),
]


@pytest.mark.parametrize("name", [each.name for each in PODS])
def test_a_pod_counts_near_a_move_if_it_counts_in_the_cluster(name: str) -> None:
    """Placed, not ended, and on a node under consideration."""
    context = a_context(NODES, PODS, only={"n1", "n2"})
    pods = {pod.name: pod for pod in (*context.cluster.pods.values(), *context.unplaced)}

    found = [pod.name for pod, _ in pods_near(context, Vicinity((pods[name],), frozenset({"n1"})))]

    assert found == [each.name for each, _ in pods_near(context, None) if each.name == name]
    assert found == ([name] if name in ("here", "there") else [])
