"""Counts by key and row what few nodes have: memory for each pair that is not 0, and for nothing else.

What pods name freely (host ports) has no column: a pod with two thousand ports would cost one for each.
"""

from collections.abc import Hashable, Mapping

NO_ROWS: Mapping[int, int] = {}


class RowCounts:
    """Counters by key and row; a fork shares them until either side writes."""

    __slots__ = ("_by_row", "_of", "_own_keys", "_own_rows", "_shared")

    def __init__(self) -> None:
        self._of: dict[Hashable, dict[int, int]] = {}
        self._by_row: dict[int, set[Hashable]] = {}
        self._shared = False
        self._own_keys: set[Hashable] = set()
        self._own_rows: set[int] = set()

    def __len__(self) -> int:
        return len(self._of)

    def rows(self, key: Hashable) -> Mapping[int, int]:
        """The count of each row that has some of this key, read-only."""
        return self._of.get(key, NO_ROWS)

    def add(self, key: Hashable, row: int, amount: int) -> None:
        """Add ``amount`` to one count."""
        self._own()
        counts = self._of.get(key)
        if counts is None or key not in self._own_keys:
            counts = self._of[key] = dict(counts or NO_ROWS)
            self._own_keys.add(key)
        keys = self._by_row.get(row)
        if keys is None or row not in self._own_rows:
            keys = self._by_row[row] = set(keys or ())
            self._own_rows.add(row)
        left = counts.get(row, 0) + amount
        if left:
            counts[row] = left
            keys.add(key)
            return
        counts.pop(row, None)
        keys.discard(key)
        if not counts:
            del self._of[key]
            self._own_keys.discard(key)
        if not keys:
            del self._by_row[row]
            self._own_rows.discard(row)

    def move_row(self, source: int, target: int) -> None:
        """Move a row's counts to another row, which has none."""
        for key in tuple(self._by_row.get(source, ())):
            count = self._of[key][source]
            self.add(key, source, -count)
            self.add(key, target, count)

    def fork(self) -> "RowCounts":
        """A copy that shares all counts until either side writes."""
        twin = RowCounts()
        twin._of, twin._by_row = self._of, self._by_row
        twin._shared = self._shared = True
        return twin

    def _own(self) -> None:
        if self._shared:
            self._of, self._by_row = dict(self._of), dict(self._by_row)
            self._own_keys, self._own_rows = set(), set()
            self._shared = False
