"""Holds statuses of many nodes as arrays: preemption rejects hundreds of nodes for one reason."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from plimsoll.framework import BoolArray, Code, IntArray, Status
from plimsoll.model.columns.columns import RowArray


class RowStatuses(Mapping[int, Status]):
    """Statuses by row; rows with equal statuses share one.

    Axis letters: C rows that have a status here, S distinct statuses.

    Args:
        rows: Shape (C,), each row once.
        which: Shape (C,): the position of each row's status among ``statuses``.
        statuses: The S statuses.
    """

    def __init__(self, rows: RowArray, which: IntArray, statuses: Sequence[Status]) -> None:
        self.rows = rows
        self._which = which
        self._statuses = statuses

    @classmethod
    def of(cls, statuses: Mapping[int, Status]) -> "RowStatuses":
        """The same statuses as arrays."""
        if isinstance(statuses, cls):
            return statuses
        distinct = list(dict.fromkeys(statuses.values()))
        at = {status: position for position, status in enumerate(distinct)}
        return cls(
            np.array(list(statuses), dtype=np.intp),
            np.array([at[status] for status in statuses.values()], dtype=np.int64),
            distinct,
        )

    def counted(self) -> list[tuple[Status, int]]:
        """Each status that some row has, with its number of rows."""
        counts = np.bincount(self._which, minlength=len(self._statuses)).tolist()
        return [(status, count) for status, count in zip(self._statuses, counts, strict=True) if count]

    def reworded(self, chosen: BoolArray, suffix: str, but: Status) -> "RowStatuses":
        """The same, with a suffix to the reasons of chosen rows, shape (C,), except for status ``but``."""
        if not chosen.any():
            return self
        longer = [
            each if each == but else replace(each, reasons=tuple(f"{text}{suffix}" for text in each.reasons))
            for each in self._statuses
        ]
        which = np.where(chosen, self._which + len(self._statuses), self._which)
        return RowStatuses(self.rows, which, [*self._statuses, *longer])

    def have(self, code: Code) -> BoolArray:
        """Whether each status has this code, shape (C,)."""
        return np.array([status.code is code for status in self._statuses], dtype=np.bool_)[self._which]

    def __getitem__(self, row: int) -> Status:
        return self._by_row[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_row)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _by_row(self) -> dict[int, Status]:
        statuses = self._statuses
        return {
            row: statuses[which] for row, which in zip(self.rows.tolist(), self._which.tolist(), strict=True)
        }


#: Statuses of no rows.
NONE = RowStatuses(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), ())
