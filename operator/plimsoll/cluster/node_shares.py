"""Divides the nodes among replicas that schedule concurrently: only the holder of a share binds to it.

A node's name alone determines its share, for every replica, and leases determine which replica holds a share.
So no two replicas ever count on the same room, although each sees the other's bindings late.
"""

import zlib

import numpy as np

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import BoolArray

#: Number of shares, which two, three and six replicas divide evenly. All versions agree on it.
NODE_SHARES = 6


def share_of(node: str) -> int:
    """The share of a node."""
    return zlib.crc32(node.encode()) % NODE_SHARES


class NodeShares:
    """The shares that this replica holds; all of them if there is only one scheduling process.

    Attributes:
        held: The shares; written by the holder of their leases.
    """

    def __init__(self) -> None:
        self.held: frozenset[int] = frozenset(range(NODE_SHARES))
        self._mask = np.empty(0, dtype=np.bool_)
        self._made_for: tuple[int, frozenset[int]] | None = None

    def holds(self, node: str) -> bool:
        """Whether this replica binds pods to a node."""
        return share_of(node) in self.held

    def home(self, cluster: Cluster) -> BoolArray | None:
        """The nodes to which this replica binds, shape (N,); None if it binds to all."""
        if len(self.held) in (0, NODE_SHARES):
            return None
        key = cluster.epoch, self.held
        if self._made_for != key:
            self._made_for = key
            self._mask = np.array([self.holds(node.name) for node in cluster.nodes], dtype=np.bool_)
        return self._mask
