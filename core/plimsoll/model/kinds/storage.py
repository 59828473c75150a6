"""Storage as the API serves it (core/v1, storage.k8s.io/v1), reduced to what decisions read."""

import msgspec

from plimsoll.model.kinds.metadata import ApiObject, Int64, ObjectMeta
from plimsoll.model.read_only_dict import NO_ENTRIES
from plimsoll.model.selectors import LabelSelector, NodeSelector


class GCEPersistentDiskSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A Google Compute Engine disk."""

    pd_name: str = ""
    read_only: bool = False
    partition: Int64 = 0


class AWSElasticBlockStoreSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An Amazon block device."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False
    partition: Int64 = 0


class ISCSISource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An iSCSI disk."""

    iqn: str = ""
    read_only: bool = False


class RBDSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A Ceph block device; the API's defaults for pool is ``rbd``."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class CSIVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume of a CSI driver, inline in a pod (no handle) or of a PersistentVolume."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class VolumeResources(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The requested amount of storage; quantities as written."""

    requests: dict[str, str | Int64 | float] = NO_ENTRIES


class ObjectReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A pointer to another object."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeClaimSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The wanted storage."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResources = VolumeResources()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_name: str = ""


class PersistentVolumeClaimTemplate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The claim to create for an ephemeral volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume whose claim is created with the pod and named ``<pod>-<volume>``."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class PhaseStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The phase of a volume or a claim."""

    phase: str = ""


class PersistentVolumeClaim(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A request for storage."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PhaseStatus = PhaseStatus()


class VolumeNodeAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The nodes that reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A piece of storage."""

    capacity: dict[str, str | Int64 | float] = NO_ENTRIES
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_attributes_class_name: str | None = None
    volume_mode: str = "Filesystem"
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None


class PersistentVolume(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A piece of storage that claims are bound to."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PhaseStatus = PhaseStatus()


class TopologySelectorLabelRequirement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A label that must have one of the values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Requirements that must all hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """How and when storage of a class is provisioned."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How many volumes of a driver fit on a node; ``None`` is no ceiling."""

    count: Int64 | None = None


class CSINodeDriver(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A driver on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """The storage drivers' report about the node of the same name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Properties of a driver."""

    storage_capacity: bool = False


class CSIDriver(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A storage driver of the cluster."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """The remaining storage of a class for the nodes that ``node_topology`` selects."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | Int64 | float | None = None
    maximum_volume_size: str | Int64 | float | None = None


class VolumeAttachmentSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The attached volume."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The driver, the volume and the node of an attachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume that is being attached, or is attached, to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
