"""Which changes of the cluster make a policy's rebalancing run out of turn."""

from plimsoll.api.v1alpha1.schedules import Trigger
from plimsoll.model.event import ClusterEvent, NodeAdded, NodeUpdated


def trigger_of(event: ClusterEvent) -> Trigger | None:
    """The trigger that an event is; None for most. Of several at once the labels speak."""
    match event:
        case NodeAdded():
            return Trigger.NODE_ADDED
        case NodeUpdated(old, new) if old.metadata.labels != new.metadata.labels:
            return Trigger.NODE_LABELS_CHANGED
        case NodeUpdated(old, new) if old.spec.taints != new.spec.taints:
            return Trigger.NODE_TAINTS_CHANGED
        case _:
            return None
