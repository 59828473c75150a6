"""The cluster as columns: one writer, no I/O; everything else reads it through a Snapshot.

Axis letters: N nodes, R resources. Row ``n`` of every column is the same node; rows are dense, and when
a node goes the last one takes its row (``epoch`` then rises, and whoever kept rows forgets them).

Changes are logged by row: ``changed_since(tick)`` names the nodes to evaluate again, so that a cached
mask costs what changed, not what exists. ``validate()`` recomputes all from the objects.

A fork is an independent cluster for trying moves: arrays of a few columns are copied at once (0.2 ms at
5,000 nodes), counters and pod lists when first written (docs/adr/0003).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

import numpy as np

from plimsoll.model.columns import (
    BoolArray,
    IdArray,
    IntArray,
    LabelColumn,
    PodIndex,
    RowArray,
    distinct,
    grown,
)
from plimsoll.model.images import ImageState, ImageTable
from plimsoll.model.kept_columns import KeptColumns
from plimsoll.model.node import Node, Taint
from plimsoll.model.objects import ClusterObjects
from plimsoll.model.pod_info import LARGEST_AMOUNT, PodInfo, Templates
from plimsoll.model.quantity import milli, units

IndexT = TypeVar("IndexT", bound=PodIndex)

CPU, MEMORY, STORAGE, PODS = range(4)
FIXED_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")

#: The change log is cut to half when it grows longer than this; older readers evaluate all nodes again.
LOG_LENGTH = 65_536


class Cluster:
    """Nodes, and the pods placed on them, as columns.

    Attributes:
        nodes: Node objects by row.
        rows: Row by node name.
        pods: Every placed pod by uid (also those whose node object is not known).
        resources: Names of the R axis: cpu (milli), memory (bytes), ephemeral-storage (bytes), pods
            (count), then scalar resources (units) in order of appearance.
        epoch: Rises when rows or axes change their meaning.
        objects: Everything else that decisions read: namespaces, volumes, workloads, budgets.
        kept: Columns that plugins derived from these.
    """

    def __init__(self, templates: Templates | None = None, capacity: int = 64) -> None:
        self.templates = templates or Templates()
        self.objects = ClusterObjects()
        self.nodes: list[Node] = []
        self.rows: dict[str, int] = {}
        self.pods: dict[str, PodInfo] = {}
        self.resources: tuple[str, ...] = FIXED_RESOURCES
        self.epoch = 0
        self.tick = 0
        self._row_of_pod: dict[str, int] = {}
        self._strays: dict[str, dict[str, PodInfo]] = {}
        self._pods_on: list[dict[str, PodInfo]] = []
        self._owned_rows: set[int] = set()
        self._large_rows: set[int] = set()
        self._resource_axis = {name: axis for axis, name in enumerate(FIXED_RESOURCES)}
        self._capacity = capacity
        self.allocatable: IntArray = np.zeros((capacity, len(FIXED_RESOURCES)), dtype=np.int64, order="F")
        self.requested: IntArray = np.zeros((capacity, len(FIXED_RESOURCES)), dtype=np.int64, order="F")
        self.nonzero_requested: IntArray = np.zeros((capacity, 2), dtype=np.int64, order="F")
        self.unschedulable: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.taint_ids: IdArray = np.zeros(capacity, dtype=np.int32)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_set_id: dict[tuple[Taint, ...], int] = {(): 0}
        self._labels: dict[str, LabelColumn] = {}
        self._images: ImageTable | None = None
        self._indexes: dict[type[PodIndex], PodIndex] = {}
        self.kept = KeptColumns()
        self._log: list[int] = []
        self._log_start = 0
        self._node_ticks: IntArray = np.zeros(capacity, dtype=np.int64)
        self.node_tick = 0

    # -- size and reading ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def capacity(self) -> int:
        """Rows that are allocated, N or more."""
        return self._capacity

    def axis_of(self, resource: str) -> int | None:
        """The index of a resource on the R axis, None when neither a node nor a pod ever named it."""
        return self._resource_axis.get(resource)

    def pods_on(self, row: int) -> Iterable[PodInfo]:
        """The pods of one node, in order of arrival."""
        return self._pods_on[row].values()

    def row_of_pod(self, uid: str) -> int | None:
        """The row of the node that a pod is placed on; None when not placed or its node is unknown."""
        return self._row_of_pod.get(uid)

    def label(self, key: str) -> LabelColumn:
        """The column of a node label, coded on first use and kept since."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self._capacity)
            for row, node in enumerate(self.nodes):
                column.set(row, node.labels.get(key))
        return column

    def image(self, name: str) -> ImageState | None:
        """The size of an image and the rows of the nodes that have it; None when no node has."""
        if self._images is None:
            self._images = ImageTable()
            for row, node in enumerate(self.nodes):
                self._images.add(row, node.status.images)
        return self._images.find(name)

    def index(self, kind: type[IndexT]) -> IndexT:
        """The pod index of that class (constructed with this cluster), built on first use."""
        found = self._indexes.get(kind)
        if found is None:
            found = cast("Callable[[Cluster], PodIndex]", kind)(self)
            for pod, row in self.placed():
                found.add(pod, row)
            self._indexes[kind] = found
        return cast("IndexT", found)

    def placed(self) -> Iterator[tuple[PodInfo, int]]:
        """Every pod on a known node, with its row."""
        for row, pods in enumerate(self._pods_on):
            for pod in pods.values():
                yield pod, row

    def requests_row(self, requests: dict[str, int]) -> IntArray:
        """Amounts along the R axis, shape (R,), counting one pod; new resources get an axis."""
        for name in requests:
            if name not in self._resource_axis:
                self._add_resource(name)
        row = np.zeros(len(self.resources), dtype=np.int64)
        for name, amount in requests.items():
            row[self._resource_axis[name]] = amount
        row[PODS] = 1
        return row

    # -- change log ----------------------------------------------------------------------------------

    def changed_since(self, tick: int) -> RowArray | None:
        """Rows that changed after ``tick``, ascending; None when the log does not reach back."""
        if tick >= self.tick:
            return np.empty(0, dtype=np.intp)
        if tick < self._log_start:
            return None
        return distinct(self._log[tick - self._log_start :])

    def nodes_changed_since(self, rows: RowArray, tick: int) -> RowArray:
        """Those of ``rows`` whose node object (not only its pods) changed after ``tick``."""
        return rows[self._node_ticks[rows] > tick]

    def _touch(self, row: int) -> None:
        self._log.append(row)
        self.tick += 1
        if len(self._log) > LOG_LENGTH:
            cut = LOG_LENGTH // 2
            del self._log[:cut]
            self._log_start += cut

    # -- nodes ---------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> bool:
        """Add a node or replace its object; whether anything that decisions read has changed.

        Raises:
            QuantityError: An allocatable amount is no quantity; nothing was changed.
        """
        amounts = allocatable_of(node)
        row = self.rows.get(node.name)
        if row is None:
            row = self._append(node)
        else:
            old = self.nodes[row]
            self.nodes[row] = node
            if (
                old.spec == node.spec
                and old.labels == node.labels
                and old.status.allocatable == node.status.allocatable
                and old.status.images == node.status.images
                and states_of(old) == states_of(node)
                and old.metadata.annotations == node.metadata.annotations
                and old.status.declared_features == node.status.declared_features
            ):
                return False
            for key, column in self._labels.items():
                column.set(row, node.labels.get(key))
            if self._images is not None and old.status.images != node.status.images:
                self._images.remove(row, old.status.images)
                self._images.add(row, node.status.images)
        self._describe(row, node, amounts)
        self.node_tick += 1
        self._touch(row)
        self._node_ticks[row] = self.tick
        return True

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods stay known and come back with it."""
        row = self.rows.pop(name, None)
        if row is None:
            return
        pods = dict(self._pods_on[row])
        for pod in pods.values():
            self._leave(pod, row)
            del self._row_of_pod[pod.uid]
        if pods:
            self._strays[name] = pods
        if self._images is not None:
            self._images.remove(row, self.nodes[row].status.images)
        last = len(self.nodes) - 1
        if row != last:
            self._move(last, row)
        self.nodes.pop()
        self._pods_on.pop()
        self._owned_rows.discard(last)
        for array in (self.allocatable, self.requested, self.nonzero_requested):
            array[last] = 0
        self.epoch += 1
        self.node_tick += 1

    def _append(self, node: Node) -> int:
        row = len(self.nodes)
        if row == self._capacity:
            self._grow(self._capacity * 2)
        self.nodes.append(node)
        self.rows[node.name] = row
        self._pods_on.append({})
        self._owned_rows.add(row)
        for key, column in self._labels.items():
            column.set(row, node.labels.get(key))
        if self._images is not None:
            self._images.add(row, node.status.images)
        self.epoch += 1
        for pod in self._strays.pop(node.name, {}).values():
            self._enter(pod, row)
            self._row_of_pod[pod.uid] = row
        return row

    def _describe(self, row: int, node: Node, amounts: dict[str, int]) -> None:
        for name in amounts:
            if name not in self._resource_axis:
                self._add_resource(name)
        self.allocatable[row] = 0
        for name, amount in amounts.items():
            self.allocatable[row, self._resource_axis[name]] = amount
        self.unschedulable[row] = node.spec.unschedulable
        taints = tuple(node.spec.taints)
        found = self._taint_set_id.get(taints)
        if found is None:
            found = self._taint_set_id[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        self.taint_ids[row] = found

    def _move(self, source: int, target: int) -> None:
        node = self.nodes[source]
        self.nodes[target] = node
        self.rows[node.name] = target
        self._pods_on[target] = self._pods_on[source]
        if source in self._owned_rows:
            self._owned_rows.add(target)
        else:
            self._owned_rows.discard(target)
        for uid in self._pods_on[target]:
            self._row_of_pod[uid] = target
        if source in self._large_rows:
            self._large_rows.remove(source)
            self._large_rows.add(target)
        for array in (
            self.allocatable,
            self.requested,
            self.nonzero_requested,
            self.unschedulable,
            self.taint_ids,
            self._node_ticks,
        ):
            array[target] = array[source]
        for column in self._labels.values():
            column.ids[target] = column.ids[source]
        if self._images is not None:
            self._images.move_row(source, target, node.status.images)
        for index in self._indexes.values():
            index.move_row(source, target)

    # -- pods ----------------------------------------------------------------------------------------

    def place(self, pod: PodInfo, node: str) -> None:
        """Put a pod on a node; a pod that is placed already is moved or replaced.

        A node that is not known (yet) keeps the pod aside.
        """
        standing = self.pods.get(pod.uid)
        if standing is not None:
            row = self._row_of_pod.get(pod.uid)
            if row is not None and row == self.rows.get(node) and alike(standing, pod):
                self._own(row)[pod.uid] = self.pods[pod.uid] = pod
                return
            self.displace(pod.uid)
        self.pods[pod.uid] = pod
        row = self.rows.get(node)
        if row is None:
            self._strays.setdefault(node, {})[pod.uid] = pod
            return
        self._enter(pod, row)
        self._row_of_pod[pod.uid] = row

    def displace(self, uid: str) -> PodInfo | None:
        """Take a pod off its node; the pod as it was placed, or None when it was not."""
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
        amounts = self.requests_row(pod.requests)
        self._own(row)[pod.uid] = pod
        if pod.is_large or row in self._large_rows:
            self._recount(row)
        else:
            self.requested[row] += amounts
            self.nonzero_requested[row, CPU] += pod.nonzero_cpu_milli
            self.nonzero_requested[row, MEMORY] += pod.nonzero_memory_bytes
        for index in self._indexes.values():
            index.add(pod, row)
        self._touch(row)

    def _leave(self, pod: PodInfo, row: int) -> None:
        amounts = self.requests_row(pod.requests)
        del self._own(row)[pod.uid]
        if row in self._large_rows:
            self._recount(row)
        else:
            self.requested[row] -= amounts
            self.nonzero_requested[row, CPU] -= pod.nonzero_cpu_milli
            self.nonzero_requested[row, MEMORY] -= pod.nonzero_memory_bytes
        for index in self._indexes.values():
            index.remove(pod, row)
        self._touch(row)

    def _recount(self, row: int) -> None:
        """Sum a node's requests in exact integers: absurd amounts must not wrap around into free room."""
        pods = self._pods_on[row].values()
        sums = [0] * len(self.resources)
        for pod in pods:
            for name, amount in pod.requests.items():
                sums[self._resource_axis[name]] += amount
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

    def _own(self, row: int) -> dict[str, PodInfo]:
        if row not in self._owned_rows:
            self._pods_on[row] = dict(self._pods_on[row])
            self._owned_rows.add(row)
        return self._pods_on[row]

    # -- growing and forking -------------------------------------------------------------------------

    def _add_resource(self, name: str) -> None:
        self._resource_axis = {**self._resource_axis, name: len(self.resources)}
        self.resources = (*self.resources, name)
        empty = np.zeros((self._capacity, 1), dtype=np.int64)
        self.allocatable = np.asfortranarray(np.hstack([self.allocatable, empty]))
        self.requested = np.asfortranarray(np.hstack([self.requested, empty]))
        self.epoch += 1

    def _grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.allocatable = grown(self.allocatable, capacity)
        self.requested = grown(self.requested, capacity)
        self.nonzero_requested = grown(self.nonzero_requested, capacity)
        self.unschedulable = grown(self.unschedulable, capacity)
        self.taint_ids = grown(self.taint_ids, capacity)
        self._node_ticks = grown(self._node_ticks, capacity)
        for column in self._labels.values():
            column.grow(capacity)
        for index in self._indexes.values():
            index.grow(capacity)
        self.epoch += 1

    def fork(self) -> "Cluster":
        """An independent copy for trying moves; neither side ever sees the other's changes."""
        twin = Cluster(self.templates, capacity=0)
        twin.objects = self.objects.fork()
        twin.nodes = list(self.nodes)
        twin.rows = dict(self.rows)
        twin.pods = dict(self.pods)
        twin.resources = self.resources
        twin.epoch = self.epoch
        twin.tick = self.tick
        twin.node_tick = self.node_tick
        twin._row_of_pod = dict(self._row_of_pod)
        twin._strays = {node: dict(pods) for node, pods in self._strays.items()}
        twin._pods_on = list(self._pods_on)
        twin._owned_rows = set()
        twin._large_rows = set(self._large_rows)
        self._owned_rows = set()
        twin._resource_axis = self._resource_axis
        twin._capacity = self._capacity
        twin.allocatable = self.allocatable.copy(order="F")
        twin.requested = self.requested.copy(order="F")
        twin.nonzero_requested = self.nonzero_requested.copy(order="F")
        twin.unschedulable = self.unschedulable.copy()
        twin.taint_ids = self.taint_ids.copy()
        twin.taint_sets = list(self.taint_sets)
        twin._taint_set_id = dict(self._taint_set_id)
        twin._labels = {key: column.copy() for key, column in self._labels.items()}
        twin._images = None if self._images is None else self._images.fork()
        twin._indexes = {kind: index.fork() for kind, index in self._indexes.items()}
        twin._log = []
        twin._log_start = self.tick
        twin._node_ticks = self._node_ticks.copy()
        return twin

    # -- invariants ----------------------------------------------------------------------------------

    def validate(self) -> None:
        """Compare every column with one recomputed from the objects.

        Raises:
            AssertionError: Some incremental update went wrong.
        """
        fresh = Cluster(self.templates)
        for node in self.nodes:
            fresh.set_node(node)
        for pod, row in self.placed():
            fresh.place(pod, self.nodes[row].name)
        n = len(self.nodes)
        assert len(self.rows) == n == len(self._pods_on)
        assert all(self.rows[node.name] == row for row, node in enumerate(self.nodes))
        for name in self.resources:
            mine = self.axis_of(name)
            theirs = fresh.axis_of(name)
            if theirs is None:
                assert not self.requested[:n, mine].any()
                assert not self.allocatable[:n, mine].any()
                continue
            assert (self.requested[:n, mine] == fresh.requested[:n, theirs]).all(), name
            assert (self.allocatable[:n, mine] == fresh.allocatable[:n, theirs]).all(), name
        assert (self.nonzero_requested[:n] == fresh.nonzero_requested[:n]).all()
        assert (self.unschedulable[:n] == fresh.unschedulable[:n]).all()
        for row in range(n):
            assert self.taint_sets[self.taint_ids[row]] == tuple(self.nodes[row].spec.taints)
            for key, column in self._labels.items():
                value = self.nodes[row].labels.get(key)
                assert (column.values[column.ids[row]] if column.ids[row] >= 0 else None) == value
        known = {pod.uid for pod, _ in self.placed()}
        strays = {uid for pods in self._strays.values() for uid in pods}
        assert known == set(self._row_of_pod)
        assert known | strays == set(self.pods)
        assert not known & strays


def allocatable_of(node: Node) -> dict[str, int]:
    """What pods may take of a node: cpu in milli, the rest in units.

    Raises:
        QuantityError: An amount is no quantity.
    """
    return {
        name: max(0, min(milli(quantity) if name == "cpu" else units(quantity), LARGEST_AMOUNT))
        for name, quantity in node.status.allocatable.items()
    }


def states_of(node: Node) -> list[tuple[str, str]]:
    """The conditions without their times, which every heartbeat renews."""
    return [(condition.type, condition.status) for condition in node.status.conditions]


def alike(one: PodInfo, other: PodInfo) -> bool:
    """Whether two states of a pod count the same in every column and index."""
    return (
        one.template is other.template
        and one.requests == other.requests
        and one.nonzero_cpu_milli == other.nonzero_cpu_milli
        and one.nonzero_memory_bytes == other.nonzero_memory_bytes
        and one.is_terminating == other.is_terminating
    )
