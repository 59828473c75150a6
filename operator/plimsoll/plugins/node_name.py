"""NodeName: a pod that names its node goes there or nowhere.

Formula: a node is refused when ``spec.nodeName`` is set and is not the node's name.
Units: none.
Edges: a pod with ``spec.nodeName`` is normally assigned already and never gets here; simulations ask anyway.
Source: kube-scheduler v1.36, ``nodename/node_name.go``.
Differs: not at all.
"""

from typing import ClassVar

import numpy as np

from plimsoll.framework import (
    ActionType,
    CycleState,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    FilterPlugin,
    IntArray,
    NoArgs,
    PodInfo,
    Reads,
    Snapshot,
    Status,
    all_feasible,
    unresolvable,
)

OTHER_NODE = "node(s) didn't match the requested node name"


class NodeName(FilterPlugin, EnqueueExtensions):
    """Refuse every node but the one that the pod names."""

    name: ClassVar = "NodeName"
    args_model: ClassVar = NoArgs
    reads: ClassVar = Reads.NODE

    def __init__(self, args: NoArgs) -> None:
        """Take no arguments."""

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """1 where the node is another than the one named, shape (N,)."""
        wanted = pod.pod.spec.node_name
        if not wanted:
            return all_feasible(snapshot)
        row = snapshot.row_of(wanted)
        codes: IntArray = (snapshot.rows != (-1 if row is None else row)).astype(np.int64)
        return codes

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """The only refusal there is."""
        return unresolvable(OTHER_NODE)

    def events_to_register(self) -> tuple[EventWithHint, ...]:
        """New nodes."""
        return (EventWithHint(EventResource.NODE, ActionType.ADD),)
