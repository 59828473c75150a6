"""Which of several equal pods is cheapest to move."""

from plimsoll.framework.strategy_context import is_serving
from plimsoll.model.pod_info import PodInfo

#: Lower goes first when a ReplicaSet shrinks, and here (Kubernetes v1.36, KEP-2255).
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def eviction_cost(pod: PodInfo) -> tuple[int, int, bool, int, float]:
    """Sort key, the cheapest first: low priority, low deletion cost, not serving, restless, young."""
    status = pod.pod.status
    restarts = sum(each.restart_count for each in status.container_statuses)
    started = status.start_time.timestamp() if status.start_time is not None else float("inf")
    return (pod.priority, deletion_cost(pod), is_serving(pod), -restarts, -started)


def deletion_cost(pod: PodInfo) -> int:
    """The annotation's number; 0 without one that is a number."""
    text = pod.pod.metadata.annotations.get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0
