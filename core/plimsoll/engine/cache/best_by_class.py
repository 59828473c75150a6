"""Finds one template's best rows where other points differ by class of nodes, without reading all rows.

The kernel keeps summaries of the rows by class (:mod:`plimsoll.engine.kernel.classes`); changed rows are read
from the cluster's log.

Axis letter: N nodes.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from plimsoll.engine.kernel.classes import MOST_CELLS, MOST_CLASSES, CompiledClasses
from plimsoll.engine.kernel.library import MOST_CHANGES, ColumnAddresses, address
from plimsoll.engine.plugin_calls import called, in_range
from plimsoll.framework import CycleState, IntArray, PluginError, PodInfo, Snapshot
from plimsoll.framework.node_classes import ClassedScore, NodeAxis
from plimsoll.framework.plugin_answers import of_kind, shown
from plimsoll.model.columns.columns import PositionArray

INT64 = np.dtype(np.int64)

#: With fewer nodes it costs as much to ask about classes as to score the nodes.
FEWEST_NODES = 8_192


class BestByClass:
    """The best rows by kept totals and points of each class.

    Args:
        columns: The cluster's columns, with the kernel or without.
    """

    def __init__(self, columns: ColumnAddresses) -> None:
        self._columns = columns
        self._classes: CompiledClasses | None = None
        self._is_wanted = False  #: another pod of the template has come
        self._is_useless = False  #: there are no classes, or too many, while no node changes
        self._tick = 0

    def forget(self) -> None:
        """Drop everything that is kept."""
        self._classes = None
        self._is_wanted = self._is_useless = False

    def best(
        self,
        parts: Sequence[tuple[str, ClassedScore, int]],
        state: CycleState,
        pod: PodInfo,
        failed: PositionArray,
        totals: IntArray,
    ) -> tuple[Sequence[int], int] | None:
        """The best of all feasible rows and their total; None: score all nodes. PluginError.

        ``parts`` are the plugins that give points besides ``totals``, with name and weight; ``failed`` as in
        FilterResults, a new array when verdicts change on other rows than the changed ones.
        """
        if self._columns.kernel is None or self._is_useless or len(totals) < FEWEST_NODES:
            return None
        if not self._is_wanted:
            self._is_wanted = True  # a template with one pod is scored once: summaries would cost more
            return None
        snapshot = Snapshot(self._columns.cluster)
        axes: dict[int, NodeAxis] = {}  #: by the address of their values: plugins may have some in common
        used: list[list[int]] = []  #: by each plugin
        classes = None
        for name, plugin, _ in parts:
            own = called(name, "preScore", plugin.node_axes, pod, snapshot)
            if own is None:
                break
            if not own:
                return None  # PreScore will say so, and the plugin is no part any more
            places = [_address(each, len(totals), name) for each in own]
            axes.update(zip(places, own, strict=True))
            used.append([list(axes).index(place) for place in places])
        else:
            classes = self._renewed(tuple(axes.values()), failed, totals)
        if classes is None:
            self._is_useless = True
            return None
        counts = classes.feasible
        points: IntArray = np.zeros(classes.sizes, dtype=np.int64)
        for (name, plugin, weight), own_axes in zip(parts, used, strict=True):
            feasible = _along(counts, own_axes)
            given = called(name, "score", plugin.class_points, state, pod, snapshot, feasible)
            if not _are_integers(given) or given.shape != feasible.shape:
                problem = f"returned {shown(given)}; expected integers of shape {feasible.shape}"
                raise PluginError(name, "score", problem)
            in_range(given[feasible > 0], name)
            points += _across(given, own_axes, counts.ndim) * weight
        return classes.best(points)

    def _renewed(
        self, axes: Sequence[NodeAxis], failed: PositionArray, totals: IntArray
    ) -> CompiledClasses | None:
        """The summaries of the rows as they are; None: there are too many classes."""
        kernel, cluster, kept = self._columns.kernel, self._columns.cluster, self._classes
        if kept is not None and not kept.suits(axes):
            kept = None
        is_same = kept is not None and kept.reads(failed, totals, axes)
        span = cluster.span_since(self._tick, MOST_CHANGES) if is_same else None
        self._tick = cluster.tick
        if kept is not None and kept.renew(span):
            return kept
        self._classes = None
        values = [each.values[: len(totals)] for each in axes]
        sizes = tuple([_size(axis, each) for axis, each in zip(axes, values, strict=True)])
        if kernel is None or prod(sizes) > MOST_CELLS:
            return None
        # A value below 0 is the last one of its axis.
        cells = np.ravel_multi_index(values, sizes, mode="wrap")
        taken = int(np.count_nonzero(np.bincount(cells)))
        if taken > MOST_CLASSES:
            return None
        made = CompiledClasses(kernel, len(totals), sizes, min(taken + taken // 2 + 4, MOST_CLASSES))
        made.reads(failed, totals, axes)
        self._classes = made if made.renew(None) else None
        return self._classes


def _address(axis: NodeAxis, nodes: int, plugin: str) -> int:
    """The address of an axis's values, which the kernel reads."""
    values = of_kind(axis, NodeAxis, plugin, "score").values
    if not _are_integers(values) or values.dtype != INT64 or values.strides != (8,) or len(values) < nodes:
        raise PluginError(
            plugin, "score", f"returned an axis of {shown(values)}; expected int64 for each node"
        )
    return address(values)


def _are_integers(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iu"


def _along(counts: IntArray, axes: list[int]) -> IntArray:
    """The sums along these axes, in this order."""
    others = tuple([axis for axis in range(counts.ndim) if axis not in axes])
    sums: IntArray = counts.sum(axis=others) if others else counts
    return sums.transpose([sorted(axes).index(axis) for axis in axes])


def _across(points: IntArray, axes: list[int], dimensions: int) -> IntArray:
    """The points along these axes, as an array that is broadcast over all."""
    order = sorted(range(len(axes)), key=axes.__getitem__)
    shape = [1] * dimensions
    for place, axis in enumerate(axes):
        shape[axis] = points.shape[place]
    return points.transpose(order).reshape(shape)


def _size(axis: NodeAxis, values: IntArray) -> int:
    """The values of an axis; of counts, some more than there are now."""
    if axis.size is not None:
        return axis.size
    most = int(np.max(values, initial=0))
    return most + most // 4 + 2
