"""Base classes for plugins that filter or score one node at a time; lifts them to all nodes.

They are slower than arrays by two orders of magnitude, which suffices for a rule that few pods use::

    class SameRack(NodeFilter):
        name = "SameRack"

        def filter_node(self, state, pod, node):
            return SUCCESS if node.labels.get("rack") == pod.labels.get("rack") else unschedulable("...")
"""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from msgspec import Struct

from plimsoll.framework.args import NoArgs, PluginArgs
from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.status import Status
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo


class NodeView(Struct, frozen=True):
    """One node with its placed pods."""

    node: Node
    pods: tuple[PodInfo, ...]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        return self.node.labels


def views(snapshot: Snapshot) -> Iterable[NodeView]:
    """Each node of the snapshot."""
    for position, node in enumerate(snapshot.nodes):
        yield NodeView(node, tuple(snapshot.pods(position)))


class _Refusals(Struct):
    """The distinct refusals of one attempt: code ``i`` is ``known[i - 1]``."""

    known: list[Status]


class _PerNode:
    name: ClassVar[str]
    args_model: ClassVar[type[PluginArgs]] = NoArgs

    def __init__(self, args: PluginArgs | None = None) -> None:
        self.args = args or NoArgs()


class NodeFilter(_PerNode):
    """A filter plugin that evaluates one node at a time."""

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeView) -> Status:
        """Success, or why the node is infeasible."""
        raise NotImplementedError

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Call ``filter_node`` for each node; equal rejections share a code."""
        refusals = state.find(_Refusals)
        if refusals is None:
            refusals = _Refusals([])
            state.write(refusals)
        codes = np.zeros(len(snapshot), dtype=np.int64)
        for position, view in enumerate(views(snapshot)):
            status = self.filter_node(state, pod, view).by(self.name)
            if not status.is_success:
                if status not in refusals.known:
                    refusals.known.append(status)
                codes[position] = refusals.known.index(status) + 1
        return codes

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """The status of a code."""
        return state.read(_Refusals).known[code - 1]


class NodeScore(_PerNode):
    """A score plugin that evaluates one node at a time."""

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeView) -> int:
        """Points, 0..MAX_SCORE, higher is better."""
        raise NotImplementedError

    def score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Call ``score_node`` for each node."""
        return np.array([self.score_node(state, pod, view) for view in views(snapshot)], dtype=np.int64)
