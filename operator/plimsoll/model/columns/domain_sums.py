"""Counts pods by topology domain, updated one pod at a time.

A domain is the set of nodes with one value of a label (the topology key), restricted to some nodes or not.
The counts per node are the source; the sums follow them cheaply, and are recomputed when nodes have changed.

Axis letters: N nodes, D topology domains.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from plimsoll.model.columns.columns import ABSENT, BoolArray, IdArray, IntArray
from plimsoll.model.columns.snapshot import Snapshot


class NodeSet(Hashable, Protocol):
    """Some of the nodes; equal sets are equal."""

    def among(self, snapshot: Snapshot) -> BoolArray:
        """Which nodes of a whole snapshot belong to the set, shape (N,)."""


@dataclass(slots=True)
class DomainSums:
    """The pods of one class, summed by the values of one node label.

    Attributes:
        sums: Shape (D + 1,) int64: pods in each domain, indexed by the label's coded values. The last cell is
            for nodes without the label and stays 0, so that ``sums[label_ids]`` never needs a mask.
        exists: Shape (D + 1,): whether some node of the set is in the domain.
        occupied: Number of domains with pods.
        size: Number of domains.
        is_single: Whether no two nodes have the same value of the label, in the set or not.
        domain_of_row: Shape (capacity,): the domain in which a node counts, ABSENT for none.
        mark: ``Snapshot.node_mark`` when it was summed.
    """

    sums: IntArray
    exists: BoolArray
    occupied: int
    size: int
    domain_of_row: IdArray
    is_single: bool
    mark: tuple[int, int]
    is_shared: bool = False

    def add(self, row: int, amount: int) -> None:
        """Add pods on the node of ``row``, or subtract them."""
        domain = self.domain_of_row.item(row)
        if domain != ABSENT:
            if self.is_shared:
                self.sums = self.sums.copy()
                self.is_shared = False
            before = self.sums.item(domain)
            self.sums[domain] = before + amount
            self.occupied += (before + amount > 0) - (before > 0)

    def fork(self) -> "DomainSums":
        """A copy that shares its arrays until either side writes."""
        self.is_shared = True
        return DomainSums(
            self.sums,
            self.exists,
            self.occupied,
            self.size,
            self.domain_of_row,
            is_single=self.is_single,
            mark=self.mark,
            is_shared=True,
        )


def summed(column: IntArray, topology_key: str, nodes: NodeSet | None, snapshot: Snapshot) -> DomainSums:
    """Sum a column of counts, shape (capacity,), over the nodes of a set (None: all)."""
    whole = snapshot.whole
    ids = whole.label_ids(topology_key)
    domains = len(whole.label(topology_key)) + 1
    domain_of_row: IdArray = np.full(len(column), ABSENT, dtype=np.intp)
    domain_of_row[: len(ids)] = ids if nodes is None else np.where(nodes.among(whole), ids, ABSENT)
    # The last bin has the count of ABSENT (-1) and is cleared.
    bins = domain_of_row[: len(ids)] % domains
    sums: IntArray = np.bincount(bins, column[: len(ids)], minlength=domains).astype(np.int64)
    exists: BoolArray = np.bincount(bins, minlength=domains) > 0
    sums[-1] = 0
    exists[-1] = False
    is_single = bool(np.bincount(ids % domains, minlength=domains)[:-1].max(initial=0) <= 1)
    return DomainSums(
        sums,
        exists,
        int(np.count_nonzero(sums)),
        int(np.count_nonzero(exists)),
        domain_of_row,
        is_single=is_single,
        mark=snapshot.node_mark,
    )
