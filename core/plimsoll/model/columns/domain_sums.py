"""Counts pods by topology domain, updated one pod at a time.

A domain is the set of nodes with one value of a label (the topology key), restricted to some nodes or not.
The counts per node are the source; the sums follow them cheaply, and are recomputed when nodes have changed.

Axis letters: N nodes, D topology domains.
"""

from collections.abc import Hashable
from typing import Protocol

import numpy as np
from msgspec import Struct

from plimsoll.model.columns.columns import ABSENT, BoolArray, IdArray, IntArray
from plimsoll.model.columns.snapshot import Snapshot


class NodeSet(Hashable, Protocol):
    """Some of the nodes; equal sets are equal."""

    def among(self, snapshot: Snapshot) -> BoolArray:
        """Which nodes of a whole snapshot belong to the set, shape (N,)."""


class DomainSums(Struct):
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


class _Domains(Struct, frozen=True):
    """The domains of one label: what the sums of all classes have in common.

    Attributes:
        of_row: Shape (capacity,): the domain of each node, ABSENT for none.
        none: Shape (D + 1,): zeros, read-only.
        exists: Shape (D + 1,).
    """

    of_row: IdArray
    none: IntArray
    exists: BoolArray
    size: int
    is_single: bool
    is_everywhere: bool  #: whether every node has the label


#: Approximate number of labels whose domains are kept.
MOST_LABELS = 64


def summed(
    column: IntArray | None, topology_key: str, nodes: NodeSet | None, snapshot: Snapshot
) -> DomainSums:
    """Sum a column of counts, shape (capacity,), over the nodes of a set (None: all); None: all are 0."""
    whole = snapshot.whole
    domains = _domains_of(topology_key, nodes, whole)
    sums, occupied = domains.none, 0
    if column is not None:
        # The last bin has the count of ABSENT (-1) and is cleared.
        bins = domains.of_row[: len(whole)] % len(domains.none)
        sums = np.bincount(bins, column[: len(whole)], minlength=len(domains.none)).astype(np.int64)
        sums[-1] = 0
        occupied = int(np.count_nonzero(sums))
    return DomainSums(
        sums,
        domains.exists,
        occupied,
        domains.size,
        domains.of_row,
        is_single=domains.is_single,
        mark=snapshot.node_mark,
        is_shared=column is None,
    )


def _domains_of(topology_key: str, nodes: NodeSet | None, whole: Snapshot) -> _Domains:
    """The domains of a label; those over all nodes are kept until a node changes."""
    if nodes is not None:
        return _found(topology_key, nodes, whole)
    kept = whole.domains
    known = kept.get(topology_key)
    if known is None or known[0] != whole.node_mark:
        if len(kept) >= MOST_LABELS:
            kept.clear()
        known = kept[topology_key] = whole.node_mark, _found(topology_key, None, whole)
    found: _Domains = known[1]
    return found


def _found(topology_key: str, nodes: NodeSet | None, whole: Snapshot) -> _Domains:
    ids = whole.label_ids(topology_key)
    domains = len(whole.label(topology_key)) + 1
    of_row: IdArray = np.full(len(whole.label_column(topology_key)), ABSENT, dtype=np.intp)
    of_row[: len(ids)] = ids if nodes is None else np.where(nodes.among(whole), ids, ABSENT)
    none: IntArray = np.zeros(domains, dtype=np.int64)
    none.flags.writeable = False
    exists: BoolArray = np.bincount(of_row[: len(ids)] % domains, minlength=domains) > 0
    exists[-1] = False
    held = np.bincount(ids % domains, minlength=domains)
    return _Domains(
        of_row,
        none,
        exists,
        int(np.count_nonzero(exists)),
        is_single=bool(held[:-1].max(initial=0) <= 1),
        is_everywhere=not held[-1],
    )


def has_single_domains(topology_key: str, snapshot: Snapshot) -> bool:
    """Whether no two nodes have the same value of the label."""
    return _domains_of(topology_key, None, snapshot.whole).is_single


def is_on_all_nodes(topology_key: str, snapshot: Snapshot) -> bool:
    """Whether every node has the label."""
    return _domains_of(topology_key, None, snapshot.whole).is_everywhere


def without_domains(topology_key: str, snapshot: Snapshot) -> DomainSums:
    """The sums of any class by a label that no node has."""
    return DomainSums(
        _NOTHING, _NOWHERE, 0, 0, snapshot.label_column(topology_key), is_single=True, mark=snapshot.node_mark
    )


_NOTHING: IntArray = np.zeros(1, dtype=np.int64)
_NOTHING.flags.writeable = False
_NOWHERE: BoolArray = np.zeros(1, dtype=np.bool_)
