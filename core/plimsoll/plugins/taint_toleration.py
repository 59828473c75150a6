"""TaintToleration: keep pods off nodes with hard taints, and favour nodes without soft ones.

Formula::

    refused[n] = some taint of n with effect NoSchedule or NoExecute is not tolerated
    raw[n]     = number of taints of n with effect PreferNoSchedule that are not tolerated by the
                 tolerations with that effect or none
    score[n]   = 100 - 100 * raw[n] // max(raw), and 100 everywhere when max(raw) is 0

Units: counts in; points out, 0..100, higher is better.
Edges: the reason names no taint; ``tolerationSeconds`` has no effect; the numeric operators Lt and Gt
tolerate nothing (their gate is off).
Source: kube-scheduler v1.36, ``tainttoleration/taint_toleration.go``.
Differs: not at all.
"""

from collections.abc import Collection, Hashable
from typing import ClassVar

import numpy as np

from plimsoll import framework as fwk
from plimsoll.framework.selectors import PREFER_NO_SCHEDULE, tolerates, untolerated
from plimsoll.toolkit.node_matching import by_taints, tolerated_nodes

UNTOLERATED = "node(s) had untolerated taint(s)"


class TaintToleration(fwk.FilterPlugin, fwk.NormalizingPlugin, fwk.EnqueueExtensions):
    """Refuse hard taints that are not tolerated, and count soft ones against a node."""

    name: ClassVar = "TaintToleration"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, only_constraints=True)

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where a hard taint is not tolerated, shape (N,)."""
        return (~tolerated_nodes(pod.pod.spec.tolerations, snapshot)).astype(np.int64)

    def signature(self, template: fwk.PodTemplate) -> Hashable:
        """The tolerations."""
        return template.sample.spec.tolerations

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The only refusal of this plugin."""
        return fwk.unresolvable(UNTOLERATED)

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """The number of soft taints of each node that are not tolerated, shape (N,); lower is better."""
        soft = [each for each in pod.pod.spec.tolerations if each.effect in ("", PREFER_NO_SCHEDULE)]
        return by_taints(
            lambda taints: sum(
                taint.effect == PREFER_NO_SCHEDULE and not any(tolerates(each, taint) for each in soft)
                for taint in taints
            ),
            snapshot,
        )

    def normalize(self, state: fwk.CycleState, pod: fwk.PodInfo, scores: fwk.IntArray) -> fwk.IntArray:
        """Reverse the counts: the node with the most taints gets the lowest score, shape (F,)."""
        most = scores.max(initial=0)
        return fwk.MAX_SCORE - scores * fwk.MAX_SCORE // max(int(most), 1)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Nodes whose hard taints become tolerated, and tolerations of the pod."""
        node = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_TAINT
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, node, fwk.HintByValue(self.signature, _after_node)),
            fwk.EventWithHint(fwk.EventResource.UNSCHEDULABLE_POD, fwk.ActionType.UPDATE_POD_TOLERATION),
        )


def _after_node(
    values: Collection[tuple[fwk.Toleration, ...]], change: fwk.ClusterEvent
) -> Collection[tuple[fwk.Toleration, ...]]:
    """The pod tolerates the node now, and did not before."""

    def tolerated(node: fwk.Node | None, tolerations: tuple[fwk.Toleration, ...]) -> bool:
        return node is not None and untolerated(node.spec.taints, tolerations) is None

    return [each for each in values if tolerated(change.new, each) and not tolerated(change.old, each)]
