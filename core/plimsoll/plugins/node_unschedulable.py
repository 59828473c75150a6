"""NodeUnschedulable: keep pods off cordoned nodes.

Formula: a node is refused when ``spec.unschedulable`` is set and the pod does not tolerate the taint
``node.kubernetes.io/unschedulable:NoSchedule`` (empty value).
Units: none.
Edges: the toleration counts whether or not the node carries the taint itself.
Source: kube-scheduler v1.36, ``nodeunschedulable/node_unschedulable.go``.
Differs: not at all.
"""

from collections.abc import Collection, Hashable
from typing import ClassVar

import numpy as np

from plimsoll import framework as fwk
from plimsoll.framework.selectors import UNSCHEDULABLE_TAINT, tolerates

CORDONED = "node(s) were unschedulable"


class NodeUnschedulable(fwk.FilterPlugin, fwk.EnqueueExtensions):
    """Refuse cordoned nodes."""

    name: ClassVar = "NodeUnschedulable"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, only_constraints=True)

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where the node is cordoned, shape (N,)."""
        if any(tolerates(each, UNSCHEDULABLE_TAINT) for each in pod.pod.spec.tolerations):
            return fwk.all_feasible(snapshot)
        return snapshot.unschedulable.astype(np.int64)

    def signature(self, template: fwk.PodTemplate) -> Hashable:
        """The tolerations."""
        return template.sample.spec.tolerations

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The only refusal of this plugin."""
        return fwk.unresolvable(CORDONED)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Nodes that are no longer cordoned, and tolerations of cordoned ones."""
        node = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_TAINT
        tolerates_now = fwk.ActionType.UPDATE_POD_TOLERATION
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, node, fwk.HintByValue(_nothing, _after_node)),
            fwk.EventWithHint(
                fwk.EventResource.UNSCHEDULABLE_POD, tolerates_now, _after_toleration, by_template=True
            ),
        )


def _nothing(_template: fwk.PodTemplate) -> None:
    """What the next hint reads of a pod."""


def _after_node(values: Collection[None], change: fwk.ClusterEvent) -> Collection[None]:
    """The node is schedulable now, and was not before."""
    was_open = change.old is not None and not change.old.spec.unschedulable
    return () if was_open or change.new.spec.unschedulable else values


def _after_toleration(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The pod now tolerates cordoned nodes."""
    tolerations = change.new.pod.spec.tolerations
    return fwk.QueueingHint.of(any(tolerates(each, UNSCHEDULABLE_TAINT) for each in tolerations))
