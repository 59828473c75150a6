"""PrioritySort: sort the active queue by priority, highest first, then by waiting time, longest first.

Formula: ascending ``(-priority, timestamp)``; the priority is ``spec.priority``, 0 when unset.
Units: the timestamp is the time, in seconds, at which the pod entered the queue.
Edges: a retried pod gets a new timestamp and follows its peers.
Source: kube-scheduler v1.36, ``queuesort/priority_sort.go``.
Differs: not at all.
"""

from typing import ClassVar

from plimsoll import framework as fwk


class PrioritySort(fwk.QueueSortPlugin):
    """Sort the active queue by priority, then by age."""

    name: ClassVar = "PrioritySort"

    def sort_key(self, pod: fwk.PodInfo, timestamp: float) -> tuple[int, float]:
        """Pods with lower keys go first."""
        return -pod.priority, timestamp
