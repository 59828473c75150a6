"""Chooses targets of directed moves by best fit: the node with the least remaining room.

Remaining room is measured in shares of the largest node. Resources that the pod does not request and few
nodes have (GPUs, other scalar resources) count eightfold, so that a pod without GPUs prefers nodes without
free ones.

Axis letters: N nodes, R resources.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.model.columns.cluster import FIXED_RESOURCES, PODS
from plimsoll.model.columns.columns import BoolArray, IntArray
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate

SCARCE = 8.0

Allowed = Callable[[IntArray, IntArray], BoolArray]
"""Which of some nodes may take a pod: their free amounts, shape (nodes, R), and its request, shape (R,)."""


class BestFit:
    """Finds directed moves one by one on the current cluster and accounts for them without executing them.

    The search covers the nodes that ``allowed`` selects; by default all that are feasible.
    """

    def __init__(self, context: StrategyContext, allowed: Allowed | None = None) -> None:
        snapshot = context.snapshot
        self._context = context
        self._allowed = allowed
        self.free: IntArray = snapshot.allocatable - snapshot.requested
        largest = np.maximum(snapshot.allocatable.max(axis=0, initial=1), 1)
        self._weights: NDArray[np.float64] = 1.0 / largest
        self._weights[len(FIXED_RESOURCES) :] *= SCARCE
        self._weights[PODS] = 0.0
        self._nowhere: set[PodTemplate] = set()

    def copy(self) -> "BestFit":
        """An independent copy, to try other moves from here."""
        twin = object.__new__(BestFit)
        twin._context = self._context
        twin._allowed = self._allowed
        twin._weights = self._weights
        twin._nowhere = self._nowhere  # shared by all copies: room only shrinks
        twin.free = self.free.copy()
        return twin

    def knows_no_place_for(self, pod: PodInfo) -> bool:
        """Whether the search for a target has failed for an equal pod."""
        return pod.template in self._nowhere

    def move(self, pod: PodInfo, source: int, reason: str) -> Candidate | None:
        """Move a pod from a row to its best fit, and account for it there; None if it fits nowhere."""
        if pod.template in self._nowhere:
            return None
        rows = self._context.prospects.feasible(pod)
        if rows is None:
            return None
        if not len(rows):
            self._nowhere.add(pod.template)
            return None
        wanted = self._context.snapshot.requests_row(pod.requests)
        rows = rows[rows != source]
        free = self.free[rows]
        fits: BoolArray = (free >= wanted).all(axis=1, where=wanted > 0)
        if self._allowed is not None:
            fits &= self._allowed(free, wanted)
        rows, free = rows[fits], free[fits]
        if not len(rows):
            return None
        left = (free - wanted) @ self._weights
        nodes = self._context.cluster.nodes
        target = min(rows[left == left.min()].tolist(), key=lambda row: nodes[row].name)
        self.free[target] -= wanted
        return Candidate(pod, nodes[source].name, reason, nodes[target].name)
