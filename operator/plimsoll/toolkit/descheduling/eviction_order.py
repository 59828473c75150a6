"""Orders pods for eviction: by importance and cost, equals interleaved by owner and node.

Upstream sorts them unstably, so that on average each group gives its share too; what is drawn here lies
in the middle of what it may do, and is the same each time.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.pod_indexes import is_serving
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.priority import PREFER_NO_EVICTION, importance, low_to_high


class Comparable(Protocol):
    """What can be sorted and counted."""

    def __lt__(self, other: Any, /) -> bool:
        """Whether it comes first."""

    def __hash__(self) -> int:
        """As of all that is counted."""


RankT = TypeVar("RankT", bound=Comparable)


def in_turn(ranked: Iterable[tuple[RankT, PodInfo]], context: StrategyContext) -> list[PodInfo]:
    """Pods ascending by rank; exactly, equals of each owner and node are spread evenly, else as they come."""
    if not context.is_exact:
        return [pod for _, pod in sorted(ranked, key=lambda each: each[0])]
    listed = sorted(ranked, key=lambda each: (each[0], each[1].key))
    groups = [(rank, _group(pod)) for rank, pod in listed]
    sizes, seen = Counter(groups), Counter[object]()
    places = []
    for rank, group in groups:
        seen[rank, group] += 1
        places.append((rank, seen[rank, group] / (sizes[rank, group] + 1)))
    return [listed[position][1] for position in sorted(range(len(listed)), key=places.__getitem__)]


def least_important_first(pods: Iterable[PodInfo], context: StrategyContext) -> list[PodInfo]:
    """In descheduler's order: exactly, equals in turn; else the cheapest of equals first."""
    if context.is_exact:
        return in_turn(((importance(pod.pod), pod) for pod in pods), context)
    return sorted(pods, key=cheapest_first)


def _group(pod: PodInfo) -> tuple[str, str, tuple[str, ...]]:
    owners = tuple(owner.uid for owner in pod.pod.metadata.owner_references)
    return pod.pod.node_name, pod.namespace, owners


#: Lower goes first when a ReplicaSet shrinks, and here (Kubernetes v1.36, KEP-2255).
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

EvictionCost = tuple[int, bool, int, bool, int, float]


def eviction_cost(pod: PodInfo) -> EvictionCost:
    """Sort key, the cheapest first.

    Low priority, not asking to be spared, low deletion cost, not serving, restless, young.
    """
    status = pod.pod.status
    restarts = sum(each.restart_count for each in status.container_statuses)
    started = status.start_time.timestamp() if status.start_time is not None else float("inf")
    spared = PREFER_NO_EVICTION in pod.pod.metadata.annotations
    return (pod.priority, spared, deletion_cost(pod), is_serving(pod), -restarts, -started)


def cheapest_first(pod: PodInfo) -> tuple[tuple[int, ...], EvictionCost, str]:
    """Sort key: descheduler's order (priority, quality of service, wish to be spared), then the cost."""
    *order, key = low_to_high(pod.pod)
    return tuple(order), eviction_cost(pod), key


def deletion_cost(pod: PodInfo) -> int:
    """The annotation's number; 0 without one that is a number."""
    text = pod.pod.metadata.annotations.get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0
