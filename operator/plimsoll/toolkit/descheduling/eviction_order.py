"""Pods of equal rank take turns: of each owner on each node a share, instead of all of one by name.

Upstream sorts them unstably, so that on average each group gives its share too; what is drawn here lies
in the middle of what it may do, and is the same each time.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.priority import importance
from plimsoll.toolkit.descheduling.eviction_cost import cheapest_first


class Comparable(Protocol):
    """What can be sorted and counted."""

    def __lt__(self, other: Any, /) -> bool:
        """Whether it comes first."""

    def __hash__(self) -> int:
        """As of all that is counted."""


RankT = TypeVar("RankT", bound=Comparable)


def in_turn(ranked: Iterable[tuple[RankT, PodInfo]], context: StrategyContext) -> list[PodInfo]:
    """Pods ascending by rank; exactly, equals of each owner and node are spread evenly, else as they come.

    Args:
        ranked: Pods with their ranks.
        context: Whether upstream's decisions are to be reproduced.
    """
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
