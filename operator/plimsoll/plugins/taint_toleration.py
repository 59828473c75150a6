"""TaintToleration: keep pods off tainted nodes, and away from those that would rather be left alone.

Formula::

    refused[n] = some taint of n with effect NoSchedule or NoExecute is not tolerated
    raw[n]     = number of taints of n with effect PreferNoSchedule that are not tolerated by the
                 tolerations with that effect or none
    score[n]   = 100 - 100 * raw[n] // max(raw), and 100 everywhere when max(raw) is 0

Units: counts in; points out, 0..100, higher is better.
Edges: the reason names no taint; ``tolerationSeconds`` plays no part; the numeric operators Lt and Gt cover
nothing (their gate is off).
Source: kube-scheduler v1.36, ``tainttoleration/taint_toleration.go``.
Differs: not at all.
"""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from plimsoll.framework import (
    MAX_SCORE,
    ActionType,
    ClusterEvent,
    CycleState,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    FilterPlugin,
    IntArray,
    NoArgs,
    Node,
    NormalizingPlugin,
    PodInfo,
    PodTemplate,
    QueueingHint,
    Reads,
    Snapshot,
    Status,
    unresolvable,
)
from plimsoll.framework.selectors import PREFER_NO_SCHEDULE, tolerates, untolerated
from plimsoll.toolkit.scheduling.node_matching import by_taints, tolerated_nodes

UNTOLERATED = "node(s) had untolerated taint(s)"


class TaintToleration(FilterPlugin, NormalizingPlugin, EnqueueExtensions):
    """Refuse hard taints that are not tolerated, and count the soft ones against a node."""

    name: ClassVar = "TaintToleration"
    args_model: ClassVar = NoArgs
    reads: ClassVar = Reads.NODE

    def __init__(self, args: NoArgs) -> None:
        """Take no arguments."""

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """1 where a hard taint is not tolerated, shape (N,)."""
        return (~tolerated_nodes(pod.pod.spec.tolerations, snapshot)).astype(np.int64)

    def signature(self, template: PodTemplate) -> Hashable:
        """The tolerations."""
        return template.sample.spec.tolerations

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """The only refusal there is."""
        return unresolvable(UNTOLERATED)

    def score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """Soft taints that are not tolerated, a count a node, shape (N,); lower is better."""
        soft = [each for each in pod.pod.spec.tolerations if each.effect in ("", PREFER_NO_SCHEDULE)]
        return by_taints(
            lambda taints: sum(
                taint.effect == PREFER_NO_SCHEDULE and not any(tolerates(each, taint) for each in soft)
                for taint in taints
            ),
            snapshot,
        )

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        """Turn counts round: the most tainted node gets the least, shape (F,)."""
        most = scores.max(initial=0)
        return MAX_SCORE - scores * MAX_SCORE // max(int(most), 1)

    # -- waking --------------------------------------------------------------------------------------

    def events_to_register(self) -> tuple[EventWithHint, ...]:
        """Nodes whose hard taints are tolerated now, and tolerations."""
        node = ActionType.ADD | ActionType.UPDATE_NODE_TAINT
        return (
            EventWithHint(EventResource.NODE, node, _after_node, by_template=True),
            EventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION),
        )


def _after_node(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """The pod tolerates the node now, and did not before."""

    def tolerated(node: Node) -> bool:
        return untolerated(node.spec.taints, pod.pod.spec.tolerations) is None

    return QueueingHint.of(tolerated(change.new) and not (change.old and tolerated(change.old)))
