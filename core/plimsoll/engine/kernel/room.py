"""Filters by room with the compiled kernel: one template's codes, of all rows or of some."""

from array import array

import numpy as np
from numpy.typing import NDArray

from plimsoll.engine.kernel.library import ColumnAddresses, address
from plimsoll.framework.resource_rules import RoomRule

#: Word indexes in the structure ``room``.
CODES, NODE_FAILED, FAILED = 2, 3, 4

#: Bits that ``renew`` returns.
SOME_REFUSED, OTHER_VERDICTS = 1, 2


class CompiledRoom:
    """One filter's codes for one template.

    Args:
        columns: The cluster's columns, with the kernel.
        nodes: Number of nodes.
        rule: The wanted amounts.
        position: The filter's position among all filters.

    Attributes:
        codes: Shape (N,): 0 if there is room.
    """

    __slots__ = ("_arrays", "_at", "_failed", "_kernel", "_node_failed", "_nodes", "_words", "codes")

    def __init__(self, columns: ColumnAddresses, nodes: int, rule: RoomRule, position: int) -> None:
        allocatable, requested, _, step = columns.current()
        assert columns.kernel is not None
        self._kernel = columns.kernel
        self._arrays = columns.arrays
        self._nodes = nodes
        self._node_failed: NDArray[np.int16] | None = None
        self._failed: NDArray[np.int16] | None = None
        self.codes = np.empty(nodes, dtype=np.int64)
        words = [len(rule), position, address(self.codes), 0, 0]
        for axis, least, code, hopeless in rule:
            words += (allocatable + axis * step, requested + axis * step, least, code, hopeless)
        self._words = array("q", words)
        self._at = self._words.buffer_info()[0]

    def look_at_all(self) -> bool:
        """Renew the codes of all rows; returns whether some node is rejected."""
        return bool(self._kernel.room_all(self._at, self._nodes))

    def renew(
        self, span: tuple[int, int], node_failed: NDArray[np.int16] | None, failed: NDArray[np.int16]
    ) -> int:
        """Renew codes and verdicts of rows; returns the bits SOME_REFUSED and OTHER_VERDICTS.

        Args:
            span: Address and number of the rows; a row may occur twice.
            node_failed: Shape (N,): the verdicts of the filters that read nodes only; None: none rejects.
            failed: Shape (N,): the verdicts of both; renewed here.
        """
        if failed is not self._failed or node_failed is not self._node_failed:
            self._failed, self._node_failed = failed, node_failed
            self._words[FAILED] = address(failed)
            self._words[NODE_FAILED] = 0 if node_failed is None else address(node_failed)
        told: int = self._kernel.room_rows(self._at, *span)
        return told
