"""Defines how a score plugin says that its points differ by class of nodes, not by node.

A class are the nodes with equal values on all axes, such as the zone and the number of a node's own pods.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from plimsoll.framework.cycle_state import CycleState
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.structural import Structural


class NodeAxis(NamedTuple):
    """A value of each node.

    Attributes:
        values: Shape (capacity,) int64: 0 or more, or ABSENT. A value changes only together with its node or
            with the pods on it.
        size: The number of values, with one more, the last, for ABSENT if a node has that; None: counts of
            pods, any number.
    """

    values: IntArray
    size: int | None


@runtime_checkable
class ClassedScore(Protocol, metaclass=Structural):
    """A score plugin that reads CLUSTER, normalizes, and whose points differ by class of nodes."""

    def node_axes(self, pod: PodInfo, snapshot: Snapshot) -> Sequence[NodeAxis] | None:
        """The axes for this pod's template; None: call ``score`` until a node or another object changes.

        None at all: PreScore skips.
        """

    def class_points(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: IntArray
    ) -> IntArray:
        """The normalized points of each class: what PreScore, Score and NormalizeScore give its nodes.

        ``feasible`` counts the feasible nodes of each class, in the shape of the axes, as points are. Points
        of classes without such nodes are not read.
        """
