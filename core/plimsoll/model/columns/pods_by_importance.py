"""Keeps the pods of each node as arrays, the most important first, for the choice of victims.

Importance: higher priority first, then the earlier start; a pod that has not started comes last. Rows whose
pods have changed are sorted again on the next request.

Axis letters: N nodes, K places (at least as many as any node has pods), R resources.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from plimsoll.model.columns.columns import BoolArray, IntArray, PodIndex, RowArray, grown
from plimsoll.model.columns.pod_counts import HasCapacity
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo

#: The priority of an empty place: higher than any pod's.
EMPTY = 2**62


def importance(pod: PodInfo) -> tuple[int, float, str]:
    """A sort key: the most important first, equal ones sorted by name, whatever their order of arrival."""
    return -pod.priority, started(pod), pod.key


def started(pod: PodInfo) -> float:
    """The pod's start in seconds since the epoch; later than any time if it has not started."""
    start = pod.pod.status.start_time
    return np.inf if start is None else start.timestamp()


class PodsByImportance(PodIndex):
    """Priorities, starts and requests of placed pods by row and place; a pod index.

    Places come before nodes on the axes, as this makes sums over the few places of many nodes fast.

    Attributes (of the rows requested in ``refresh``):
        priorities: Shape (K, capacity) int64; EMPTY where there is no pod.
        starts: Shape (K, capacity) float64: seconds since the epoch.
        requests: Shape (K, capacity, R) int64.
        pods: The pods by row, in the same order.
        sorted_at: Shape (capacity,) int64: increases when the places of a row are dealt out again.
    """

    def __init__(self, cluster: HasCapacity) -> None:
        self.capacity = cluster.capacity
        self._dirty: set[int] = set()
        self.sorted_at: IntArray = np.zeros(self.capacity, dtype=np.int64)
        self._reset(0, 0)

    def _reset(self, places: int, resources: int) -> None:
        self.priorities: IntArray = np.full((places, self.capacity), EMPTY, dtype=np.int64)
        self.starts: NDArray[np.float64] = np.zeros((places, self.capacity))
        self.requests: IntArray = np.zeros((places, self.capacity, resources), dtype=np.int64)
        self.pods: list[Sequence[PodInfo]] = [()] * self.capacity
        self._shared = False

    def refresh(self, snapshot: Snapshot) -> None:
        """Sort the rows that changed."""
        if not self._dirty and self.requests.shape[2] == len(snapshot.resources):
            return
        whole = snapshot.whole
        rows = [row for row in self._dirty if row < len(whole)]
        sorted_pods = {row: sorted(whole.pods(row), key=importance) for row in rows}
        amounts = {id(pod.requests): pod.requests for pods in sorted_pods.values() for pod in pods}
        vectors = {key: whole.requests_row(requests) for key, requests in amounts.items()}
        resources = len(whole.resources)
        places = max((len(pods) for pods in sorted_pods.values()), default=0)
        self._own()
        if places > len(self.priorities) or resources > self.requests.shape[2]:
            self._widen(max(places, len(self.priorities)), resources)
        for row in self._dirty:
            self.priorities[:, row] = EMPTY
            self.pods[row] = ()
            self.sorted_at[row] += 1
        for row, pods in sorted_pods.items():
            count = len(pods)
            if count:
                self.pods[row] = pods
                self.priorities[:count, row] = [pod.priority for pod in pods]
                self.starts[:count, row] = [started(pod) for pod in pods]
                for place, pod in enumerate(pods):
                    vector = vectors[id(pod.requests)]
                    self.requests[place, row, : len(vector)] = vector
        self._dirty.clear()

    def below(self, priority: int, rows: RowArray) -> BoolArray:
        """The places taken by pods of a lower priority, shape (places in use, len(rows))."""
        lower: BoolArray = self.priorities[:, rows] < priority
        used = np.flatnonzero(lower.any(axis=1))
        return lower[: used[-1] + 1 if len(used) else 0]

    def add(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the signature of indexes
        """Add a placed pod."""
        self._dirty.add(row)

    def remove(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the signature of indexes
        """Remove a pod."""
        self._dirty.add(row)

    def renew(self, before: PodInfo, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the signature of indexes
        """Keep the pod's new state; a pod that has started since comes before those that have not."""
        self._dirty.add(row)

    def move_row(self, source: int, target: int) -> None:
        """Move a node to another row."""
        self._dirty |= {source, target}

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        old = self.priorities, self.starts, self.requests, self.pods
        width = self.capacity
        self.capacity = capacity
        self.sorted_at = grown(self.sorted_at, capacity)
        self._reset(len(old[0]), old[2].shape[2])
        self.priorities[:, :width], self.starts[:, :width], self.requests[:, :width] = old[:3]
        self.pods[:width] = old[3]

    def fork(self) -> "PodsByImportance":
        """A copy that shares its arrays until either side sorts again."""
        twin = PodsByImportance(self)
        twin._dirty = set(self._dirty)
        twin.priorities = self.priorities
        twin.starts = self.starts
        twin.requests = self.requests
        twin.pods = self.pods
        twin.sorted_at = self.sorted_at
        twin._shared = self._shared = True
        return twin

    def _own(self) -> None:
        if self._shared:
            self.priorities = self.priorities.copy()
            self.starts = self.starts.copy()
            self.requests = self.requests.copy()
            self.pods = list(self.pods)
            self.sorted_at = self.sorted_at.copy()
            self._shared = False

    def _widen(self, places: int, resources: int) -> None:
        old = self.priorities, self.starts, self.requests, self.pods
        self._reset(places, resources)
        height = len(old[0])
        self.priorities[:height], self.starts[:height] = old[:2]
        self.requests[:height, :, : old[2].shape[2]] = old[2]
        self.pods = list(old[3])
