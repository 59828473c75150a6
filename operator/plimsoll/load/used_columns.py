"""UsedColumns are what pods use on each node in the units of the cluster's columns, for scores.

A node that is not measured counts with the median share of those that are, or with what its pods are expected
to use if that is more.

Axis letter: N nodes, as rows of the cluster. Units: thousandths of a core, rounded up, and bytes.
"""

from collections.abc import Hashable

import numpy as np

from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.model.columns.columns import BoolArray, IntArray, grown

PER_UNIT = np.array(PER_COLUMN_UNIT, dtype=np.int64)


class UsedColumns:
    """The columns of one load book.

    Attributes:
        columns: Shape (2, capacity) int64, one resource after the other; the array stays until rows move.
        mark: Of what the floors were computed from.
    """

    __slots__ = ("_floors", "columns", "mark")

    def __init__(self, capacity: int) -> None:
        self.columns: IntArray = np.zeros((2, capacity), dtype=np.int64)
        self._floors: IntArray = np.zeros((capacity, 2), dtype=np.int64)  #: in the book's units
        self.mark: Hashable = None

    def renew(self, row: int, system: IntArray, sums: IntArray) -> None:
        """A pod came to that node or left it."""
        floors, columns = self._floors, self.columns
        cpu = max(system.item(row, 0) + sums.item(row, 0), floors.item(row, 0), 0)
        columns[0, row] = -(-cpu // PER_COLUMN_UNIT[0])
        columns[1, row] = max(system.item(row, 1) + sums.item(row, 1), floors.item(row, 1), 0)

    def renew_all(self, system: IntArray, sums: IntArray) -> None:
        """A refresh; shapes (capacity, ...)."""
        used = np.maximum(system + sums[:, :2], self._floors)
        self.columns[:] = (-(-np.maximum(used, 0) // PER_UNIT)).T

    def level(
        self,
        mark: Hashable,
        middle: tuple[int, int],
        room: IntArray,
        is_measured: BoolArray,
        sums: tuple[IntArray, IntArray],
    ) -> None:
        """Take nodes without measurement for as busy as the ``middle``, in percent, and remember the mark.

        ``room`` and ``is_measured`` are of all N nodes, the former in the cluster's units; ``sums`` are as
        for ``renew_all``.
        """
        self.mark = mark
        floors = room * PER_UNIT // 100 * np.array(middle)
        floors[is_measured] = 0
        self._floors[: len(room)] = floors
        self.renew_all(*sums)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self.columns = np.zeros((2, capacity), dtype=np.int64)
        self._floors = grown(self._floors, capacity)
        self.mark = None

    def fork(self) -> "UsedColumns":
        """An independent copy."""
        twin = UsedColumns(0)
        twin.columns, twin._floors, twin.mark = self.columns.copy(), self._floors.copy(), self.mark
        return twin
