"""Rules about claims: the claim of a volume, its class, attachment, and migration of in-tree volumes.

Source: Kubernetes v1.36, ``component-helpers/storage`` and ``csi-translation-lib``.
"""

import msgspec
from msgspec import Struct

from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import Pod, Volume
from plimsoll.model.kinds.storage import (
    AWSElasticBlockStoreSource,
    CSINode,
    GCEPersistentDiskSource,
    PersistentVolume,
    PersistentVolumeClaim,
)
from plimsoll.model.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

GCE_PLUGIN, GCE_DRIVER, GCE_ZONE = "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"
EBS_PLUGIN, EBS_DRIVER, EBS_ZONE = (
    "kubernetes.io/aws-ebs",
    "ebs.csi.aws.com",
    "topology.ebs.csi.aws.com/zone",
)
DRIVER_OF_PLUGIN = {
    GCE_PLUGIN: GCE_DRIVER,
    EBS_PLUGIN: EBS_DRIVER,
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""In-tree volume plugins by the driver that serves their volumes now."""
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
ZONE_OF_PLUGIN = {GCE_PLUGIN: GCE_ZONE, EBS_PLUGIN: EBS_ZONE}


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The claim's storage class; the old annotation takes precedence."""
    return claim.metadata.annotations.get(CLASS_ANNOTATION, claim.spec.storage_class_name or "")


def volume_class(volume: PersistentVolume) -> str:
    """The volume's storage class; the old annotation takes precedence."""
    return volume.metadata.annotations.get(CLASS_ANNOTATION, volume.spec.storage_class_name)


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim of a pod's volume, None if it has none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.name}-{volume.name}"
    return None


def claim_not_found(name: str) -> str:
    """The API's message that there is no such claim."""
    return f'persistentvolumeclaim "{name}" not found'


def not_owned(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why the claim cannot serve as the pod's ephemeral volume; empty if it can."""
    owner = claim.metadata.controller
    if owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume permanently."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_migrated(plugin: str, csi_node: CSINode | None) -> bool:
    """Whether a node serves an in-tree plugin's volumes by its CSI driver."""
    if csi_node is None or plugin not in DRIVER_OF_PLUGIN:
        return False
    return plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def in_tree_plugin(gce: GCEPersistentDiskSource | None, ebs: AWSElasticBlockStoreSource | None) -> str | None:
    """The in-tree plugin of a volume (of a pod or a PersistentVolume), None for other volumes."""
    if gce is not None:
        return GCE_PLUGIN
    return EBS_PLUGIN if ebs is not None else None


#: In-tree plugins whose volumes a driver attaches wherever there is a CSINode, annotated or not.
ALWAYS_ATTACHED_BY_DRIVER = frozenset(
    (GCE_PLUGIN, EBS_PLUGIN, "kubernetes.io/azure-disk", "kubernetes.io/cinder")
)


def is_attached_by_driver(plugin: str, csi_node: CSINode | None) -> bool:
    """Whether a node's CSI driver attaches the volumes of an in-tree plugin."""
    return csi_node is not None and (plugin in ALWAYS_ATTACHED_BY_DRIVER or is_migrated(plugin, csi_node))


class Attachable(Struct, frozen=True):
    """A volume as its driver identifies it."""

    driver: str
    handle: str


def attachable_inline(volume: Volume, csi_node: CSINode | None) -> Attachable | None:
    """An inline in-tree volume as the node's driver identifies it; None if no driver attaches it."""
    return _migrated(volume.gce_persistent_disk, volume.aws_elastic_block_store, "UNSPECIFIED", csi_node)


def attachable(
    claim: PersistentVolumeClaim, objects: ClusterObjects, csi_node: CSINode | None
) -> Attachable | None:
    """The volume that a driver attaches for a claim on that node; None if no driver does.

    A claim without a volume counts under its own name for the driver of its class.
    """
    volume = objects.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        if volume.spec.csi is not None:
            source = volume.spec.csi
            return (
                Attachable(source.driver, source.volume_handle)
                if source.driver and source.volume_handle
                else None
            )
        zone = volume.metadata.labels.get(
            "topology.kubernetes.io/zone",
            volume.metadata.labels.get("failure-domain.beta.kubernetes.io/zone", "UNSPECIFIED"),
        )
        return _migrated(volume.spec.gce_persistent_disk, volume.spec.aws_elastic_block_store, zone, csi_node)
    found = objects.storage_classes.get(claim_class(claim))
    if found is None or not found.provisioner:
        return None
    driver = found.provisioner
    if driver in DRIVER_OF_PLUGIN:
        if not is_attached_by_driver(driver, csi_node):
            return None
        driver = DRIVER_OF_PLUGIN[driver]
    return Attachable(driver, f"unbound/{claim.key}")


def _migrated(
    gce: GCEPersistentDiskSource | None,
    ebs: AWSElasticBlockStoreSource | None,
    zone: str,
    csi_node: CSINode | None,
) -> Attachable | None:
    plugin = in_tree_plugin(gce, ebs)
    if plugin is None or not is_attached_by_driver(plugin, csi_node):
        return None
    if gce is not None:
        return Attachable(GCE_DRIVER, f"projects/UNSPECIFIED/zones/{zone}/disks/{gce.pd_name}")
    assert ebs is not None
    return Attachable(EBS_DRIVER, ebs.volume_id.rpartition("/")[2])


def migrated_affinity(volume: PersistentVolume) -> NodeSelector | None:
    """The node affinity of an in-tree volume as its CSI driver would have written it.

    The driver has its own topology key, so the zone is searched under that key. A zone that the affinity
    mentions without values is ignored, and the volume's label counts if it has the same key.
    """
    plugin = in_tree_plugin(volume.spec.gce_persistent_disk, volume.spec.aws_elastic_block_store)
    selector = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    if plugin is None:
        return selector
    terms = selector.node_selector_terms if selector else ()
    values: dict[str, int] = {}
    for each in (each for term in terms for each in term.match_expressions):
        values[each.key] = values.get(each.key, 0) + len(each.values)
    labels = volume.metadata.labels
    zone = next((key for known in (values, labels) for key in ZONES if key in known), ZONES[0])
    renamed = {}
    if zone != ZONES[0] and values.get(BETA_REGION):
        renamed[BETA_REGION] = REGION
    added: tuple[NodeSelectorRequirement, ...] = ()
    if values.get(zone):
        renamed[zone] = ZONE_OF_PLUGIN[plugin]
    elif named := tuple(sorted({part.strip() for part in labels.get(zone, "").split("__")} - {""})):
        added = (NodeSelectorRequirement(key=ZONE_OF_PLUGIN[plugin], operator="In", values=named),)
        terms = terms or (NodeSelectorTerm(),)
    if not added and not renamed:
        return selector
    return NodeSelector(
        node_selector_terms=tuple(
            msgspec.structs.replace(
                term,
                match_expressions=(
                    *(
                        msgspec.structs.replace(each, key=renamed.get(each.key, each.key))
                        for each in term.match_expressions
                    ),
                    *added,
                ),
            )
            for term in terms
        )
    )
