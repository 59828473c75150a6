"""Caches columns that plugins derive from those of the cluster; recomputes only changed rows.

Values that do not depend on the pod (a node's capacity as doubles, how even its present use is) are computed
for all nodes once, and then for the one or two nodes that have changed since the last request.

Axis letter: N nodes.
"""

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from msgspec import Struct
from numpy.typing import NDArray

from plimsoll.model.columns.columns import RowArray, read_only

#: Maximum number of columns per cluster; all are dropped when there would be more.
MOST_COLUMNS = 64


class Changes(Protocol):
    """The log of changes of a cluster."""

    epoch: int
    node_tick: int

    @property
    def tick(self) -> int:
        """Increases with every change of a row."""

    def changed_since(self, tick: int) -> RowArray | None:
        """Rows that changed after ``tick``, ascending; None if the log does not reach back."""

    def nodes_changed_since(self, rows: RowArray, tick: int) -> RowArray:
        """Those of ``rows`` whose node object changed after ``tick``."""


class _Kept(Struct):
    values: NDArray[Any]
    window: NDArray[Any]
    epoch: int
    tick: int
    node_tick: int


class KeptColumns:
    """Columns by key."""

    def __init__(self) -> None:
        self._columns: dict[Hashable, _Kept] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def column(
        self,
        key: Hashable,
        log: Changes,
        compute: Callable[[RowArray | None], NDArray[Any]],
        *,
        of_nodes: bool,
    ) -> NDArray[Any]:
        """The present column of that key, read-only; valid until the cluster changes.

        As :meth:`Snapshot.kept`; ``compute`` receives the rows (None: all).
        """
        kept = self._columns.get(key)
        if kept is None or not self._renewed(kept, log, compute, of_nodes=of_nodes):
            if len(self._columns) >= MOST_COLUMNS:
                self._columns.clear()
            values = compute(None).copy(order="K")
            kept = self._columns[key] = _Kept(values, read_only(values), log.epoch, log.tick, log.node_tick)
        return kept.window

    def _renewed(
        self,
        kept: _Kept,
        log: Changes,
        compute: Callable[[RowArray | None], NDArray[Any]],
        *,
        of_nodes: bool,
    ) -> bool:
        """Update a column; False if it must be computed again."""
        if kept.epoch != log.epoch:
            return False
        if of_nodes and kept.node_tick == log.node_tick:
            return True
        rows = log.changed_since(kept.tick)
        if rows is not None and of_nodes:
            rows = log.nodes_changed_since(rows, kept.tick)
        if rows is None:
            return False
        if len(rows):
            kept.values[rows] = compute(rows)
        kept.tick, kept.node_tick = log.tick, log.node_tick
        return True
