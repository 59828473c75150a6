"""Scores with the compiled kernel: one template's totals, of all rows or of some, and the best rows."""

from array import array

import numpy as np
from numpy.typing import NDArray

from plimsoll.engine.kernel.library import ColumnAddresses, address
from plimsoll.framework import IntArray
from plimsoll.framework.resource_rules import AllocationRule, BalanceRule, UsageRule
from plimsoll.model.columns.columns import RowArray

#: Word indexes in the structure ``points``.
FAILED, HIGHEST = 0, 2


class CompiledPoints:
    """One template's weighted sums, and the best rows by them.

    Args:
        columns: The cluster's columns, with the kernel.
        base: Added to every total; shape (N,) or one number.
        nodes: Number of nodes.
        allocation: How room is scored, and its weight in the total; None: not scored.
        balance: How balance is scored, likewise.
        usage: How the pods' usage is scored, likewise.

    Attributes:
        totals: Shape (N,).
    """

    __slots__ = ("_arrays", "_at", "_best", "_failed", "_kernel", "_nodes", "_words", "totals")

    def __init__(
        self,
        columns: ColumnAddresses,
        base: int | IntArray,
        nodes: int,
        allocation: tuple[AllocationRule, int] | None,
        balance: tuple[BalanceRule, int] | None,
        usage: tuple[UsageRule, int] | None = None,
    ) -> None:
        allocatable, requested, nonzero, step = columns.current()
        assert columns.kernel is not None
        self._kernel = columns.kernel
        self._nodes = nodes
        self._failed: NDArray[np.int16] | None = None
        both = np.empty((2, nodes), dtype=np.int64)
        start = address(both)
        self.totals: IntArray = both[0]
        self._best: RowArray = both[1]
        known = 0 if isinstance(base, int) else address(base)
        words = [0, 0, 0, start, start + 8 * nodes, known, base if isinstance(base, int) else 0]
        resources = () if allocation is None else allocation[0].resources
        if allocation is None:
            words += (0, 0, 0, 0)
        else:
            rule, weight = allocation
            words += (len(resources), rule.is_least, sum(each.weight for each in resources), weight)
        if balance is None:
            words += (0,) * 9
        else:
            words.append(balance[1])
            for axis, amount in balance[0].resources:
                words += (allocatable + axis * step, requested + axis * step, amount, 0)
        if usage is None:
            words += (0,) * 10
        else:
            rule_, weight = usage
            start, row = address(rule_.used), rule_.used.strides[0]
            words += (sum(rule_.weights), weight)
            for at, axis in enumerate(rule_.axes):
                words += (allocatable + axis * step, start + at * row, rule_.amounts[at], rule_.weights[at])
        for axis, minimum, amount, weight in resources:
            taken = requested + axis * step if minimum is None else nonzero + minimum * step
            words += (allocatable + axis * step, taken, amount, weight)
        self._arrays = columns.arrays, base, None if usage is None else usage[0].used
        self._words = array("q", words)
        self._at = self._words.buffer_info()[0]

    def score_all(self) -> None:
        """Renew the totals of all rows."""
        self._kernel.points_all(self._at, self._nodes)

    def score(self, span: tuple[int, int]) -> None:
        """Renew the totals of ``span``: the rows' address and number."""
        self._kernel.points_rows(self._at, *span)

    def best_of_all(self, failed: NDArray[np.int16]) -> tuple[RowArray, int]:
        """The best feasible rows, ascending, and their total; ``failed`` has shape (N,)."""
        if failed is not self._failed:
            self._failed = failed
            self._words[FAILED] = address(failed)
        count = self._kernel.best_all(self._at, self._nodes)
        return self._best[:count], self._words[HIGHEST]

    def best_again(self, span: tuple[int, int], failed: NDArray[np.int16]) -> tuple[RowArray, int]:
        """The same after some rows have changed, while ``failed`` and the totals of all others have not."""
        if failed is not self._failed:
            return self.best_of_all(failed)
        count = self._kernel.best_rows(self._at, *span)
        return (self._best[:count], self._words[HIGHEST]) if count else self.best_of_all(failed)
