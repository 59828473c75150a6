"""Derives cluster events from updates of objects, for the registrations of plugins.

Source: kube-scheduler v1.36, ``framework/events.go`` (PodSchedulingPropertiesChange,
NodeSchedulingPropertiesChange).
"""

import msgspec

from plimsoll.framework import ActionType, ClusterEvent, ClusterObjects, EventResource, Node, PodInfo
from plimsoll.model.kinds.pod_info import info_of


def node_changes(old: Node, new: Node) -> tuple[ActionType, ...]:
    """The action bits of a node's update; none if the update cannot help a pod."""
    conditions = {each.type: each.status for each in old.status.conditions}
    checks = (
        (ActionType.UPDATE_NODE_ALLOCATABLE, old.status.allocatable != new.status.allocatable),
        (ActionType.UPDATE_NODE_LABEL, old.labels != new.labels),
        (
            ActionType.UPDATE_NODE_TAINT,
            old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable),
        ),
        (
            ActionType.UPDATE_NODE_CONDITION,
            conditions != {each.type: each.status for each in new.status.conditions},
        ),
        (ActionType.UPDATE_NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (
            ActionType.UPDATE_NODE_DECLARED_FEATURE,
            old.status.declared_features != new.status.declared_features,
        ),
    )
    return tuple(bit for bit, changed in checks if changed)


def pod_changes(old: PodInfo, new: PodInfo) -> tuple[ActionType, ...]:
    """The action bits of a pod's update; at least the bit for any other change."""
    before, after = old.pod, new.pod
    bits = []
    if old.template is not new.template:
        gates_gone = before.spec.scheduling_gates and not after.spec.scheduling_gates
        checks = (
            (ActionType.UPDATE_POD_LABEL, old.labels != new.labels),
            (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, gates_gone),
            (
                ActionType.UPDATE_POD_TOLERATION,
                len(before.spec.tolerations) != len(after.spec.tolerations),
            ),
        )
        bits += [bit for bit, changed in checks if changed]
    if old.requests is not new.requests and any(
        new.requests.get(name, 0) < amount for name, amount in old.requests.items()
    ):
        bits.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if before.status.resource_claim_statuses != after.status.resource_claim_statuses:
        bits.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return tuple(bits) or (ActionType.UPDATE_POD_OTHER,)


def waiting_changes(old: PodInfo, new: PodInfo) -> tuple[ActionType, ...]:
    """The action bits of the update of a pod without a node; none if no decision reads what changed.

    An example is a changed condition. Upstream emits the general update even then: a plugin that registers
    for every event would requeue a pod because of the condition that reports its own rejection, forever.
    """
    bits = pod_changes(old, new)
    if bits != (ActionType.UPDATE_POD_OTHER,) or old.template is not new.template:
        return bits
    before, after = old.pod.metadata, new.pod.metadata
    same = before.annotations == after.annotations and before.owner_references == after.owner_references
    return () if same else bits


def room_freed(pod: PodInfo, objects: ClusterObjects, node: str = "") -> ClusterEvent:
    """AssignedPodDelete for a pod whose room or nomination is free; ``node``: where it was assumed."""
    if node:
        on_node = msgspec.structs.replace(pod.pod, spec=msgspec.structs.replace(pod.pod.spec, node_name=node))
        pod = info_of(on_node, pod.template)
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, pod, None, objects.read_only)
