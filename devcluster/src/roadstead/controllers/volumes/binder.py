"""Binds claims to volumes, provisions volumes of host-path classes, and reclaims volumes of deleted claims.

A class whose provisioner is ``kubernetes.io/host-path`` gets its volumes here, as from
kube-controller-manager with ``--enable-hostpath-provisioner``; ``kubernetes.io/no-provisioner`` gets none;
claims of any other wait for a program that provisions them. No directory is made or removed.

Source: kubernetes v1.36 ``pkg/controller/volume/persistentvolume/pv_controller.go``,
``pkg/volume/hostpath/host_path.go``.

Differs: a volume with the policy Recycle is available again without a pod that empties it; claims do not
grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import is_terminating
from roadstead.controllers.volumes.matching import (
    CLAIMS,
    CLASSES,
    LATE,
    SELECTED_NODE,
    VOLUMES,
    annotations_of,
    class_of,
    matching_volume,
    refers_to,
    satisfies,
)
from roadstead.controllers.volumes.protection import claims_of
from roadstead.kinds.storage import default_class
from roadstead.schemas.timestamps import to_timestamp

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

COMPONENT = "persistentvolume-controller"
HOST_PATH = "kubernetes.io/host-path"
COMPLETED, BY_CONTROLLER = "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONERS = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
IN_TREE_FINALIZER = "kubernetes.io/pv-controller"
RESYNC_S = 15.0
"""Seconds until a claim is tried again that waits for something other than a volume or a class."""
_BY_CLAIM = "claimRef"


class VolumeBinder:
    """Binds, provisions and reclaims volumes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._unbound: dict[str, None] = {}

    def start(self) -> None:
        """Subscribe to claims, volumes and storage classes."""
        api = self._context.api
        api.store.collection(VOLUMES).add_index(_BY_CLAIM, _claim_keys)
        api.subscribe(CLAIMS, self._claim_changed)
        api.subscribe(VOLUMES, self._volume_changed)
        api.subscribe(CLASSES, self._class_changed)
        for resource, reconcile in ((VOLUMES, self.reconcile_volume), (CLAIMS, self.reconcile_claim)):
            for obj in api.list(resource):
                self._context.queue.add(reconcile, key_of(obj))

    # -- claims ----------------------------------------------------------------------------------------------

    def reconcile_claim(self, key: str) -> None:
        """Bind a claim, request a volume for it, or record that it has lost its volume."""
        claim = self._context.find(CLAIMS, key)
        if claim is None or is_terminating(claim):
            self._unbound.pop(key, None)
        elif COMPLETED in annotations_of(claim):
            self._unbound.pop(key, None)
            self._keep(claim)
        else:
            self._unbound[key] = None
            self._seek(claim)

    def _seek(self, claim: Obj) -> None:
        """Bind a claim to its named volume or to a matching one; otherwise request a volume."""
        if name := claim["spec"].get("volumeName"):
            volume = self._context.find(VOLUMES, name)
            if volume is None:
                self._record(claim, "FailedBinding", f'volume "{name}" not found', "Warning")
            elif volume["spec"].get("claimRef") is None and not satisfies(volume, claim):
                message = f'Cannot bind to requested volume "{name}": requested PV is too small'
                self._record(claim, "VolumeMismatch", message, "Warning")
            elif volume["spec"].get("claimRef") is None or refers_to(volume, claim):
                self._bind(volume, claim)
            else:
                message = f'volume "{name}" already bound to a different claim.'
                self._record(claim, "FailedBinding", message, "Warning")
            return
        storage_class = self._class(claim)
        late = (storage_class or {}).get("volumeBindingMode") == LATE and not annotations_of(claim).get(
            SELECTED_NODE
        )
        volumes = self._context.api.list(VOLUMES)
        if volume := matching_volume(claim, volumes, reserved_only=late):
            self._bind(volume, claim)
        elif late:
            self._wait_for_pod(claim)
        elif class_of(claim):
            self._provision(claim, storage_class)
        elif claim["spec"].get("storageClassName") is None and (
            name := default_class(self._context.api.list(CLASSES))
        ):
            self._patch(CLAIMS, claim, spec={"storageClassName": name})
        else:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._record(claim, "FailedBinding", message)

    def _keep(self, claim: Obj) -> None:
        """Check the volume of a claim that was bound before."""
        name = claim["spec"].get("volumeName")
        volume = self._context.find(VOLUMES, name) if name else None
        if volume is not None and (volume["spec"].get("claimRef") is None or refers_to(volume, claim)):
            self._bind(volume, claim)
            return
        reason, message = (
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        )
        if not name:
            message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        elif volume is not None:
            reason = "ClaimMisbound"
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
        if (claim.get("status") or {}).get("phase") != "Lost":
            self._record(claim, reason, message, "Warning")
            self._context.write_status(CLAIMS, claim, {"phase": "Lost"})

    def _bind(self, volume: Obj, claim: Obj) -> None:
        """Write the references between a volume and a claim, and both phases."""
        meta, reference = claim["metadata"], volume["spec"].get("claimRef")
        if reference is None or not reference.get("uid"):
            target = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
            }
            own = {} if reference else {BY_CONTROLLER: "yes"}
            volume = self._patch(VOLUMES, volume, spec={"claimRef": target}, annotations=own)
        self._set_phase(volume, "Bound")
        name = volume["metadata"]["name"]
        if claim["spec"].get("volumeName") != name or COMPLETED not in annotations_of(claim):
            own = {} if claim["spec"].get("volumeName") else {BY_CONTROLLER: "yes"}
            claim = self._patch(
                CLAIMS, claim, spec={"volumeName": name}, annotations={**own, COMPLETED: "yes"}
            )
        status = claim.get("status") or {}
        if status.get("phase") != "Bound":
            has = volume["spec"]
            bound = {"phase": "Bound", "accessModes": has["accessModes"], "capacity": has["capacity"]}
            self._context.write_status(CLAIMS, claim, {**status, **bound})

    def _wait_for_pod(self, claim: Obj) -> None:
        key = key_of(claim)
        for pod in self._context.api.list("pods", claim["metadata"]["namespace"]):
            if key in claims_of(pod) and not pod["spec"].get("nodeName"):
                message = f"waiting for pod {pod['metadata']['name']} to be scheduled"
                self._record(claim, "WaitForPodScheduled", message)
                return
        message = "waiting for first consumer to be created before binding"
        self._record(claim, "WaitForFirstConsumer", message)

    def _provision(self, claim: Obj, storage_class: Obj | None) -> None:
        """Make a volume of a host-path class; other provisioners read annotations."""
        if storage_class is None:
            message = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self._record(claim, "ProvisioningFailed", message, "Warning")
            return
        provisioner = storage_class["provisioner"]
        if provisioner.startswith("kubernetes.io/") and provisioner != HOST_PATH:
            message = f"no volume plugin matched name: {provisioner}"
            self._record(claim, "ProvisioningFailed", message, "Warning")
            return
        if any(annotations_of(claim).get(name) != provisioner for name in PROVISIONERS):
            claim = self._patch(CLAIMS, claim, annotations=dict.fromkeys(PROVISIONERS, provisioner))
        if provisioner != HOST_PATH:
            message = (
                f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or "
                "manually by the system administrator. If volume creation is delayed, please verify that the "
                "provisioner is running and correctly registered."
            )
            self._record(claim, "ExternalProvisioning", message)
            return
        node = annotations_of(claim).get(SELECTED_NODE)
        if node and self._context.find("nodes", node) is None:
            message = f'Failed to get target node: node "{node}" not found'
            self._record(claim, "ProvisioningFailed", message, "Warning")
            self._context.queue.add(self.reconcile_claim, key_of(claim), RESYNC_S)
            return
        self._make_volume(claim, storage_class)

    def _make_volume(self, claim: Obj, storage_class: Obj) -> None:
        """Create the volume of a claim, reserved for it; the change of the volume binds it."""
        meta, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{meta['uid']}"
        if self._context.find(VOLUMES, name):
            return
        annotations = {
            "kubernetes.io/createdby": "hostpath-dynamic-provisioner",
            BY_CONTROLLER: "yes",
            PROVISIONED_BY: HOST_PATH,
        }
        reference = {key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion")}
        volume: Obj = {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {
                "accessModes": spec["accessModes"],
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
                "hostPath": {"path": f"/tmp/hostpath_pv/{meta['uid']}"},  # noqa: S108 - upstream's; nothing is there
                "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
                "storageClassName": storage_class["metadata"]["name"],
                "volumeMode": spec.get("volumeMode", "Filesystem"),
            },
        }
        if storage_class["reclaimPolicy"] == "Delete":
            volume["metadata"]["finalizers"] = [IN_TREE_FINALIZER]
        if storage_class.get("mountOptions"):
            volume["spec"]["mountOptions"] = storage_class["mountOptions"]
        self._context.api.create(VOLUMES, volume)
        self._record(
            claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name} using {HOST_PATH}"
        )

    # -- volumes ---------------------------------------------------------------------------------------------

    def reconcile_volume(self, name: str) -> None:
        """Set the phase of a volume, reclaim it, or queue its claim."""
        volume = self._context.find(VOLUMES, name)
        if volume is None:
            return
        reference = volume["spec"].get("claimRef")
        if reference is None or not reference.get("uid"):
            self._set_phase(volume, "Available")
            self._queue_unbound()
            return
        key = f"{reference['namespace']}/{reference['name']}"
        claim = self._context.find(CLAIMS, key)
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            if (volume.get("status") or {}).get("phase") not in ("Released", "Failed"):
                volume = self._set_phase(volume, "Released")
            self._reclaim(volume)
        elif not claim["spec"].get("volumeName"):
            self._context.queue.add(self.reconcile_claim, key)
        elif claim["spec"]["volumeName"] == name:
            self._set_phase(volume, "Bound")
        elif PROVISIONED_BY in annotations_of(volume) and _policy(volume) == "Delete":
            self._reclaim(self._set_phase(volume, "Released"))
        else:
            self._free(volume)

    def _reclaim(self, volume: Obj) -> None:
        """Treat the volume of a deleted claim by its policy."""
        policy, source = _policy(volume), volume["spec"].get("hostPath")
        by = annotations_of(volume).get(PROVISIONED_BY, HOST_PATH)
        if policy == "Recycle" and source is not None:
            self._record(volume, "VolumeRecycled", "Volume recycled")
            self._free(volume)
        elif policy != "Delete" or by != HOST_PATH:
            return
        elif source is None:
            self._fail(volume, "no deletable volume plugin matched")
        elif not source["path"].startswith("/tmp/"):  # noqa: S108 - upstream's rule
            self._fail(
                volume, f"host_path deleter only supports /tmp/.+ but received provided {source['path']}"
            )
        else:
            metadata = volume["metadata"]
            self._context.api.delete(VOLUMES, None, metadata["name"], uid=metadata["uid"])
            if left := self._context.find(VOLUMES, metadata["name"]):
                self._context.drop_finalizer(VOLUMES, left, IN_TREE_FINALIZER)

    def _free(self, volume: Obj) -> None:
        """Remove the claim from a volume; a reference that a user wrote loses only its uid."""
        if BY_CONTROLLER in annotations_of(volume) or _policy(volume) == "Recycle":
            self._patch(VOLUMES, volume, spec={"claimRef": None}, annotations={BY_CONTROLLER: None})
        else:
            self._patch(VOLUMES, volume, spec={"claimRef": {"uid": None, "resourceVersion": None}})

    def _fail(self, volume: Obj, message: str) -> None:
        if (volume.get("status") or {}).get("phase") != "Failed":
            self._record(volume, "VolumeFailedDelete", message, "Warning")
            self._set_phase(volume, "Failed", message)

    # -- changes ---------------------------------------------------------------------------------------------

    def _claim_changed(self, kind: EventType, claim: Obj, _old: Obj | None) -> None:
        key = key_of(claim)
        self._context.queue.add(self.reconcile_claim, key)
        if kind == "DELETED":
            for entry in self._context.api.store.collection(VOLUMES).indexed(_BY_CLAIM, key):
                self._context.queue.add(self.reconcile_volume, key_of(entry.obj))

    def _volume_changed(self, kind: EventType, volume: Obj, _old: Obj | None) -> None:
        for key in _claim_keys(volume):
            self._context.queue.add(self.reconcile_claim, key)
        if kind != "DELETED":
            self._context.queue.add(self.reconcile_volume, key_of(volume))

    def _class_changed(self, _kind: EventType, _class: Obj, _old: Obj | None) -> None:
        self._queue_unbound()

    def _queue_unbound(self) -> None:
        for key in self._unbound:
            self._context.queue.add(self.reconcile_claim, key)

    # -- writing ---------------------------------------------------------------------------------------------

    def _class(self, claim: Obj) -> Obj | None:
        name = class_of(claim)
        return self._context.find(CLASSES, name) if name else None

    def _set_phase(self, volume: Obj, phase: str, message: str = "") -> Obj:
        status = dict(volume.get("status") or {})
        if status.get("phase") == phase:
            return volume
        status |= {"phase": phase, "lastPhaseTransitionTime": to_timestamp(self._context.now)}
        status.pop("message", None)
        if message:
            status["message"] = message
        return self._context.write_status(VOLUMES, volume, status)

    def _patch(
        self, resource: str, obj: Obj, *, spec: Obj | None = None, annotations: dict[str, Any] | None = None
    ) -> Obj:
        metadata = obj["metadata"]
        patch: Obj = {"metadata": {"uid": metadata["uid"]}}
        if annotations:
            patch["metadata"]["annotations"] = annotations
        if spec:
            patch["spec"] = spec
        return self._context.api.patch(resource, metadata.get("namespace"), metadata["name"], patch)

    def _record(self, obj: Obj, reason: str, message: str, kind: str = "Normal") -> None:
        self._context.events.record(COMPONENT, obj, reason, message, kind)


def _claim_keys(volume: Obj) -> list[str]:
    """The key of the claim for which a volume is reserved."""
    reference = volume["spec"].get("claimRef")
    return [f"{reference.get('namespace')}/{reference.get('name')}"] if reference else []


def _policy(volume: Obj) -> str:
    policy: str = volume["spec"].get("persistentVolumeReclaimPolicy", "Retain")
    return policy
