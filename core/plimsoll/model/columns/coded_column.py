"""Encodes one property of each node (a label's value, a list of taints) as small integers.

Axis letter: N nodes.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np

from plimsoll.model.columns.columns import ABSENT, IdArray, grown

ValueT = TypeVar("ValueT", bound=Hashable)

#: Number of unused values in excess of the nodes at which they are removed.
STALE_VALUES = 64


class Coding(Generic[ValueT]):
    """The coding of a column, read-only. Ids keep their meaning while ``Cluster.epoch`` stays the same."""

    __slots__ = ("_column",)

    def __init__(self, column: "CodedColumn[ValueT]") -> None:
        self._column = column

    def __len__(self) -> int:
        """How many values have an id; some may be unused."""
        return len(self._column.values)

    @property
    def values(self) -> tuple[ValueT, ...]:
        """The value of each id."""
        return tuple(self._column.values)

    def find(self, value: ValueT) -> int:
        """The id of ``value``, or ``ABSENT`` if no node had it lately."""
        return self._column.find(value)


class CodedColumn(Generic[ValueT]):
    """A value for each node.

    Attributes:
        ids: Shape (capacity,), as numpy indexes with; ``ABSENT`` where a node has none.
        values: The value of each id. Some may be unused. Ids keep their meaning while ``Cluster.epoch`` stays
            the same.
    """

    __slots__ = ("_id_of", "_shared", "ids", "values")

    def __init__(self, capacity: int) -> None:
        self.ids: IdArray = np.full(capacity, ABSENT, dtype=np.intp)
        self.values: list[ValueT] = []
        self._id_of: dict[ValueT, int] = {}
        self._shared = False

    def set(self, row: int, value: ValueT | None) -> None:
        """Record the value of one node, None if it has none."""
        self._own()
        self.ids[row] = ABSENT if value is None else self.code(value)

    def code(self, value: ValueT) -> int:
        """The id of ``value``, assigned if it is new."""
        found = self._id_of.get(value)
        if found is None:
            self._own()
            found = self._id_of[value] = len(self.values)
            self.values.append(value)
        return found

    def find(self, value: ValueT) -> int:
        """The id of ``value``, or ``ABSENT`` if no node had it lately."""
        return self._id_of.get(value, ABSENT)

    def compact(self, count: int, *, always: bool = False) -> bool:
        """Remove values that none of ``count`` nodes has, if there may be many; returns if ids changed."""
        if len(self.values) <= 2 * count + STALE_VALUES and not always:
            return False
        self._own()
        ids = self.ids[:count]
        used = np.unique(ids[ids != ABSENT])
        self.values = [self.values[each] for each in used.tolist()]
        self._id_of = {value: each for each, value in enumerate(self.values)}
        self.ids[:count] = np.where(ids == ABSENT, ABSENT, np.searchsorted(used, ids))
        return True

    def copy(self) -> "CodedColumn[ValueT]":
        """A copy that shares its arrays until either side writes."""
        twin = CodedColumn[ValueT](0)
        twin.ids, twin.values, twin._id_of = self.ids, self.values, self._id_of
        twin._shared = self._shared = True
        return twin

    def move(self, source: int, target: int) -> None:
        """Give row ``target`` the value of row ``source``."""
        self._own()
        self.ids[target] = self.ids[source]

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._own()
        self.ids = grown(self.ids, capacity, ABSENT)

    def _own(self) -> None:
        if self._shared:
            self.ids, self.values, self._id_of = self.ids.copy(), list(self.values), dict(self._id_of)
            self._shared = False
