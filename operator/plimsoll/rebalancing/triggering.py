"""Cluster changes that trigger an additional run of a policy."""

from plimsoll.api.v1alpha1.schedules import Trigger
from plimsoll.model.kinds.watch_event import NodeAdded, NodeUpdated, WatchEvent


def triggers_of(event: WatchEvent) -> frozenset[Trigger]:
    """The triggers that an event fires; none for most, several where one update changes several things."""
    match event:
        case NodeAdded():
            return frozenset({Trigger.NODE_ADDED})
        case NodeUpdated(old, new):
            changed = {
                Trigger.NODE_LABELS_CHANGED: old.metadata.labels != new.metadata.labels,
                Trigger.NODE_TAINTS_CHANGED: old.spec.taints != new.spec.taints,
            }
            return frozenset(trigger for trigger, is_changed in changed.items() if is_changed)
        case _:
            return frozenset()
