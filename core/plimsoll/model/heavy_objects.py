"""Tells large objects from others: nothing derived from a large one is kept when it has gone."""

import sys
from typing import TypeVar

import msgspec

TableT = TypeVar("TableT", dict, set)  # type: ignore[type-arg]

#: Bytes, encoded, above which an object is heavy, or the deciding fields of a pod.
HEAVY_BYTES = 32_768

#: Bytes of a table, and for each of its entries, above which it has room that entries have left.
_ROOM, _ROOM_AN_ENTRY = 16_384, 200


def is_heavy(each: msgspec.Struct) -> bool:
    """Whether an object is so large that no cache may keep it when it has gone."""
    return len(msgspec.msgpack.encode(each)) > HEAVY_BYTES


def fitting(table: TableT) -> TableT:
    """The table, or a copy of it that takes only as much memory as its entries need.

    Python keeps the room of a table for as long as the table lives: 2.6 MB where 40,000 names have left it.
    Call it where names leave. It copies only what is less than half full.
    """
    return table.copy() if sys.getsizeof(table) > _ROOM + _ROOM_AN_ENTRY * len(table) else table
