"""LoadTerms are the part of a placement problem that is about what nodes and pods use.

Q quantities in order: expected use of cpu and memory, peak of cpu and memory. Units: billionths of a core and
bytes; percentage points where said.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How many quantities are levels; the others are peaks.
LEVELS = 2


@dataclass(frozen=True, slots=True)
class LoadTerms:
    """What is used, and what of it is too much; T templates, S stocks, N nodes, Q quantities.

    Attributes:
        arriving: Shape (T, Q): of a pod that arrives.
        leaving: Shape (S, Q): of a pod that leaves; those of a stock in the mean.
        used: Shape (N, Q): at present.
        room: Shape (N, Q): what the node has.
        lines: Shape (N, Q): what it may use for something to arrive; infinite where nothing is asked.
        hot: Shape (N, 2): the level above which each point is to be mended; infinite where none is.
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
        """Shape (N, 2): levels when pods have moved; ``stocks`` are places on the S axis with their nodes."""
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
        """Shape (2,): percent that the measured nodes use together; no move changes it."""
        used, room = self.level[self.counts].sum(axis=0), self.room[self.counts, :LEVELS].sum(axis=0)
        total: Floats = 100.0 * used / np.maximum(room, 1e-9)
        return total

    def excess(self, level: Floats) -> float:
        """Points above what is too much, of all nodes together."""
        return float(self.points(np.maximum(level - self.hot, 0.0)).sum())

    def distance(self, level: Floats) -> float:
        """Points between each measured node and the mean, averaged over the evened levels."""
        evened = list(self.evened)
        away = np.abs(self.points(level) - self.mean)[:, evened][self.counts]
        return float(away.mean(axis=1).sum())
