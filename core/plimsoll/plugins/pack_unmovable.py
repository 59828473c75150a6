"""PackUnmovable: place pods that their policy would never move together, and all others away from them.

Formula, per node n; a pod stays if the evictor of the policy that places it would always refuse it::

    part[n]  = max over cpu and memory of requested[staying pods of n] / allocatable[n], at most 1
    held[n]  = 50 + 50 * part[n] if a pod on n stays, else 0
    score[n] = held[n] for a pod that stays, 100 - held[n] for any other

Units: shares of a node's allocatable; points out, int64, 0..100, higher is better, not normalised.
Edges: pods of DaemonSets, static pods, terminating and ended ones count nowhere, and the first two get no
points. A pod is judged as it will be a day after its start, ready and with all replicas that its owner wants:
an opt-out for less than a day does not count, nor does a budget that allows nothing now. Where ``surge`` is
true, being the only replica keeps no pod of a Deployment. Without ``spec.rebalancing`` in the policy, all
nodes get the same points. An annotation that a running pod gets, and a changed ReplicaSet, budget or claim
count as soon as the pods of the node change.
Source: our own; ScaleOps places unevictable pods in this way (by its description, no formula is published).
Differs: there is nothing upstream to differ from.
"""

from typing import ClassVar

import numpy as np

from plimsoll import framework as fwk
from plimsoll.framework.columns import CPU, MEMORY
from plimsoll.toolkit.descheduling.unmovable_pods import StayRule

#: Points of a node with a pod that stays, whatever that requests.
HELD = 50


class PackUnmovable(fwk.PreScorePlugin, fwk.ScorePlugin):
    """Place pods that their policy would never move together, and all others away from them."""

    name: ClassVar = "PackUnmovable"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.POD)

    #: What the policy of the profile would never move; None if it moves nothing.
    rule: StayRule | None = None

    def pre_score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Skip where the policy moves nothing, and for pods that go with their node."""
        return fwk.SKIP if self.rule is None or pod.pod.goes_with_its_node else fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Points per node, shape (N,)."""
        rule, objects = self.rule, snapshot.objects
        if rule is None:
            return fwk.all_feasible(snapshot)
        key = "pods that stay", rule, rule.edition(objects)
        held = snapshot.whole.kept(key, lambda part: _held(rule, part))
        points = held if snapshot.is_whole else held[snapshot.rows]
        return points.copy() if rule.keeps(pod, objects) else fwk.MAX_SCORE - points


def _held(rule: StayRule, snapshot: fwk.Snapshot) -> fwk.IntArray:
    """Points of each node for a pod that stays, shape (N,)."""
    points, objects = np.zeros(len(snapshot), dtype=np.int64), snapshot.objects
    for position in range(len(snapshot)):
        staying = [each for each in snapshot.pods(position) if rule.keeps(each, objects)]
        if staying:
            room = snapshot.allocatable[position]
            taken = (
                (sum(each.requests.get("cpu", 0) for each in staying), int(room[CPU])),
                (sum(each.requests.get("memory", 0) for each in staying), int(room[MEMORY])),
            )
            part = max(amount / max(most, 1) for amount, most in taken)
            points[position] = HELD + int((fwk.MAX_SCORE - HELD) * min(part, 1.0))
    return points
