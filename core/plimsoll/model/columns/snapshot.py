"""The cluster as decisions read it: read-only columns over all nodes, or over some of them.

Axis letters: N nodes of this snapshot, R resources. Units: cpu in milli, memory and storage in bytes,
pods and scalar resources in units, all int64. Every array is a read-only view of memory that it does not own,
and every list is a tuple: plugins of all profiles read the same cluster.

``snapshot.at(rows)`` is the same cluster restricted to some nodes: a plugin that computes on
``snapshot.allocatable`` works on all nodes or on the three that changed without knowing which.
``snapshot.whole`` has data about the cluster as a whole (domains, totals).
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plimsoll.model.columns.cluster import CPU, MEMORY, PODS, STORAGE, Cluster
from plimsoll.model.columns.coded_column import Coding
from plimsoll.model.columns.columns import (
    ABSENT,
    BoolArray,
    IdArray,
    IntArray,
    PodIndex,
    RowArray,
    columns_of,
    read_only,
)
from plimsoll.model.kinds.node import Node, Taint
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo

IndexT = TypeVar("IndexT", bound=PodIndex)
ScalarT = TypeVar("ScalarT", bound=np.generic)

__all__ = ["ABSENT", "CPU", "MEMORY", "PODS", "STORAGE", "Snapshot"]


class Capacity(NamedTuple):
    """The allocatable of nodes for K resources, as divisors.

    Attributes:
        doubles: Shape (K, N): allocatable; 1 if a node has none.
        counted: Shape (K, N): whether a node has some; None: every node has.
        is_exact: Whether every node's are below EXACT_AMOUNT.
    """

    doubles: NDArray[np.float64]
    counted: BoolArray | None
    is_exact: bool


class HeldImage(NamedTuple):
    """An image that nodes have.

    Attributes:
        size_bytes: As the first of these nodes reports it.
        rows: Their rows, ascending.
    """

    size_bytes: int
    rows: RowArray


#: 100 times any integer below is a double.
EXACT_AMOUNT = 2**46


class Snapshot:
    """A window on a cluster. Valid until the cluster changes; a new one costs nothing.

    Args:
        cluster: The cluster.
        rows: Indices of the nodes, as ``Cluster.changed_since`` returns them: plugins see this array. For
            others, there is ``at``.
    """

    __slots__ = (
        "_allocatable",
        "_capacity",
        "_cluster",
        "_is_supposed",
        "_length",
        "_nonzero_requested",
        "_requested",
        "_rows",
    )

    def __init__(self, cluster: Cluster, rows: RowArray | None = None) -> None:
        self._cluster = cluster
        self._rows = rows
        self._length = len(cluster.nodes if rows is None else rows)
        self._allocatable: IntArray | None = None
        self._requested: IntArray | None = None
        self._nonzero_requested: IntArray | None = None
        self._is_supposed = False
        self._capacity: tuple[tuple[int, ...], Capacity] | None = None

    def __len__(self) -> int:
        return self._length

    @property
    def whole(self) -> "Snapshot":
        """All nodes of the same cluster."""
        return self if self._rows is None else Snapshot(self._cluster)

    @property
    def is_whole(self) -> bool:
        """Whether these are all nodes."""
        return self._rows is None

    def at(self, rows: RowArray) -> "Snapshot":
        """The nodes of those rows (indices into the whole cluster), in that order."""
        return Snapshot(self._cluster, read_only(rows))

    def if_requested(self, requested: IntArray) -> "Snapshot":
        """The same nodes, as if the pods on them requested that much; shape (N, R)."""
        twin = Snapshot(self._cluster, self._rows)
        twin._requested = read_only(requested)
        twin._is_supposed = True
        return twin

    @property
    def rows(self) -> RowArray:
        """Shape (N,): the row of each node in the whole cluster."""
        if self._rows is None:
            return np.arange(len(self._cluster), dtype=np.intp)
        return self._rows

    @property
    def tick(self) -> int:
        """Increases with every change of a node or its pods."""
        return self._cluster.tick

    def changed_since(self, tick: int) -> RowArray | None:
        """Rows (of the whole cluster) that changed after ``tick``; None if that is too long ago."""
        return self._cluster.changed_since(tick)

    @property
    def node_mark(self) -> tuple[int, int]:
        """Changes when a node object changed or rows moved: values computed from nodes are then stale."""
        return self._cluster.node_tick, self._cluster.epoch

    # -- nodes ---------------------------------------------------------------------------------------

    def node(self, node: int) -> Node:
        """The object of the node at that position."""
        return self._cluster.nodes[node if self._rows is None else self._rows[node]]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The node objects, in order."""
        nodes = self._cluster.nodes
        return tuple(nodes) if self._rows is None else tuple([nodes[row] for row in self._rows])

    def row_of(self, name: str) -> int | None:
        """The row of a node in the whole cluster, None if there is no such node."""
        return self._cluster.rows.get(name)

    @property
    def unschedulable(self) -> BoolArray:
        """Shape (N,): ``spec.unschedulable``."""
        return self.cut(self._cluster.unschedulable)

    @property
    def taint_ids(self) -> IdArray:
        """Shape (N,): index of each node's taints in ``taint_sets``."""
        return self.cut(self._cluster.taints.ids)

    @property
    def taint_sets(self) -> tuple[tuple[Taint, ...], ...]:
        """The distinct lists of taints. A list may be unused."""
        return tuple(self._cluster.taints.values)

    def label_ids(self, key: str) -> IdArray:
        """Shape (N,): coded values of a label, ``ABSENT`` (-1) if a node lacks it."""
        return self.cut(self._cluster.label(key).ids)

    def label_column(self, key: str) -> IdArray:
        """Shape (capacity,): the same for all rows of the whole cluster, those without a node included."""
        return read_only(self._cluster.label(key).ids)

    def label(self, key: str) -> Coding[str]:
        """The coding of a label: ``values[id]`` and ``find(value)``."""
        return Coding(self._cluster.label(key))

    @property
    def domains(self) -> dict[str, tuple[Hashable, Any]]:
        """What is known about the domains of labels, with the mark of the nodes; callers add to it."""
        return self._cluster.domains

    # -- resources -----------------------------------------------------------------------------------

    @property
    def resources(self) -> tuple[str, ...]:
        """The R axis: cpu, memory, ephemeral-storage, pods, then scalar resources."""
        return self._cluster.resources

    def axis_of(self, resource: str) -> int | None:
        """The index of a resource on the R axis, None if no node has any.

        Call it before ``allocatable`` and ``requested``, as the axis may grow.
        """
        axis = self._cluster.axis_of(resource)
        if self._requested is not None and axis is not None and axis >= self._requested.shape[1]:
            if self._is_supposed:
                return None
            self._allocatable = self._requested = None
        return axis

    @property
    def allocatable(self) -> IntArray:
        """Shape (N, R): the allocatable amounts."""
        if self._allocatable is None:
            self._allocatable = self.cut(self._cluster.allocatable)
        return self._allocatable

    @property
    def requested(self) -> IntArray:
        """Shape (N, R): the requests of the placed pods; ``[:, PODS]`` counts them."""
        if self._requested is None:
            self._requested = self.cut(self._cluster.requested)
        return self._requested

    @property
    def nonzero_requested(self) -> IntArray:
        """Shape (N, 2), cpu and memory, with kube-scheduler's minimum for containers that request none."""
        if self._nonzero_requested is None:
            self._nonzero_requested = self.cut(self._cluster.nonzero_requested)
        return self._nonzero_requested

    def kept(
        self, key: Hashable, compute: "Callable[[Snapshot], NDArray[Any]]", *, of_nodes: bool = False
    ) -> NDArray[Any]:
        """A column derived from these, read-only: kept for all nodes, and renewed for changed ones.

        Args:
            key: Identifies the column among those of all plugins.
            compute: Returns the values for the nodes of a snapshot, shape (N, ...). Must read nothing but
                each node and the pods on it.
            of_nodes: Whether it reads only the node objects.
        """
        if self._rows is not None or self._is_supposed:
            return compute(self)
        cluster, whole = self._cluster, self
        return cluster.kept.column(
            key, cluster, lambda rows: compute(whole if rows is None else whole.at(rows)), of_nodes=of_nodes
        )

    def capacity(self, axes: tuple[int, ...]) -> Capacity:
        """``allocatable`` of K resources, as divisors; for all nodes it is kept until one changes."""
        known = self._capacity
        if known is None or known[0] != axes:
            known = self._capacity = axes, self._capacity_of(axes)
        return known[1]

    def _capacity_of(self, axes: tuple[int, ...]) -> Capacity:
        cluster = self._cluster
        mark = cluster.node_tick, cluster.epoch
        kept = cluster.capacities.get(axes)
        if kept is None or kept[0] != mark:
            amounts = cluster.allocatable[: len(cluster), columns_of(axes)].T
            doubles = np.maximum(amounts, 1).astype(np.float64)
            everywhere = bool((amounts > 0).all())
            whole = Capacity(
                read_only(doubles),
                None if everywhere else read_only(amounts > 0),
                bool((amounts < EXACT_AMOUNT).all()),
            )
            kept = cluster.capacities[axes] = mark, whole
        whole = kept[1]
        if self._rows is None:
            return whole
        counted = None if whole.counted is None else read_only(whole.counted.take(self._rows, axis=1))
        return Capacity(read_only(whole.doubles.take(self._rows, axis=1)), counted, whole.is_exact)

    def buffer(self, key: Hashable, count: int, dtype: type[ScalarT]) -> NDArray[ScalarT]:
        """A scratch array of K values per node, shape (K, N); the next computation overwrites it.

        Arrays of all nodes are too long to allocate at each attempt: their pages and cache lines would be
        cold.
        """
        if self._rows is not None:
            return np.empty((count, self._length), dtype=dtype)
        buffers = self._cluster.buffers
        known = buffers.get((key, count))
        if known is None or known.shape[1] != self._length:
            known = buffers[key, count] = np.empty((count, self._length), dtype=dtype)
        return known

    @property
    def is_large(self) -> bool:
        """Whether sums of requests may be near the largest amount."""
        return self._is_supposed or self._cluster.is_large

    def requests_row(self, requests: dict[str, int]) -> IntArray:
        """Amounts along the R axis, shape (R,), including one pod.

        Call it before ``allocatable`` and ``requested``, as the axis may grow.
        """
        row = self._cluster.requests_row(requests)
        if self._requested is not None and self._requested.shape[1] != len(row):
            self._allocatable = self._requested = None
        return row

    # -- pods and the rest ---------------------------------------------------------------------------

    def pods(self, node: int) -> Iterable[PodInfo]:
        """The pods on the node at that position."""
        return self._cluster.pods_on(int(node if self._rows is None else self._rows[node]))

    def is_placed(self, uid: str) -> bool:
        """Whether a pod is on a node of the whole cluster, even on an unknown one."""
        return uid in self._cluster.pods

    def placed_pod(self, uid: str) -> PodInfo | None:
        """A pod that is on a node of the whole cluster, even on an unknown one; None if it is on none."""
        return self._cluster.pods.get(uid)

    def index(self, kind: type[IndexT]) -> IndexT:
        """A summary of the placed pods (of the whole cluster), updated at each event; built on first use."""
        return self._cluster.index(kind)

    def image(self, name: str) -> HeldImage | None:
        """The size of an image and the rows (of the whole cluster) that have it; None if no node has."""
        found = self._cluster.image(name)
        return None if found is None else HeldImage(found.size_bytes, found.rows.array())

    @property
    def objects(self) -> ClusterObjects:
        """Namespaces, volumes, workloads, budgets; read-only."""
        return self._cluster.objects.read_only

    def fork(self) -> Cluster:
        """An independent cluster for simulated moves."""
        return self._cluster.fork()

    def cut(self, column: NDArray[ScalarT]) -> NDArray[ScalarT]:
        """A column of the cluster or of an index, shape (capacity, ...), cut to (N, ...)."""
        if self._rows is None:
            return read_only(column)[: len(self._cluster)]
        if column.ndim == 1:
            window = column.take(self._rows)
            window.flags.writeable = False  # a copy for this caller alone
            return window
        # Columns lie in memory one after the other: each is gathered separately.
        window = column.T.take(self._rows, axis=-1)
        window.flags.writeable = False
        return window.T
