"""NodeUnschedulable: keep pods off cordoned nodes.

Formula: a node is refused when ``spec.unschedulable`` is set and the pod does not tolerate the taint
``node.kubernetes.io/unschedulable:NoSchedule`` (empty value).
Units: none.
Edges: the toleration counts whether or not the node carries the taint itself.
Source: kube-scheduler v1.36, ``nodeunschedulable/node_unschedulable.go``.
Differs: not at all.
"""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from plimsoll.framework import (
    UNSCHEDULABLE_TAINT,
    CycleState,
    FilterPlugin,
    IntArray,
    NoArgs,
    PodInfo,
    PodTemplate,
    Reads,
    Snapshot,
    Status,
    all_feasible,
    tolerates,
    unresolvable,
)

CORDONED = "node(s) were unschedulable"


class NodeUnschedulable(FilterPlugin):
    """Refuse cordoned nodes."""

    name: ClassVar = "NodeUnschedulable"
    args_model: ClassVar = NoArgs
    reads: ClassVar = Reads.NODE

    def __init__(self, args: NoArgs) -> None:
        """Take no arguments."""

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """1 where the node is cordoned, shape (N,)."""
        if any(tolerates(each, UNSCHEDULABLE_TAINT) for each in pod.pod.spec.tolerations):
            return all_feasible(snapshot)
        return snapshot.unschedulable.astype(np.int64)

    def signature(self, template: PodTemplate) -> Hashable:
        """The tolerations."""
        return template.sample.spec.tolerations

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """The only refusal there is."""
        return unresolvable(CORDONED)
