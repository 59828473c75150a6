"""The cluster as columns: one writer, no I/O; all others read it through a Snapshot.

Axis letters: N nodes, R resources. Row ``n`` of every column is the same node. Rows are dense: when a node is
removed, the last one takes its row (``epoch`` then rises, and cached rows are dropped).

Changes are logged by row: ``changed_since(tick)`` returns the nodes to evaluate again, so renewing a cached
mask costs only what changed. ``plimsoll.testing.columns`` recomputes all columns from the objects.

A fork is an independent cluster for simulated moves: arrays of a few columns are copied immediately (0.2 ms
at 5,000 nodes), counters and pod lists when first written (docs/adr/0003).

Longer than 400 lines because it is the only writer of the columns, with one invariant.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from plimsoll.model.columns.coded_column import CodedColumn
from plimsoll.model.columns.columns import (
    LOG_LENGTH,
    BoolArray,
    ChangeLog,
    FollowsFork,
    IntArray,
    KnowsAxes,
    KnowsNodes,
    NameCounts,
    PodIndex,
    RowArray,
    grown,
)
from plimsoll.model.columns.derived_columns import KeptColumns
from plimsoll.model.columns.images import ImageState, ImageTable
from plimsoll.model.columns.pods_by_row import PodsByRow
from plimsoll.model.kinds.node import Node, Taint, allocatable_of, decide_the_same
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo, Templates, counts_the_same
from plimsoll.model.kinds.requests import LARGEST_AMOUNT
from plimsoll.model.layered_dict import layered

IndexT = TypeVar("IndexT", bound=PodIndex)

CPU, MEMORY, STORAGE, PODS = range(4)
FIXED_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")

ABSENT_RESOURCES = "<absent>"
"""The axis of requests for what has no axis: each name counts as 1, and no node has any."""

#: Scalar resources with an axis as soon as a node has some; further ones get it when a pod requests them.
EAGER_SCALARS = 64

#: Scalar resources with an axis; requests for further ones find room on no node.
MOST_SCALARS = 128

#: Approximate maximum memory for columns of labels, per cluster; the oldest are dropped (``trim``).
LABEL_BYTES = 32 * 2**20

#: Pods that all new indexes count before they turn to the next ones: these lie in the processor's cache.
TOGETHER = 4_096

#: Taints of a node above which its list is not kept when the node has gone.
MOST_TAINTS = 16

#: Columns of labels that are kept however many nodes there are.
FEWEST_LABELS = 64


class Cluster:
    """Nodes, and the pods placed on them, as columns.

    Attributes:
        nodes: Node objects by row.
        rows: Row by node name.
        pods: Every placed pod by uid (even if its node object is not known).
        resources: Names of the R axis: cpu (milli), memory (bytes), ephemeral-storage (bytes), pods
            (count), then scalar resources that nodes have (units) in order of appearance, at most
            ``MOST_SCALARS``; once a pod requests others, ``ABSENT_RESOURCES`` counts them (docs/adr/0041).
        epoch: Rises when rows or axes change their meaning.
        objects: All other objects that decisions read: namespaces, volumes, workloads, budgets.
        taints: The taints of each node, coded.
        labels: The values of each label that was requested and that a node has, coded.
        kept: Columns that plugins derived from these.
        buffers: Scratch arrays, whose contents do not outlive one computation.
        domains: Domains of labels, with the clocks of the nodes; Snapshot hands them out.
        capacities: Allocatable amounts as divisors, with the clocks of the nodes; Snapshot keeps them here.
    """

    def __init__(self, templates: Templates | None = None, capacity: int = 64) -> None:
        self.templates = templates or Templates()
        self.objects = ClusterObjects()
        self.nodes: list[Node] = []
        self.rows: dict[str, int] = {}
        self.pods: MutableMapping[str, PodInfo] = {}
        self.resources: tuple[str, ...] = FIXED_RESOURCES
        self.epoch = 0
        self._row_of_pod: MutableMapping[str, int] = {}
        self._strays: dict[str, dict[str, PodInfo]] = {}
        self._pods_on = PodsByRow()
        self._large_rows: set[int] = set()
        self._resource_axis = {name: axis for axis, name in enumerate(FIXED_RESOURCES)}
        self._holders = NameCounts()  #: nodes that have some of a scalar resource
        self._labelled = NameCounts()  #: nodes that have a label
        self._unlabelled: CodedColumn[str] = CodedColumn(0)
        self._capacity = capacity
        self.allocatable: IntArray = np.zeros((capacity, len(FIXED_RESOURCES)), dtype=np.int64, order="F")
        self.requested: IntArray = np.zeros((capacity, len(FIXED_RESOURCES)), dtype=np.int64, order="F")
        self.nonzero_requested: IntArray = np.zeros((capacity, 2), dtype=np.int64, order="F")
        self.unschedulable: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.taints: CodedColumn[tuple[Taint, ...]] = CodedColumn(capacity)
        self.labels: dict[str, CodedColumn[str]] = {}
        self._images: ImageTable | None = None
        self._indexes: dict[type[PodIndex], PodIndex] = {}
        self.kept = KeptColumns()
        self.buffers: dict[tuple[Hashable, int], NDArray[Any]] = {}
        self.domains: dict[str, tuple[Hashable, Any]] = {}
        self.capacities: dict[tuple[int, ...], tuple[tuple[int, int], Any]] = {}
        self._changes = ChangeLog()
        self._node_ticks: IntArray = np.zeros(capacity, dtype=np.int64)
        self.node_tick = 0
        self._name_ranks: tuple[int, IntArray] = (-1, np.zeros(0, dtype=np.int64))

    # -- size and reading ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def capacity(self) -> int:
        """Rows that are allocated, N or more."""
        return self._capacity

    def axis_of(self, resource: str) -> int | None:
        """The index of a resource on the R axis; None if no node has any.

        The axis may grow, if nodes have more than ``EAGER_SCALARS`` resources.
        """
        axis = self._resource_axis.get(resource)
        if axis is None and resource in self._holders:
            self._add_axes([resource])
            axis = self._resource_axis.get(resource)
        return axis

    @property
    def name_ranks(self) -> IntArray:
        """The rank of each row's node by name, shape (N,).

        Rows are in the order of arrival; a decision that depends on an order uses this one.
        """
        if self._name_ranks[0] != self.epoch:
            order = sorted(range(len(self.nodes)), key=lambda row: self.nodes[row].name)
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
            ranks.flags.writeable = False
            self._name_ranks = self.epoch, ranks
        return self._name_ranks[1]

    @property
    def is_large(self) -> bool:
        """Whether some node's sums are so large that they are computed exactly."""
        return bool(self._large_rows)

    def pods_on(self, row: int) -> Iterable[PodInfo]:
        """The pods of one node, in order of arrival."""
        return self._pods_on.on(row).values()

    def row_of_pod(self, uid: str) -> int | None:
        """The row of the node that a pod is placed on; None if it is not placed or its node is unknown."""
        return self._row_of_pod.get(uid)

    @property
    def _coded(self) -> list[CodedColumn[Any]]:
        return [self.taints, *self.labels.values()]

    def label(self, key: str) -> CodedColumn[str]:
        """The column of a node label, coded on first use; one for all labels that no node has."""
        column = self.labels.get(key)
        if column is None:
            if key not in self._labelled:
                if len(self._unlabelled.ids) != self._capacity:
                    self._unlabelled = CodedColumn(self._capacity)
                return self._unlabelled
            column = self.labels[key] = CodedColumn(self._capacity)
            for row, node in enumerate(self.nodes):
                column.set(row, node.labels.get(key))
        return column

    def trim(self) -> None:
        """Drop what was counted for large pods, and the oldest columns of labels if there are too many.

        Call it when no caller has their ids.
        """
        for index in self._indexes.values():
            index.trim()
        if len(self.labels) <= FEWEST_LABELS:
            return
        most = max(FEWEST_LABELS, LABEL_BYTES // (8 * self._capacity))
        if len(self.labels) > most:
            for key in list(self.labels)[: len(self.labels) - most // 2]:
                del self.labels[key]
            self.epoch += 1

    def image(self, name: str) -> ImageState | None:
        """The size of an image and the rows of the nodes that have it; None if no node has."""
        if self._images is None:
            self._images = ImageTable()
            self._images.add_all(node.status.images for node in self.nodes)
        return self._images.find(name)

    def index(self, kind: type[IndexT]) -> IndexT:
        """The pod index of that class (constructed with this cluster), built on first use."""
        index: Any = self._indexes.get(kind)
        if index is None:
            self.count((kind,))
            index = self._indexes[kind]
        found: IndexT = index
        return found

    def count(self, kinds: Iterable[type[PodIndex]]) -> None:
        """Build the indexes of these classes that have not been built, in one pass over the pods."""
        new = {
            kind: cast("Callable[[Cluster], PodIndex]", kind)(self)
            for kind in kinds
            if kind not in self._indexes
        }
        placed = self._by_arrival()
        while new and (some := list(islice(placed, TOGETHER))):
            for index in new.values():
                index.add_all(some)
        for kind, index in new.items():
            self._indexes.setdefault(kind, index)  # one may have asked for another of these

    def has_index(self, kind: type[PodIndex]) -> bool:
        """Whether a pod index of that class has been built or adopted."""
        return kind in self._indexes

    def adopt(self, index: PodIndex) -> None:
        """Adopt a pod index that counts the present placed pods."""
        self._indexes[type(index)] = index

    def share_pods(self) -> Sequence[Mapping[str, PodInfo]]:
        """The pods of every row by uid, for the caller to keep: a row is copied before it changes again."""
        return self._pods_on.share()

    def placed(self) -> Iterator[tuple[PodInfo, int]]:
        """Every pod on a known node, with its row."""
        for row in range(len(self)):
            for pod in self.pods_on(row):
                yield pod, row

    def _by_arrival(self) -> Iterator[tuple[PodInfo, int]]:
        """The same in the order in which they came: siblings together, as they lie in memory."""
        rows = self._row_of_pod
        return ((pod, rows[uid]) for uid, pod in self.pods.items() if uid in rows)

    def requests_row(self, requests: dict[str, int]) -> IntArray:
        """Amounts along the R axis, shape (R,), including one pod. The axis may grow."""
        self._add_axes_of(requests)
        row = np.zeros(len(self.resources), dtype=np.int64)
        axes, absent = self._resource_axis, 0
        for name, amount in requests.items():
            axis = axes.get(name)
            if axis is not None:
                row[axis] = amount
            elif amount:
                absent += 1
        if absent:
            row[axes[ABSENT_RESOURCES]] = absent
        row[PODS] = 1
        return row

    # -- change log ----------------------------------------------------------------------------------

    @property
    def tick(self) -> int:
        """Increases with every change of a row."""
        return self._changes.tick

    def changed_since(self, tick: int) -> RowArray | None:
        """Rows that changed after ``tick``, ascending; None if the log does not reach back."""
        return self._changes.since(tick)

    def span_since(self, tick: int, most: int) -> tuple[int, int] | None:
        """Address and number of these rows, 64 bits each; None if there are more than ``most``.

        Also None if the log does not reach back. Valid until the next change; a row that changed twice occurs
        twice.
        """
        return self._changes.span_since(tick, most)

    def nodes_changed_since(self, rows: RowArray, tick: int) -> RowArray:
        """Those of ``rows`` whose node object (not only its pods) changed after ``tick``."""
        return rows[self._node_ticks[rows] > tick]

    def touch(self, rows: RowArray) -> None:
        """Log these rows as changed, as an index has changed values that decisions read by row."""
        for row in rows.tolist():
            self._changes.note(row)

    # -- nodes ---------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> bool:
        """Add a node or replace its object; returns whether anything that decisions read has changed."""
        row, had_many_taints = self.rows.get(node.name), False
        if row is None:
            amounts = allocatable_of(node)
            self._hold(amounts)
            self._labelled.add(node.labels)
            row = self._append(node)
        else:
            old = self.nodes[row]
            self.nodes[row] = node
            if decide_the_same(old, node):
                return False
            amounts = allocatable_of(node)
            self._holders.remove(_held(allocatable_of(old)))
            self._hold(amounts)
            self._labelled.add(node.labels)
            self._labelled.remove(old.labels)
            for key, column in self.labels.items():
                column.set(row, node.labels.get(key))
            if self._images is not None and old.status.images != node.status.images:
                self._images.remove(row, old.status.images)
                self._images.add(row, node.status.images)
            had_many_taints = len(old.spec.taints) > MOST_TAINTS
        self._describe(row, node, amounts)
        if had_many_taints and self.taints.compact(len(self.nodes), always=True):
            self.epoch += 1
        self.node_tick += 1
        self._changes.note(row)
        self._node_ticks[row] = self.tick
        return True

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods stay known and are placed again if it returns."""
        row = self.rows.pop(name, None)
        if row is None:
            return
        pods = dict(self._pods_on.on(row))
        for pod in pods.values():
            self._leave(pod, row)
            del self._row_of_pod[pod.uid]
        if pods:
            self._strays[name] = pods
        node = self.nodes[row]
        self._holders.remove(_held(allocatable_of(node)))
        self._labelled.remove(node.labels)
        if self._images is not None:
            self._images.remove(row, node.status.images)
        last = len(self.nodes) - 1
        if row != last:
            self._move(last, row)
        for index in self._indexes.values():
            if isinstance(index, KnowsNodes):
                index.forget_row(last)
        self.nodes.pop()
        self._pods_on.drop_last()
        for array in (self.allocatable, self.requested, self.nonzero_requested):
            array[last] = 0
        if len(node.spec.taints) > MOST_TAINTS:
            self.taints.compact(last, always=True)
        self.epoch += 1
        self.node_tick += 1

    def _append(self, node: Node) -> int:
        row = len(self.nodes)
        if row == self._capacity:
            self._grow(self._capacity * 2)
        self.nodes.append(node)
        self.rows[node.name] = row
        self._pods_on.append()
        for key, column in self.labels.items():
            column.set(row, node.labels.get(key))
        if self._images is not None:
            self._images.add(row, node.status.images)
        self.epoch += 1
        strays = list(self._strays.pop(node.name, {}).values())
        if strays:
            self._enter_all(strays, [row] * len(strays))
        return row

    def _describe(self, row: int, node: Node, amounts: dict[str, int]) -> None:
        self.allocatable[row] = 0
        for name, amount in amounts.items():
            if (axis := self._resource_axis.get(name)) is not None:
                self.allocatable[row, axis] = amount
        self.unschedulable[row] = node.spec.unschedulable
        self.taints.set(row, tuple(node.spec.taints))
        for column in self._coded:
            if column.compact(len(self.nodes)):
                self.epoch += 1

    def _move(self, source: int, target: int) -> None:
        node = self.nodes[source]
        self.nodes[target] = node
        self.rows[node.name] = target
        self._pods_on.move(source, target)
        for uid in self._pods_on.on(target):
            self._row_of_pod[uid] = target
        if source in self._large_rows:
            self._large_rows.remove(source)
            self._large_rows.add(target)
        for array in (
            self.allocatable,
            self.requested,
            self.nonzero_requested,
            self.unschedulable,
            self._node_ticks,
        ):
            array[target] = array[source]
        for column in self._coded:
            column.move(source, target)
        if self._images is not None:
            self._images.move_row(source, target, node.status.images)
        for index in self._indexes.values():
            index.move_row(source, target)

    # -- pods ----------------------------------------------------------------------------------------

    def place(self, pod: PodInfo, node: str) -> None:
        """Place a pod on a node; a pod that is already placed is moved or replaced.

        A pod on an unknown node is kept aside.
        """
        standing = self.pods.get(pod.uid)
        if standing is not None:
            row = self._row_of_pod.get(pod.uid)
            if row is not None and row == self.rows.get(node) and counts_the_same(standing, pod):
                self._pods_on.writable(row)[pod.uid] = self.pods[pod.uid] = pod
                for index in self._indexes.values():
                    index.renew(standing, pod, row)
                return
            self.displace(pod.uid)
        self.pods[pod.uid] = pod
        row = self.rows.get(node)
        if row is None:
            self._strays.setdefault(node, {})[pod.uid] = pod
            return
        self._enter(pod, row)
        self._row_of_pod[pod.uid] = row

    def place_new(self, pods: Sequence[PodInfo]) -> None:
        """Place pods that are not placed on the nodes that they name, as if one after the other."""
        entering, rows = [], []
        for pod in pods:
            node = pod.pod.spec.node_name
            self.pods[pod.uid] = pod
            row = self.rows.get(node)
            if row is None:
                self._strays.setdefault(node, {})[pod.uid] = pod
            else:
                entering.append(pod)
                rows.append(row)
        self._enter_all(entering, rows)

    def displace(self, uid: str) -> PodInfo | None:
        """Remove a pod from its node; returns the pod as it was placed, or None if it was not."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return None
        row = self._row_of_pod.pop(uid, None)
        if row is None:
            for name, strays in self._strays.items():
                if strays.pop(uid, None) is not None:
                    if not strays:
                        del self._strays[name]
                    break
            return pod
        self._leave(pod, row)
        return pod

    def _enter(self, pod: PodInfo, row: int) -> None:
        self._pods_on.writable(row)[pod.uid] = pod
        if pod.is_large or row in self._large_rows:
            self._recount(row)
        else:
            self._count(pod, row, 1)
        for index in self._indexes.values():
            index.add(pod, row)
        self._changes.note(row)

    def _enter_all(self, pods: Sequence[PodInfo], rows: Sequence[int]) -> None:
        """The same as placing one after the other, with a single addition to the columns."""
        if self._large_rows or any(pod.is_large for pod in pods) or len(pods) > LOG_LENGTH // 2:
            for pod, row in zip(pods, rows, strict=True):
                self._enter(pod, row)
                self._row_of_pod[pod.uid] = row
            return
        amounts = {id(pod.requests): pod.requests for pod in pods}
        for requests in amounts.values():
            self._add_axes_of(requests)
        vectors = np.array([self.requests_row(each) for each in amounts.values()])
        which = {key: place for place, key in enumerate(amounts)}
        writable, row_of_pod = self._pods_on.writable, self._row_of_pod
        for pod, row in zip(pods, rows, strict=True):
            writable(row)[pod.uid] = pod
            row_of_pod[pod.uid] = row
        if pods:
            at = np.array(rows)
            added = vectors[[which[id(pod.requests)] for pod in pods]]
            for axis in np.flatnonzero(vectors.any(axis=0)).tolist():
                np.add.at(self.requested[:, axis], at, added[:, axis])
            np.add.at(self.nonzero_requested[:, CPU], at, [pod.nonzero_cpu_milli for pod in pods])
            np.add.at(self.nonzero_requested[:, MEMORY], at, [pod.nonzero_memory_bytes for pod in pods])
        for index in self._indexes.values():
            index.add_all(zip(pods, rows, strict=True))
        self._changes.note_all(rows, len(rows))

    def _leave(self, pod: PodInfo, row: int) -> None:
        del self._pods_on.writable(row)[pod.uid]
        if row in self._large_rows:
            self._recount(row)
        else:
            self._count(pod, row, -1)
        for index in self._indexes.values():
            index.remove(pod, row)
        self._changes.note(row)

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        """Add a pod's amounts to its node's, or subtract them."""
        requested, axes, absent = self.requested, self._resource_axis, 0
        for name, amount in pod.requests.items():
            axis = axes.get(name)
            if axis is not None:
                requested[row, axis] += sign * amount
            elif amount:
                absent += 1
        if absent:
            at = self._absent_axis()
            requested = self.requested
            requested[row, at] += sign * absent
        requested[row, PODS] += sign
        self.nonzero_requested[row, CPU] += sign * pod.nonzero_cpu_milli
        self.nonzero_requested[row, MEMORY] += sign * pod.nonzero_memory_bytes

    def _recount(self, row: int) -> None:
        """Sum a node's requests in exact integers: absurd amounts must not wrap around into free room."""
        pods = list(self.pods_on(row))
        for pod in pods:
            self._add_axes_of(pod.requests)
        sums = [0] * len(self.resources)
        axes = self._resource_axis
        for pod in pods:
            for name, amount in pod.requests.items():
                axis = axes.get(name)
                if axis is not None:
                    sums[axis] += amount
                elif amount:
                    sums[axes[ABSENT_RESOURCES]] += 1
        sums[PODS] = len(pods)
        self.requested[row] = [min(amount, LARGEST_AMOUNT) for amount in sums]
        self.nonzero_requested[row] = [
            min(sum(pod.nonzero_cpu_milli for pod in pods), LARGEST_AMOUNT),
            min(sum(pod.nonzero_memory_bytes for pod in pods), LARGEST_AMOUNT),
        ]
        if any(pod.is_large for pod in pods):
            self._large_rows.add(row)
        else:
            self._large_rows.discard(row)

    # -- growing and forking -------------------------------------------------------------------------

    def _hold(self, amounts: Mapping[str, int]) -> None:
        """Note what a node has, before its row is written; the first resources get an axis."""
        held = _held(amounts)
        self._holders.add(held)
        room = len(FIXED_RESOURCES) + EAGER_SCALARS - len(self.resources)
        new = [name for name in held if name not in self._resource_axis] if room > 0 else []
        if new:
            self._add_axes(new[:room])
        elif len(self.resources) > len(FIXED_RESOURCES) + MOST_SCALARS // 2:
            self._drop_axes()

    def _add_axes_of(self, requests: Mapping[str, int]) -> None:
        """Give an axis to what nodes have, and one to all the rest."""
        axes = self._resource_axis
        if axes.keys() >= requests.keys():
            return
        missing = [name for name, amount in requests.items() if amount and name not in axes]
        if held := [name for name in missing if name in self._holders]:
            self._add_axes(held)
        if len(held) < len(missing) or any(name not in self._resource_axis for name in held):
            self._absent_axis()

    def _absent_axis(self) -> int:
        axis = self._resource_axis.get(ABSENT_RESOURCES)
        return self._append_axes([ABSENT_RESOURCES]) if axis is None else axis

    def _append_axes(self, names: Sequence[str]) -> int:
        """Append axes of zeros; returns the first of them."""
        first = len(self.resources)
        self._resource_axis = self._resource_axis | {
            name: axis for axis, name in enumerate(names, start=first)
        }
        self.resources = (*self.resources, *names)
        self.allocatable, self.requested = (
            _wider(array, len(self.resources)) for array in (self.allocatable, self.requested)
        )
        self.epoch += 1
        return first

    def _add_axes(self, names: Iterable[str]) -> None:
        """Append axes, as many as allowed, and fill them from the nodes and their pods."""
        room = len(FIXED_RESOURCES) + MOST_SCALARS - len(self.resources)
        new = list(names)[: max(room, 0)]
        if not new:
            return
        self._append_axes(new)
        for row, node in enumerate(self.nodes):
            if any(name in node.status.allocatable for name in new):
                amounts = allocatable_of(node)
                for name in new:
                    self.allocatable[row, self._resource_axis[name]] = amounts.get(name, 0)
        if ABSENT_RESOURCES in self._resource_axis:
            counted = {row for pod, row in self.placed() if any(map(pod.requests.get, new))}
            for row in counted:
                self._recount(row)

    def _drop_axes(self) -> None:
        """Drop the axes that no placed pod requests, if they are many; all are numbered again."""
        count, fixed = len(self.nodes), len(FIXED_RESOURCES)
        used: BoolArray = np.array(self.requested[:count].any(axis=0))
        used[:fixed] = True
        if np.count_nonzero(~used) < MOST_SCALARS // 4:
            return
        kept = np.flatnonzero(used).tolist()
        self.resources = tuple([self.resources[axis] for axis in kept])
        self._resource_axis = {name: axis for axis, name in enumerate(self.resources)}
        self.allocatable = np.asfortranarray(self.allocatable[:, kept])
        self.requested = np.asfortranarray(self.requested[:, kept])
        self._indexes = {
            kind: index for kind, index in self._indexes.items() if not isinstance(index, KnowsAxes)
        }
        self.epoch += 1

    def _grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.allocatable = grown(self.allocatable, capacity)
        self.requested = grown(self.requested, capacity)
        self.nonzero_requested = grown(self.nonzero_requested, capacity)
        self.unschedulable = grown(self.unschedulable, capacity)
        self._node_ticks = grown(self._node_ticks, capacity)
        for column in self._coded:
            column.grow(capacity)
        for index in self._indexes.values():
            index.grow(capacity)
        self.epoch += 1

    def fork(self) -> "Cluster":
        """An independent copy for simulated moves; neither side sees the other's changes."""
        twin = Cluster(self.templates, capacity=0)
        twin.objects = self.objects.fork()
        twin.nodes = list(self.nodes)
        twin.rows = dict(self.rows)
        twin.pods = layered(self.pods)
        twin.resources = self.resources
        twin.epoch = self.epoch
        twin.node_tick = self.node_tick
        twin._row_of_pod = layered(self._row_of_pod)
        twin._strays = {node: dict(pods) for node, pods in self._strays.items()}
        twin._pods_on = self._pods_on.fork()
        twin._large_rows = set(self._large_rows)
        twin._resource_axis = self._resource_axis
        twin._holders = self._holders.fork()
        twin._labelled = self._labelled.fork()
        twin._capacity = self._capacity
        twin.allocatable = self.allocatable.copy(order="F")
        twin.requested = self.requested.copy(order="F")
        twin.nonzero_requested = self.nonzero_requested.copy(order="F")
        twin.unschedulable = self.unschedulable.copy()
        twin.taints = self.taints.copy()
        twin.labels = {key: column.copy() for key, column in self.labels.items()}
        twin._images = None if self._images is None else self._images.fork()
        twin._indexes = {kind: index.fork() for kind, index in self._indexes.items()}
        twin._changes = ChangeLog(self.tick)
        twin._node_ticks = self._node_ticks.copy()
        twin._name_ranks = self._name_ranks
        for index in twin._indexes.values():
            if isinstance(index, FollowsFork):
                index.follow(twin)
        return twin

    # -- invariants ----------------------------------------------------------------------------------

    @property
    def strays(self) -> Mapping[str, Mapping[str, PodInfo]]:
        """Pods by uid, by the name of an unknown node."""
        return self._strays


def _held(amounts: Mapping[str, int]) -> list[str]:
    """The scalar resources of which there is some."""
    return [name for name, amount in amounts.items() if amount and name not in FIXED_RESOURCES]


def _wider(array: IntArray, axes: int) -> IntArray:
    """A copy of an array of shape (capacity, R), with more axes."""
    wider = np.zeros((len(array), axes), dtype=np.int64, order="F")
    wider[:, : array.shape[1]] = array
    return wider
