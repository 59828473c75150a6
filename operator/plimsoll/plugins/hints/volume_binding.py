"""Queueing hints of VolumeBinding.

Source: kube-scheduler v1.36, ``volumebinding/volume_binding.go`` (EventsToRegister).
"""

from plimsoll.framework import ActionType, ClusterEvent, EventResource, EventWithHint, PodInfo, QueueingHint
from plimsoll.framework.columns import units
from plimsoll.framework.volumes import MIGRATED_PLUGINS, CSIStorageCapacity, claim_name

EITHER = ActionType.ADD | ActionType.UPDATE


def events() -> tuple[EventWithHint, ...]:
    """Nodes elsewhere, and everything that storage is made of."""
    capacity = EventResource.CSI_STORAGE_CAPACITY
    claim = EventResource.PERSISTENT_VOLUME_CLAIM
    return (
        EventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        EventWithHint(EventResource.PERSISTENT_VOLUME, EITHER),
        EventWithHint(claim, EITHER, after_claim, by_template=True),
        EventWithHint(EventResource.STORAGE_CLASS, EITHER, after_class, by_template=True),
        EventWithHint(EventResource.CSI_NODE, EITHER, after_csi_node, by_template=True),
        EventWithHint(EventResource.CSI_DRIVER, ActionType.UPDATE, after_driver, by_template=True),
        EventWithHint(capacity, EITHER, after_capacity, by_template=True),
    )


def after_claim(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """It is a claim of the pod."""
    claim = change.new.metadata
    names = {claim_name(pod.pod, each) for each in pod.pod.spec.volumes}
    return QueueingHint.of(claim.namespace == pod.namespace and claim.name in names)


def after_class(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """A new class, or one that allows other topologies."""
    old, new = change.old, change.new
    return QueueingHint.of(old is None or old.allowed_topologies != new.allowed_topologies)


def after_csi_node(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """A new one, or one that has migrated other plugins."""
    if change.old is None:
        return QueueingHint.QUEUE
    old, new = (each.metadata.annotations.get(MIGRATED_PLUGINS, "") for each in (change.old, change.new))
    return QueueingHint.of(set(old.split(",")) != set(new.split(",")))


def after_driver(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """The driver of an inline volume of the pod looks at capacity no longer."""
    if not change.old.spec.storage_capacity or change.new.spec.storage_capacity:
        return QueueingHint.SKIP
    volumes = pod.pod.spec.volumes
    return QueueingHint.of(any(each.csi and each.csi.driver == change.new.name for each in volumes))


def after_capacity(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """There is more than before, or one volume may be larger."""
    if change.old is None:
        return QueueingHint.QUEUE
    old: CSIStorageCapacity = change.old
    new: CSIStorageCapacity = change.new
    return QueueingHint.of(
        units(new.capacity or 0) > units(old.capacity or 0)
        or units(new.maximum_volume_size or 0) > units(old.maximum_volume_size or 0)
    )
