"""Volumes for authors of plugins: claims, classes, drivers, and the mounts of a pod."""

from plimsoll.framework.binding_ports import VolumeChoices as VolumeChoices
from plimsoll.framework.binding_ports import VolumesPort as VolumesPort
from plimsoll.model.columns.volume_users import VolumeUsers as VolumeUsers
from plimsoll.model.columns.volume_users import has_volumes as has_volumes
from plimsoll.model.columns.volume_users import mounted_claims as mounted_claims
from plimsoll.model.kinds.pod import Volume as Volume
from plimsoll.model.kinds.storage import CSINode as CSINode
from plimsoll.model.kinds.storage import CSIStorageCapacity as CSIStorageCapacity
from plimsoll.model.kinds.storage import PersistentVolumeClaim as PersistentVolumeClaim
from plimsoll.model.kinds.storage import StorageClass as StorageClass
from plimsoll.model.kinds.volume_claims import DRIVER_OF_PLUGIN as DRIVER_OF_PLUGIN
from plimsoll.model.kinds.volume_claims import MIGRATED_PLUGINS as MIGRATED_PLUGINS
from plimsoll.model.kinds.volume_claims import WAIT_FOR_FIRST_CONSUMER as WAIT_FOR_FIRST_CONSUMER
from plimsoll.model.kinds.volume_claims import Attachable as Attachable
from plimsoll.model.kinds.volume_claims import attachable as attachable
from plimsoll.model.kinds.volume_claims import attachable_inline as attachable_inline
from plimsoll.model.kinds.volume_claims import claim_class as claim_class
from plimsoll.model.kinds.volume_claims import claim_name as claim_name
from plimsoll.model.kinds.volume_claims import claim_not_found as claim_not_found
from plimsoll.model.kinds.volume_claims import in_tree_plugin as in_tree_plugin
from plimsoll.model.kinds.volume_claims import is_bound as is_bound
from plimsoll.model.kinds.volume_claims import migrated_affinity as migrated_affinity
from plimsoll.model.kinds.volume_claims import not_owned as not_owned
