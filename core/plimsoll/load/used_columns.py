"""Keeps the pods' use on each node in the units of the cluster's columns, for scores.

A node that is not measured counts with the median share of the measured ones, or with the expected use of its
pods if that is more.

Axis letter: N nodes, as rows of the cluster. Units: thousandths of a core, rounded up, and bytes.
"""

from collections.abc import Hashable
from itertools import count

import numpy as np

from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.model.columns.columns import BoolArray, IntArray

#: Numbers for arrays of columns, as a new array may have a former one's address.
SERIALS = count()

PER_UNIT = np.array(PER_COLUMN_UNIT, dtype=np.int64)


class UsedColumns:
    """The columns of one load book.

    Attributes:
        columns: Shape (2, capacity) int64, one resource after the other; the array stays until rows move.
        serial: The array's number: no other one in the process has the same.
        mark: The mark of the nodes from which the floors were computed.
    """

    __slots__ = ("_cells", "_floors", "_loads", "columns", "mark", "serial")

    def __init__(self, capacity: int) -> None:
        self.columns: IntArray = np.zeros((2, capacity), dtype=np.int64)
        #: shape (2, capacity), in the book's units: the least that a node counts with, and its load
        self._floors: IntArray = np.zeros((2, capacity), dtype=np.int64)
        self._loads: IntArray = np.zeros((2, capacity), dtype=np.int64)
        self.mark: Hashable = None
        self.serial = next(SERIALS)
        self._cells = self._views()

    def add(self, row: int, cpu: int, memory: int) -> None:
        """Add a pod's use on that node; negative to subtract it."""
        # Views of the arrays: this runs for each pod, and they take a third of the time of numpy's items.
        cpus, memories, cpu_loads, memory_loads, cpu_floors, memory_floors = self._cells
        cpu += cpu_loads[row]
        memory += memory_loads[row]
        cpu_loads[row], memory_loads[row] = cpu, memory
        cpus[row] = -(-max(cpu, cpu_floors[row]) // PER_COLUMN_UNIT[0])
        memories[row] = max(memory, memory_floors[row])

    def renew_all(self, system: IntArray, sums: IntArray) -> None:
        """Renew all nodes at a refresh; shapes (capacity, ...)."""
        self._loads[:] = (system + sums[:, :2]).T
        self.columns[:] = -(-np.maximum(self._loads, self._floors) // PER_UNIT[:, None])

    def level(
        self,
        mark: Hashable,
        middle: tuple[int, int],
        room: IntArray,
        is_measured: BoolArray,
        sums: tuple[IntArray, IntArray],
    ) -> None:
        """Count unmeasured nodes as used like the ``middle``, in percent, and store the mark.

        ``room`` and ``is_measured`` are of all N nodes, the former in the cluster's units; ``sums`` are as
        for ``renew_all``.
        """
        self.mark = mark
        floors = room * PER_UNIT // 100 * np.array(middle)
        floors[is_measured] = 0
        self._floors[:, : len(room)] = np.maximum(floors, 0).T
        self.renew_all(*sums)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self.columns = np.zeros((2, capacity), dtype=np.int64)
        self._floors = np.zeros((2, capacity), dtype=np.int64)
        self._loads = np.zeros((2, capacity), dtype=np.int64)
        self.mark = None
        self.serial = next(SERIALS)
        self._cells = self._views()

    def fork(self) -> "UsedColumns":
        """An independent copy."""
        twin = UsedColumns(0)
        twin.columns, twin.mark = self.columns.copy(), self.mark
        twin._floors, twin._loads = self._floors.copy(), self._loads.copy()
        twin._cells = twin._views()
        return twin

    def _views(self) -> tuple[memoryview, ...]:
        """Two rows each of ``columns``, the loads and the floors."""
        return tuple(memoryview(row) for rows in (self.columns, self._loads, self._floors) for row in rows)
