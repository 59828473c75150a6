"""Holds the part of a placement problem that concerns the load of nodes and pods.

Q quantities in order: expected use of cpu and memory, peak of cpu and memory. Units: billionths of a core and
bytes; percentage points where said.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Number of quantities that are levels; the others are peaks.
LEVELS = 2


class LoadTerms(Struct, frozen=True):
    """Loads and their limits; T templates, S stocks, N nodes, Q quantities.

    Attributes:
        arriving: Shape (T, Q): of one arriving pod.
        leaving: Shape (S, Q): of one leaving pod; the mean of its stock.
        used: Shape (N, Q): present use.
        room: Shape (N, Q): the node's allocatable.
        lines: Shape (N, Q): the most that it may use for a pod to arrive; infinite without a line.
        hot: Shape (N, 2): the level above which each point is a violation; infinite without one.
        counts: Shape (N,): whether the node is measured, and evened out with the others.
        evened: Indices of the levels that SmallestSpread evens out.
    """

    arriving: Floats
    leaving: Floats
    used: Floats
    room: Floats
    lines: Floats
    hot: Floats
    counts: NDArray[np.bool_]
    evened: tuple[int, ...]

    def after(self, leaving: Ints, arriving: Ints, stocks: list[tuple[int, int]]) -> Floats:
        """Shape (N, 2): levels after moves; ``stocks`` are positions on the S axis with their nodes."""
        level = self.used[:, :LEVELS] + arriving.T @ self.arriving[:, :LEVELS]
        for stock, node in stocks:
            level[node] -= leaving[stock] * self.leaving[stock, :LEVELS]
        return np.asarray(level, dtype=np.float64)

    @property
    def level(self) -> Floats:
        """Shape (N, 2): levels at present."""
        return self.used[:, :LEVELS]

    def points(self, level: Floats) -> Floats:
        """Shape (N, 2): percent of each node."""
        shares: Floats = 100.0 * level / np.maximum(self.room[:, :LEVELS], 1e-9)
        return shares

    @property
    def mean(self) -> Floats:
        """Shape (2,): percent that the measured nodes use together; moves do not change it."""
        used, room = self.level[self.counts].sum(axis=0), self.room[self.counts, :LEVELS].sum(axis=0)
        total: Floats = 100.0 * used / np.maximum(room, 1e-9)
        return total

    def excess(self, level: Floats) -> float:
        """Points above the hot levels, summed over all nodes."""
        return float(self.points(np.maximum(level - self.hot, 0.0)).sum())

    def distance(self, level: Floats) -> float:
        """Points between each measured node and the mean, averaged over the evened levels."""
        evened = list(self.evened)
        away = np.abs(self.points(level) - self.mean)[:, evened][self.counts]
        return float(away.mean(axis=1).sum())
