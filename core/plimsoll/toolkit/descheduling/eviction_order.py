"""Orders pods for eviction by importance and cost, and interleaves equals by owner and node.

Upstream's sort is unstable, so that on average each group contributes its share as well. The order here is
one of upstream's possible orders, near their average, and deterministic.
"""

from collections import Counter
from collections.abc import Iterable
from math import inf
from typing import Any, Protocol, TypeVar

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.pod_indexes import is_serving
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.priority import PREFER_NO_EVICTION, importance
from plimsoll.toolkit.descheduling.disruption_signals import cost


class Comparable(Protocol):
    """A sortable and hashable value."""

    def __lt__(self, other: Any, /) -> bool:
        """Whether it sorts before the other value."""

    def __hash__(self) -> int:
        """A hash, equal for equal values."""


RankT = TypeVar("RankT", bound=Comparable)


def in_turn(ranked: Iterable[tuple[RankT, PodInfo]], context: StrategyContext) -> list[PodInfo]:
    """Pods ascending by rank; equals keep their order, or in exact mode interleave by owner and node."""
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
    """Pods in descheduler's order; in exact mode, equals are interleaved, else the cheapest goes first."""
    if context.is_exact:
        return in_turn(((importance(pod.pod), pod) for pod in pods), context)
    return sorted(pods, key=cheapest_first)


def cheapest_candidates_first(found: list[Candidate], context: StrategyContext) -> list[Candidate]:
    """Candidates of one node, the least important and cheapest first; in exact mode as listed."""
    return found if context.is_exact else sorted(found, key=lambda each: cheapest_first(each.pod))


def _group(pod: PodInfo) -> tuple[str, str, tuple[str, ...]]:
    owners = tuple(owner.uid for owner in pod.pod.metadata.owner_references)
    return pod.pod.node_name, pod.namespace, owners


EvictionCost = tuple[int, bool, int, bool, int, float]


def eviction_cost(pod: PodInfo) -> EvictionCost:
    """A sort key: the cheapest pod first.

    Criteria in order: low priority, no preference against eviction, low deletion cost, not serving, many
    restarts, young.
    """
    status, annotations, restarts = pod.pod.status, pod.pod.metadata.annotations, 0
    for each in status.container_statuses:
        restarts += each.restart_count
    started = status.start_time.timestamp() if status.start_time is not None else inf
    spared = PREFER_NO_EVICTION in annotations
    return (pod.priority, spared, cost(annotations), is_serving(pod), -restarts, -started)


def cheapest_first(pod: PodInfo) -> tuple[tuple[bool, int, int, bool], EvictionCost, str]:
    """A sort key: descheduler's order (priority, QoS class, preference against eviction), then the cost."""
    return importance(pod.pod), eviction_cost(pod), pod.key


def deletion_cost(pod: PodInfo) -> int:
    """The cost that an annotation gives it; 0 without one."""
    return cost(pod.pod.metadata.annotations)
