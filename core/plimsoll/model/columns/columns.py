"""Building blocks of the columns: array types, the protocol of pod indexes, the log of changed rows.

Axis letters: N nodes, R resources. All arrays are allocated for ``capacity >= N`` rows; readers get
read-only windows of the first N (or of some) rows from :class:`plimsoll.model.columns.snapshot.Snapshot`.
"""

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from plimsoll.model.heavy_objects import fitting
from plimsoll.model.kinds.pod_info import PodInfo

IntArray = NDArray[np.int64]
IdArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
RowArray = NDArray[np.intp]
PositionArray = NDArray[np.int16]

ScalarT = TypeVar("ScalarT", bound=np.generic)

#: The id of a label value on a node that lacks the label.
ABSENT = -1


def grown(array: NDArray[Any], capacity: int, fill: int = 0) -> NDArray[Any]:
    """A copy of ``array`` with ``capacity`` rows, the new ones filled with ``fill``."""
    bigger = np.full((capacity, *array.shape[1:]), fill, dtype=array.dtype, order="F")
    bigger[: len(array)] = array
    return bigger


def read_only(array: NDArray[ScalarT]) -> NDArray[ScalarT]:
    """A view of an array that cannot be written to, nor be made writable: the memory is not its own."""
    buffer: Any = array
    return np.asarray(memoryview(buffer).toreadonly())


def read_only_rows(rows: Iterable[int]) -> RowArray:
    """An array of rows in memory that is not its own, and that no caller can write to."""
    memory = array("q", rows).tobytes()
    return np.frombuffer(memory, dtype=np.intp) if memory else NO_CHANGES


class PodIndex(Protocol):
    """A summary of the placed pods that is updated at each pod event, never recomputed.

    The cluster builds one on first use by adding every placed pod, then calls it at each change. A row is the
    index of a node; ``move_row`` follows a node whose index changes when another one is removed (its former
    row is empty afterwards). An index that does not depend on rows inherits ``move_row`` and ``grow``.
    """

    def add(self, pod: PodInfo, row: int) -> None:
        """Add a placed pod."""

    def add_all(self, placed: Iterable[tuple[PodInfo, int]]) -> None:
        """Add many placed pods with their rows; the same as adding one after the other."""
        for pod, row in placed:
            self.add(pod, row)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod; ``pod`` counts as the one that was added (same template, requests, terminating)."""

    def renew(self, before: PodInfo, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - for those that keep pods
        """A placed pod has a new state that counts the same: another phase, start, owner or condition.

        An index that depends on more than the template, the requests and whether the pod terminates, or hands
        pods out, takes the new state here. See :func:`plimsoll.model.kinds.pod_info.counts_the_same`.
        """
        return

    def trim(self) -> None:
        """Drop what was counted for a large pod alone: an attempt with another one begins."""
        return

    def move_row(self, source: int, target: int) -> None:  # noqa: ARG002 - for those that know rows
        """The node of row ``source`` is now in row ``target``, whose own pods have been removed before."""
        return

    def grow(self, capacity: int) -> None:  # noqa: ARG002 - likewise
        """Make room for more nodes."""
        return

    def fork(self) -> Self:
        """An independent copy, as lazily as possible."""


@runtime_checkable
class KnowsNodes(Protocol):
    """A pod index with data about nodes that does not come from their pods."""

    def forget_row(self, row: int) -> None:
        """Clear the row of a removed node, whose pods were removed before; another node may get the row."""


@runtime_checkable
class KnowsAxes(Protocol):
    """A pod index with amounts along the R axis: it is built again when axes are dropped."""

    requests: IntArray


class FollowsFork(PodIndex):
    """A pod index of a fork that writes to the fork's objects."""

    def follow(self, cluster: object) -> None:
        """Called on the copied index of a fork when the fork, ``cluster``, is complete."""


class NameCounts:
    """The number of nodes that have each name; a fork shares the counts until either side writes."""

    __slots__ = ("_shared", "counts")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._shared = False

    def __contains__(self, name: str) -> bool:
        return name in self.counts

    def add(self, names: Iterable[str]) -> None:
        """Count one node more for each of the names."""
        self._own()
        counts = self.counts
        for name in names:
            counts[name] = counts.get(name, 0) + 1

    def remove(self, names: Iterable[str]) -> None:
        """Count one node less for each of the names, all of which it had."""
        self._own()
        counts = self.counts
        for name in names:
            left = counts[name] - 1
            if left:
                counts[name] = left
            else:
                del counts[name]
        self.counts = fitting(counts)

    def fork(self) -> "NameCounts":
        """A copy that shares the counts until either side writes."""
        twin = NameCounts()
        twin.counts = self.counts
        twin._shared = self._shared = True
        return twin

    def _own(self) -> None:
        if self._shared:
            self.counts = dict(self.counts)
            self._shared = False


NO_ROWS: Mapping[int, int] = {}


class RowCounts:
    """Counters by key and row, where few rows have a key; a fork shares them until either side writes.

    What pods name freely (host ports) has no column: a pod with two thousand ports would cost one for each.
    """

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
            self._of, self._own_keys = fitting(self._of), fitting(self._own_keys)
        if keys:
            self._by_row[row] = fitting(keys)
        else:
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


def columns_of(axes: Sequence[int]) -> slice | list[int]:
    """How to cut these columns out of (N, R): adjacent ones as a slice, which copies nothing."""
    first, count = axes[0] if axes else 0, len(axes)
    return slice(first, first + count) if list(axes) == list(range(first, first + count)) else list(axes)


def distinct(rows: Iterable[int]) -> RowArray:
    """The distinct rows, ascending; read-only, as plugins see them."""
    return read_only_rows(sorted(set(rows)))


def told_apart(values: IntArray) -> tuple[list[int], IntArray]:
    """The distinct values, ascending, and the index of each value among them; fast if all are equal."""
    if len(values) and not np.count_nonzero(values != values[0]):
        return [int(values[0])], np.zeros(len(values), dtype=np.int64)
    distinct_values, which = np.unique(values, return_inverse=True)
    return distinct_values.tolist(), which


#: The log is halved when it exceeds this length; readers that lag behind it review all rows.
LOG_LENGTH = 65_536


#: The rows that changed when none did.
NO_CHANGES: RowArray = np.frombuffer(bytes(8), dtype=np.intp)[:0]


class ChangeLog:
    """Changes in order; a tick is the number of changes so far."""

    __slots__ = ("_rows", "_start", "tick")

    def __init__(self, tick: int = 0) -> None:
        self.tick = tick
        self._rows = array("q")
        self._start = tick

    def note(self, row: int) -> None:
        """Log a changed row."""
        self._rows.append(row)
        self.tick += 1
        if len(self._rows) > LOG_LENGTH:
            cut = LOG_LENGTH // 2
            del self._rows[:cut]
            self._start += cut

    def note_all(self, rows: Iterable[int], count: int) -> None:
        """Log so many changed rows, one after the other; at most half of the log's length."""
        self._rows.extend(rows)
        self.tick += count
        if len(self._rows) > LOG_LENGTH:
            cut = LOG_LENGTH // 2
            del self._rows[:cut]
            self._start += cut

    def since(self, tick: int) -> RowArray | None:
        """Rows that changed after ``tick``, ascending; None if the log does not reach back."""
        if tick >= self.tick:
            return NO_CHANGES
        if tick < self._start:
            return None
        return distinct(self._rows[tick - self._start :])

    def span_since(self, tick: int, most: int) -> tuple[int, int] | None:
        """The same rows in memory: address and number, at most ``most``; one row may occur twice.

        Valid until the next change. None: there are more, or the log does not reach back.
        """
        first, count = tick - self._start, self.tick - tick
        return None if first < 0 or count > most else (self._rows.buffer_info()[0] + 8 * first, count)
