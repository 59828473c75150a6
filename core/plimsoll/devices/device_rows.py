"""DeviceRows caches numbers of each node that depend on its devices, such as how many are free.

They are recomputed where devices were taken or freed since, according to the log of the device book.

Axis letters: N nodes, as rows of the cluster; K numbers of each.
"""

from collections.abc import Callable

import numpy as np

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pools import PoolKey, node_key
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.kinds.node import Node


class DeviceRows:
    """Numbers by row.

    Args:
        cluster: The cluster with the nodes.
        book: The book with their devices.
        numbers: Returns K numbers of a node, which depend only on the devices that it reaches.
        count: The number K.
    """

    def __init__(
        self, cluster: Cluster, book: DeviceBook, numbers: Callable[[Node], tuple[int, ...]], count: int
    ) -> None:
        self._cluster, self._book, self._numbers, self._count = cluster, book, numbers, count
        self._values: IntArray = np.zeros((0, count), dtype=np.int64)
        self._rows_of: dict[PoolKey, list[int]] = {}
        self._version = self._shape_version = self._node_tick = -1

    def values(self) -> IntArray:
        """The numbers, shape (N, K); read-only, and valid only until the next change."""
        book = self._book
        if self._version == book.version and self._node_tick == self._cluster.node_tick:
            return self._values
        changed = book.changed_pools(self._version)
        is_other = self._shape_version != book.shape_version or self._node_tick != self._cluster.node_tick
        if changed is None or is_other or any(key == node_key(key.name) for key in changed):
            self._count_all()
        else:
            for row in {row for key in changed for row in self._rows_of.get(key, ())}:
                self._values[row] = self._numbers(self._cluster.nodes[row])
        self._version, self._shape_version = book.version, book.shape_version
        self._node_tick = self._cluster.node_tick
        return self._values

    def _count_all(self) -> None:
        nodes = self._cluster.nodes
        self._rows_of = {}
        for row, node in enumerate(nodes):
            for pool in self._book.slices.pools_of(node):
                self._rows_of.setdefault(pool.key, []).append(row)
        values = [self._numbers(node) for node in nodes]
        self._values = np.array(values, dtype=np.int64).reshape(len(nodes), self._count)
