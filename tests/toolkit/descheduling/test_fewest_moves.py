"""The order of pods that leave a node: the smallest that relieves it first."""

from types import SimpleNamespace
from typing import Any

from plimsoll.testing.builders import a_node
from plimsoll.toolkit.descheduling.fewest_moves import FewestMoves
from strategies.builders import a_context, pods_on


def test_a_pod_relieves_a_node_only_of_what_it_uses() -> None:
    """One that uses much of one resource and nothing of the other relieves of neither enough."""
    used = {
        "n-0": {"cpu": 20},
        "n-1": {"cpu": 15, "memory": 2},
        "n-2": {"cpu": 10, "memory": 2},
        "n-3": {"cpu": 9, "memory": 2},
        "n-4": {"cpu": 5, "memory": 2},
    }
    context = a_context([a_node("n")], pods_on("n", 5))
    usage: Any = SimpleNamespace(pod=lambda pod, _: used[pod.name])
    moves = FewestMoves(usage, lambda _: {"cpu": 10, "memory": 1}, ())

    order: Any = moves.order(SimpleNamespace(), context.pods("n"), "over-used", context)  # type: ignore[arg-type] # only passed on

    assert [pod.name for pod in order] == ["n-2", "n-1", "n-3", "n-4", "n-0"]
