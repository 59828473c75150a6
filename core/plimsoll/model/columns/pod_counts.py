"""Counts placed pods that match a selector, by node and topology domain, updated with each pod.

A plugin requests the counts of a :class:`PodClass`; from then on every added or removed pod is counted for
the classes of its template. Counting a new class visits the templates that may be in it, found by label, and
the rows where they are placed. Classes that were not used for long are dropped.

Axis letters: N nodes, D topology domains.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np

from plimsoll.model.columns.columns import IntArray, PodIndex, grown
from plimsoll.model.columns.domain_sums import DomainSums, NodeSet, summed, without_domains
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.heavy_objects import fitting
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.selector_lookup import LabelLookup, SelectorLookup
from plimsoll.model.selectors import Selector

#: Approximate maximum memory for counts of classes, per cluster.
CLASS_BYTES = 128 * 2**20

#: Maximum number of classes: pods that have gone leave theirs behind.
MOST_CLASSES = 2_048

#: Number of namespaces and requirements of the largest class that is kept.
LARGEST_KEPT = 64

#: A column takes less than a mapping once one row in this many has pods.
FEW = 16


class PodClass(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods that satisfy every one of some conditions, each a set of namespaces (None: all) and a selector.

    With ``living``, pods that are terminating are left out. A heavy class is so large that it is counted when
    it is requested, and not kept. One that is ``passing``, of a pod with a heavy template, is kept until
    another pod is tried.
    """

    wanted: tuple[tuple[frozenset[str] | None, Selector], ...]
    living: bool = False
    passing: bool = False

    @property
    def is_heavy(self) -> bool:
        """Whether it is too large to be kept."""
        size = sum(len(each or ()) + len(selector.requirements) for each, selector in self.wanted)
        return size > LARGEST_KEPT

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod of that namespace and labels belongs to the class."""
        return all(
            (namespaces is None or namespace in namespaces) and selector.matches(labels)
            for namespaces, selector in self.wanted
        )


class ClassCounts:
    """The pods of one class: a mapping of the rows that have some, until all rows are requested.

    Most terms of placed pods concern no pending pod: a column for each would take half a gigabyte at 50,000
    nodes.

    Args:
        capacity: Rows that are allocated.
        few: Pods by row.

    Attributes:
        total: Pods on all nodes.
    """

    __slots__ = ("_capacity", "_column", "_domains", "_few", "_owned", "living", "total")

    def __init__(self, capacity: int, few: dict[int, int] | None = None, *, living: bool = False) -> None:
        self._capacity = capacity
        self._column: IntArray | None = None
        self._few = few or {}  #: pods by row, while there is no column
        self.total = sum(self._few.values())
        self.living = living
        self._domains: dict[Hashable, DomainSums] = {}
        self._owned = True

    @property
    def few(self) -> Mapping[int, int] | None:
        """Pods by row, without rows that have none; None if there are many, or all rows were requested."""
        return self._few if self._column is None else None

    @property
    def column(self) -> IntArray:
        """Pods on each node, shape (capacity,) int64."""
        if self._column is None:
            self._column = np.zeros(self._capacity, dtype=np.int64)
            for row, count in self._few.items():
                self._column[row] = count
            self._few, self._owned = {}, True
        return self._column

    def add(self, row: int, amount: int) -> None:
        """Add pods on the node of ``row``, or subtract them."""
        if not self._owned:
            self._column = None if self._column is None else self._column.copy()
            self._few = dict(self._few)
            self._owned = True
        if self._column is not None:
            self._column[row] += amount
        else:
            count = self._few.pop(row, 0) + amount
            if count:
                self._few[row] = count
            if len(self._few) > self._capacity // FEW:
                self._column = self.column
        self.total += amount
        for domains in self._domains.values():
            domains.add(row, amount)

    def sums(self, topology_key: str, snapshot: Snapshot, nodes: NodeSet | None = None) -> DomainSums:
        """The same by the values of a node label, over the given nodes (all of them when None)."""
        key = topology_key if nodes is None else (topology_key, nodes)
        domains = self._domains.get(key)
        if domains is None or domains.mark != snapshot.node_mark:
            if not snapshot.label(topology_key).values:
                return without_domains(topology_key, snapshot)
            if domains is None and len(self._domains) >= 64:
                self._domains.clear()
            column = self.column if self.total else None
            domains = self._domains[key] = summed(column, topology_key, nodes, snapshot)
        return domains

    def move_row(self, source: int, target: int) -> None:
        """Move a node's count to another row."""
        moved, there = self._on(source), self._on(target)
        if moved or there:
            self.add(source, -moved)
            self.add(target, moved - there)

    def _on(self, row: int) -> int:
        return self._few.get(row, 0) if self._column is None else int(self._column[row])

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._capacity = capacity
        if self._column is not None:
            self._column = grown(self._column, capacity)
            self._owned = True
        self._domains.clear()

    def fork(self) -> "ClassCounts":
        """A copy that shares its arrays until either side writes."""
        twin = ClassCounts(self._capacity, living=self.living)
        twin._column, twin._few, twin.total = self._column, self._few, self.total
        twin._domains = {key: domains.fork() for key, domains in self._domains.items()}
        twin._owned = self._owned = False
        return twin


class HasCapacity(Protocol):
    """The capacity of a cluster, which an index needs."""

    @property
    def capacity(self) -> int:
        """Rows that are allocated."""


class PodCounts(PodIndex):
    """Counts of pods by class; a pod index."""

    def __init__(self, cluster: HasCapacity) -> None:
        self.capacity = cluster.capacity
        self._placed = PlacedTemplates()
        self._counted: dict[PodClass, ClassCounts] = {}
        self._lookup: SelectorLookup[PodClass] = SelectorLookup()
        self._memberships: dict[PodTemplate, tuple[ClassCounts, ...]] = {}
        self._passing: list[PodClass] = []

    def of(self, pods: PodClass) -> ClassCounts:
        """The counts of a class, computed at its first use. Call it again after each change."""
        counts = self._counted.get(pods)
        if counts is None:
            counts = self._new(pods, self._members(pods)) if pods.is_heavy else self._count(pods)
        return counts

    def add(self, pod: PodInfo, row: int) -> None:
        """Add a placed pod."""
        self._placed.change(pod, row, 1)
        for counts in self._classes_of(pod.template):
            if not (counts.living and pod.is_terminating):
                counts.add(row, 1)

    def add_all(self, placed: Iterable[tuple[PodInfo, int]]) -> None:
        """Add placed pods."""
        if self._counted:
            super().add_all(placed)
        else:
            self._placed.add_all(placed)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod."""
        for counts in self._classes_of(pod.template):
            if not (counts.living and pod.is_terminating):
                counts.add(row, -1)
        if not self._placed.change(pod, row, -1):
            # Only placed templates are matched against new classes.
            del self._memberships[pod.template]

    def trim(self) -> None:
        """Drop the classes of large pods."""
        if self._passing:
            for pods in self._passing:
                del self._counted[pods]
                self._lookup.discard(pods.wanted[0][1], pods)
            self._counted, self._passing = fitting(self._counted), []
            self._memberships.clear()

    def move_row(self, source: int, target: int) -> None:
        """Move a node to another row."""
        self._placed.move_row(source, target)
        for counts in self._counted.values():
            counts.move_row(source, target)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self.capacity = capacity
        for counts in self._counted.values():
            counts.grow(capacity)

    def fork(self) -> "PodCounts":
        """An independent copy; arrays are shared until either side writes."""
        twin = PodCounts(self)
        twin._placed = self._placed.fork()
        twin._counted = {pods: counts.fork() for pods, counts in self._counted.items()}
        for pods in twin._counted:
            twin._file(pods)
        twin._passing = list(self._passing)
        return twin

    def _classes_of(self, template: PodTemplate) -> tuple[ClassCounts, ...]:
        found = self._memberships.get(template)
        if found is None:
            found = self._memberships[template] = tuple(
                self._counted[pods]
                for pods in self._lookup.candidates(template.labels)
                if pods.matches(template.namespace, template.labels)
            )
        return found

    def _file(self, pods: PodClass) -> None:
        # Every condition must hold, so indexing by any one of them finds the class.
        self._lookup.add(pods.wanted[0][1], pods)

    def _count(self, pods: PodClass) -> ClassCounts:
        if len(self._counted) >= max(16, min(MOST_CLASSES, CLASS_BYTES // (8 * self.capacity))):
            kept = list(self._counted)[len(self._counted) // 2 :]
            self._counted = {each: self._counted[each] for each in kept}
            self._passing = [each for each in kept if each.passing]
            self._lookup = SelectorLookup()
            for each in kept:
                self._file(each)
            self._memberships.clear()
        if pods.passing:
            self._passing.append(pods)
        members = self._members(pods)
        counts = self._counted[pods] = self._new(pods, members)
        self._file(pods)
        for template in members:
            if template in self._memberships:
                self._memberships[template] = (*self._memberships[template], counts)
        return counts

    def _members(self, pods: PodClass) -> list[PodTemplate]:
        """The placed templates of a class."""
        return [
            template
            for template in self._placed.candidates(pods.wanted[0][1])
            if pods.matches(template.namespace, template.labels)
        ]

    def _new(self, pods: PodClass, members: Sequence[PodTemplate]) -> ClassCounts:
        few: dict[int, int] = {}
        for template in members:
            for row, placed in self._placed.rows(template, living=pods.living):
                if placed:
                    few[row] = few.get(row, 0) + placed
        return ClassCounts(self.capacity, few, living=pods.living)


class PlacedTemplates:
    """The rows with pods of each template, from which a new class is counted."""

    def __init__(self) -> None:
        self._rows: RowsByTemplate = {}
        self._terminating: RowsByTemplate = {}
        self._lookup: LabelLookup[PodTemplate] = LabelLookup()
        self._shared = False
        #: Templates whose rows are not shared, for all pods and for terminating ones.
        self._own: tuple[set[PodTemplate], set[PodTemplate]] = (set(), set())

    def change(self, pod: PodInfo, row: int, amount: int) -> bool:
        """Add pods on a node, or subtract them; returns whether any pod of the template is placed now."""
        self._unshare()
        template = pod.template
        if template not in self._rows:
            self._lookup.add(template.labels, template)
        rows = _writable(self._rows, self._own[0], template)
        _change(rows, row, amount)
        if not rows:
            del self._rows[template]
            self._own[0].discard(template)
            self._lookup.discard(template.labels, template)
        if pod.is_terminating:
            leaving = _writable(self._terminating, self._own[1], template)
            _change(leaving, row, amount)
            if not leaving:
                del self._terminating[template]
                self._own[1].discard(template)
        return bool(rows)

    def add_all(self, placed: Iterable[tuple[PodInfo, int]]) -> None:
        """Add pods on their nodes."""
        found: dict[PodTemplate, dict[int, int]] = {}
        for pod, row in placed:
            template = pod.template
            rows = found.get(template)
            if rows is None or pod.is_terminating:
                self.change(pod, row, 1)
                found[template] = self._rows[template]
            else:
                rows[row] = rows.get(row, 0) + 1

    def candidates(self, selector: Selector) -> list[PodTemplate]:
        """Placed templates that the selector may match."""
        return list(self._lookup.candidates(selector))

    def rows(self, template: PodTemplate, *, living: bool) -> list[tuple[int, int]]:
        """Pairs of a row and the number of the template's pods there."""
        leaving = self._terminating.get(template, {}) if living else {}
        return [(row, count - leaving.get(row, 0)) for row, count in self._rows[template].items()]

    def move_row(self, source: int, target: int) -> None:
        """Move a node to another row."""
        self._unshare()
        for table, own in zip((self._rows, self._terminating), self._own, strict=True):
            for template in [template for template, rows in table.items() if source in rows]:
                rows = _writable(table, own, template)
                rows[target] = rows.pop(source)

    def fork(self) -> "PlacedTemplates":
        """A copy; both share the rows of a template until either side writes them."""
        twin = PlacedTemplates()
        twin._rows = self._rows
        twin._terminating = self._terminating
        twin._lookup = self._lookup
        twin._shared = self._shared = True
        return twin

    def _unshare(self) -> None:
        if self._shared:
            self._rows, self._terminating = dict(self._rows), dict(self._terminating)
            self._lookup = self._lookup.copy()
            self._own = (set(), set())
            self._shared = False


RowsByTemplate = dict[PodTemplate, dict[int, int]]


def _writable(table: RowsByTemplate, own: set[PodTemplate], template: PodTemplate) -> dict[int, int]:
    if template not in own:
        table[template] = dict(table.get(template, {}))
        own.add(template)
    return table[template]


def _change(rows: dict[int, int], row: int, amount: int) -> None:
    left = rows.get(row, 0) + amount
    if left:
        rows[row] = left
    else:
        del rows[row]
