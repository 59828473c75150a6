"""Tries a drain of a node as ``plimsoll whatif --drain`` does, and reports the outcome of each pod."""

from collections.abc import Mapping

from pydantic import Field

from plimsoll.answers.answer import AnswerPart
from plimsoll.framework import PodInfo
from plimsoll.inspection.changes.changed_cluster import ChangedCluster
from plimsoll.inspection.changes.cluster_changes import Drain
from plimsoll.inspection.state import ClusterState
from plimsoll.model.names import PodUid
from plimsoll.planning.moves import replacement_uid
from plimsoll.planning.scope import never_evict


class LeavingPod(AnswerPart):
    """Whether a pod could leave its node."""

    pod: str = Field(description="The pod, as namespace/name.")
    outcome: str = Field(
        description="Blocked (may not be evicted, and stops a drain), NoPlace (a drain evicts it, and no "
        "other node takes its replacement), Leaves, or Bound (belongs to the node, a drain leaves it)."
    )
    target_node: str = Field(description="The node that its replacement would go to; empty without one.")
    text: str = Field(description="Why it stays, or where it goes.")
    protection: str = Field(
        description="Why policies leave it alone although a drain would not; empty without a reason."
    )


def leaving_pods(state: ClusterState, node: str) -> list[LeavingPod]:
    """The node's pods: first those that block a drain, then those that fit on no other node."""
    cluster = state.cluster
    changed = ChangedCluster(state)
    changed.make(Drain((node,)))
    blocked = {each.pod.uid: each.refusal.message for each in changed.blocked}
    pods = [each for each in cluster.pods_on(cluster.rows[node]) if each.stands_in_for is None]
    found = [_leaving(state, changed, blocked, pod) for pod in pods]
    ranks = {"Blocked": 0, "NoPlace": 1, "Leaves": 2, "Bound": 3}
    return sorted(found, key=lambda each: (ranks[each.outcome], each.pod))


def _leaving(
    state: ClusterState, changed: ChangedCluster, blocked: Mapping[PodUid, str], pod: PodInfo
) -> LeavingPod:
    protected = never_evict(pod, state.cluster.objects)
    outcome, target, text = "Leaves", "", "ends"
    successor = replacement_uid(pod)
    if pod.pod.goes_with_its_node:
        outcome, text = "Bound", "belongs to the node"
    elif pod.uid in blocked:
        outcome, text = "Blocked", blocked[pod.uid]
    elif successor in changed.queue.waiting:
        refusal = changed.queue.refusals.get(successor)
        outcome, text = "NoPlace", "" if refusal is None else refusal.message
    elif successor in changed.placed:
        target = changed.placed[successor].node
        text = f"goes to {target}"
    return LeavingPod(
        pod=pod.key,
        outcome=outcome,
        target_node=target,
        text=text,
        protection="" if protected is None else protected.message,
    )
