"""Volumes for authors of plugins: claims, classes, drivers, and the mounts of a pod."""

from plimsoll.framework.binding_ports import VolumeBinder, VolumeChoices, VolumesPort
from plimsoll.model.columns.volume_users import VolumeUsers, has_volumes, mounted_claims
from plimsoll.model.kinds.pod import Volume
from plimsoll.model.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from plimsoll.model.kinds.volume_claims import (
    DRIVER_OF_PLUGIN,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    Attachable,
    attachable,
    attachable_inline,
    claim_class,
    claim_name,
    claim_not_found,
    in_tree_plugin,
    is_bound,
    is_migrated,
    migrated_affinity,
    not_owned,
    volume_class,
)

__all__ = [
    "DRIVER_OF_PLUGIN",
    "MIGRATED_PLUGINS",
    "SELECTED_NODE",
    "WAIT_FOR_FIRST_CONSUMER",
    "Attachable",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "Volume",
    "VolumeBinder",
    "VolumeChoices",
    "VolumeUsers",
    "VolumesPort",
    "attachable",
    "attachable_inline",
    "claim_class",
    "claim_name",
    "claim_not_found",
    "has_volumes",
    "in_tree_plugin",
    "is_bound",
    "is_migrated",
    "migrated_affinity",
    "mounted_claims",
    "not_owned",
    "volume_class",
]
