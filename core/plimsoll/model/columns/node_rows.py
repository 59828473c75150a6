"""A compact set of rows: a Python set while they are few, bits when they are many."""

from collections.abc import Iterator

import numpy as np

from plimsoll.model.columns.columns import RowArray

#: Number of rows up to which a set takes no more memory than bits for fifty thousand nodes.
FEW = 64


class NodeRows:
    """Rows of nodes."""

    __slots__ = ("_bits", "_count", "_few")

    def __init__(self) -> None:
        self._few: set[int] = set()
        self._bits: bytearray | None = None  #: row ``n`` is bit ``n % 8`` of byte ``n // 8``
        self._count = 0  #: number of set bits

    def __len__(self) -> int:
        return len(self._few) if self._bits is None else self._count

    def __iter__(self) -> Iterator[int]:
        return iter(self.array().tolist())

    def array(self) -> RowArray:
        """The rows, ascending."""
        if self._bits is None:
            return np.array(sorted(self._few), dtype=np.intp)
        return np.flatnonzero(np.unpackbits(np.frombuffer(self._bits, dtype=np.uint8), bitorder="little"))

    def add(self, row: int) -> None:
        """Add a row, if it is not in the set."""
        if self._bits is None:
            self._few.add(row)
            if len(self._few) > FEW:
                rows, self._few, self._bits = self._few, set(), bytearray()
                for each in rows:
                    self.add(each)
            return
        byte, bit = row >> 3, 1 << (row & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits)))
        if not self._bits[byte] & bit:
            self._bits[byte] |= bit
            self._count += 1

    def add_all(self, rows: RowArray) -> None:
        """Add rows."""
        if self._bits is None and len(self._few) + len(rows) <= FEW:
            self._few.update(rows.tolist())
            return
        both = np.concatenate((self.array(), rows))
        are_set = np.zeros(int(both.max()) + 1, dtype=np.bool_)
        are_set[both] = True
        self._few, self._bits = set(), bytearray(np.packbits(are_set, bitorder="little"))
        self._count = int(np.count_nonzero(are_set))

    def discard(self, row: int) -> None:
        """Remove a row, if it is in the set."""
        if self._bits is None:
            self._few.discard(row)
            return
        byte, bit = row >> 3, 1 << (row & 7)
        if byte < len(self._bits) and self._bits[byte] & bit:
            self._bits[byte] ^= bit
            self._count -= 1

    def copy(self) -> "NodeRows":
        """An independent copy."""
        twin = NodeRows()
        twin._few = set(self._few)
        twin._bits = None if self._bits is None else bytearray(self._bits)
        twin._count = self._count
        return twin
