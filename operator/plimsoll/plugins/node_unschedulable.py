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
    ActionType,
    ClusterEvent,
    CycleState,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    FilterPlugin,
    IntArray,
    NoArgs,
    PodInfo,
    PodTemplate,
    QueueingHint,
    Reads,
    Snapshot,
    Status,
    all_feasible,
    unresolvable,
)
from plimsoll.framework.selectors import UNSCHEDULABLE_TAINT, tolerates

CORDONED = "node(s) were unschedulable"


class NodeUnschedulable(FilterPlugin, EnqueueExtensions):
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

    def events_to_register(self) -> tuple[EventWithHint, ...]:
        """Nodes that are not cordoned (any more), and a toleration for those that are."""
        node = ActionType.ADD | ActionType.UPDATE_NODE_TAINT
        tolerates_now = ActionType.UPDATE_POD_TOLERATION
        return (
            EventWithHint(EventResource.NODE, node, _after_node, by_template=True),
            EventWithHint(
                EventResource.UNSCHEDULABLE_POD, tolerates_now, _after_toleration, by_template=True
            ),
        )


def _after_node(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """A node that takes pods, and took none before."""
    was_open = change.old is not None and not change.old.spec.unschedulable
    return QueueingHint.SKIP if was_open or change.new.spec.unschedulable else QueueingHint.QUEUE


def _after_toleration(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """The pod tolerates cordoned nodes now."""
    tolerations = change.new.pod.spec.tolerations
    return QueueingHint.of(any(tolerates(each, UNSCHEDULABLE_TAINT) for each in tolerations))
