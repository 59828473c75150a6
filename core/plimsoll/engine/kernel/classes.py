"""The best rows with the compiled kernel where nodes of a class have equal points besides their totals.

Rows are summarized in blocks, each class on its own: its best total there, the rows that have it, and its
feasible rows. A changed row renews its block, and a search reads the summaries, not the rows.

Axis letters: N nodes, B blocks, C classes.
"""

from array import array
from collections.abc import Sequence
from math import prod
from typing import overload

import numpy as np
from numpy.typing import NDArray

from plimsoll.engine.kernel.library import Kernel, address
from plimsoll.framework import IntArray
from plimsoll.framework.node_classes import NodeAxis

#: Word indexes in the structure ``classed``, and where the axes begin.
FAILED, TOTALS, HIGHEST, KNOWN, AXES = 0, 1, 13, 16, 18

#: Words of an axis.
OF_AXIS = 3

#: Maximum number of classes (``MOST_CLASSES`` in ``kernel.c``): so many take 8 bytes a node.
MOST_CLASSES = 64

#: Maximum number of cells of the grid that the axes make.
MOST_CELLS = 2_048

#: Rows of a block: two to the power of it.
SHIFT = 7


class CompiledClasses:
    """The summaries of one template.

    Args:
        nodes: Number of nodes.
        sizes: Number of values on each axis; their product is at most MOST_CELLS.
        classes: Number of classes for which there is room, at most MOST_CLASSES.
    """

    __slots__ = (
        "_arrays",
        "_at",
        "_cells",
        "_feasible",
        "_kernel",
        "_places",
        "_points",
        "_read",
        "_words",
        "sizes",
    )

    def __init__(self, kernel: Kernel, nodes: int, sizes: tuple[int, ...], classes: int) -> None:
        blocks = (nodes >> SHIFT) + 1
        self.sizes = sizes
        self._kernel = kernel
        best = np.empty((blocks, classes), dtype=np.int64)
        counts = np.empty((2, blocks, classes), dtype=np.int32)
        batches = np.zeros(blocks, dtype=np.int64)
        numbers = np.full(prod(sizes), -1, dtype=np.int16)
        self._feasible, self._points, self._cells = np.zeros((3, classes), dtype=np.int64)
        self._arrays = best, counts, batches, numbers
        words = [0, 0, nodes, SHIFT, blocks, classes, address(best), address(counts[0]), address(counts[1])]
        words += (address(self._feasible), address(self._points), address(batches), 0, 0, address(numbers))
        words += (address(self._cells), 0, len(sizes))
        for axis, size in enumerate(sizes):
            words += (0, size, prod(sizes[axis + 1 :]))
        self._words = array("q", words)
        self._at = self._words.buffer_info()[0]
        self._places: tuple[int, ...] = ()
        self._read: tuple[object, ...] = ()

    @property
    def feasible(self) -> IntArray:
        """Shape of ``sizes``: the feasible nodes in each cell."""
        found: IntArray = np.zeros(self.sizes, dtype=np.int64)
        known = self._words[KNOWN]
        found.reshape(-1)[self._cells[:known]] = self._feasible[:known]
        return found

    def reads(self, failed: NDArray[np.int16], totals: IntArray, axes: Sequence[NodeAxis]) -> bool:
        """Read these columns from now on; returns whether they are the arrays as before."""
        words = self._words
        places = address(failed), address(totals), *[address(each.values) for each in axes]
        if places == self._places:
            return True
        words[FAILED], words[TOTALS] = places[:2]
        words[AXES::OF_AXIS] = array("q", places[2:])
        self._places, self._read = places, (failed, totals, axes)
        return False

    def suits(self, axes: Sequence[NodeAxis]) -> bool:
        """Whether these are as many axes as there are, of the same sizes."""
        return len(axes) == len(self.sizes) and all(
            axis.size is None or axis.size == size for axis, size in zip(axes, self.sizes, strict=True)
        )

    def renew(self, span: tuple[int, int] | None) -> bool:
        """Renew the blocks of the rows of ``span``, or all; False if some row has no cell or class."""
        if span is None:
            return not self._kernel.classes_all(self._at)
        return not self._kernel.classes_rows(self._at, *span)

    def best(self, points: IntArray) -> "tuple[BestOfClasses, int]":
        """The rows with the highest sum of total and points, and that sum; ``points`` as ``feasible``."""
        known = self._words[KNOWN]
        self._points[:known] = points.reshape(-1)[self._cells[:known]]
        count = self._kernel.classes_best(self._at)
        return BestOfClasses(self, count), self._words[HIGHEST]

    def row(self, position: int) -> int:
        """The row at that position among the best, ascending, until the next renewal."""
        found: int = self._kernel.classes_row(self._at, position)
        return found


class BestOfClasses(Sequence[int]):
    """The best rows, ascending; each is found when it is asked for. Valid until the next renewal."""

    __slots__ = ("_classes", "_count")

    def __init__(self, classes: CompiledClasses, count: int) -> None:
        self._classes = classes
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[int]: ...
    def __getitem__(self, position: int | slice) -> int | Sequence[int]:
        """One of them, or some."""
        if isinstance(position, slice):
            return [self._classes.row(each) for each in range(self._count)[position]]
        return self._classes.row(range(self._count)[position])
