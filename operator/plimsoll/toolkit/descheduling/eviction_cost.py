"""Which of several equal pods is cheapest to move."""

from plimsoll.framework.descheduling.context import is_serving
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.priority import PREFER_NO_EVICTION, low_to_high

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
