"""Finds victims of preemption on many nodes with the compiled kernel."""

from array import array

import numpy as np

from plimsoll.engine.kernel.library import ColumnAddresses, address
from plimsoll.framework import RowArray
from plimsoll.framework.extension_points import VictimArrays
from plimsoll.framework.resource_rules import RoomRule

#: The most resources of a rule; the kernel keeps what is left of them on its stack.
MOST_WANTED = 16


def find_victims(
    columns: ColumnAddresses,
    rule: RoomRule,
    position: int,
    filters: int,
    rows: RowArray,
    search: VictimArrays,
) -> None:
    """Write the victims on these rows, in order, and their costs into the arrays of the search.

    Args:
        columns: The cluster's columns, with the kernel.
        rule: The room that the pod wants, of at most MOST_WANTED resources.
        position: The position of the filter whose rule it is among all filters.
        filters: The number of all filters.
        rows: The rows; no pod is nominated to them.
        search: What is searched, and where results go.
    """
    allocatable, requested, _, step = columns.current()
    assert columns.kernel is not None
    pods = search.pods
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    words = [
        search.priority,
        *pods.requests.shape,
        address(pods.priorities),
        address(pods.starts),
        address(pods.requests),
        search.victims.shape[1],
        search.none_lower,
        filters,
        position,
        address(search.kinds),
        address(search.victims),
        *map(address, search.costs),
        len(rule),
    ]
    for axis, least, code, hopeless in rule:
        words += (allocatable + axis * step, requested + axis * step, axis, least, code, hopeless)
    structure = array("q", words)
    columns.kernel.victims(structure.buffer_info()[0], address(rows), len(rows))
