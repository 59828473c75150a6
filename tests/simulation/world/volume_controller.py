"""Binds claims to volumes and provisions volumes, as kube-controller-manager and a CSI provisioner do.

Claims of an immediate class get a volume soon; those of a late class when the scheduler has selected a node,
whose zone the volume then has; a volume that the scheduler reserved (``claimRef``) is bound to its claim.
Now and then a provisioner gives up: it takes the selected node away, so that the pod is placed again.

Source: Kubernetes v1.36 ``pkg/controller/volume/persistentvolume``, external-provisioner v5.
"""

from __future__ import annotations

from random import Random

from roadstead.controllers.context import Context
from roadstead.controllers.ownership import key_of
from roadstead.store.store import EventType
from roadstead.values.copies import copied
from roadstead.values.resources import Obj

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
SELECTED = "volume.kubernetes.io/selected-node"
ZONE = "topology.kubernetes.io/zone"
DRIVER, NO_PROVISIONER = "disks.example.com", "kubernetes.io/no-provisioner"

#: Seconds from a claim to its volume.
DELAY_S = (0.1, 4.0)

#: Share of attempts that a provisioner gives up.
GIVES_UP = 0.15


class VolumeController:
    """The controller and the provisioner in one."""

    def __init__(self, context: Context, random: Random) -> None:
        self._context = context
        self._api = context.api
        self._random = random

    def start(self) -> None:
        """Subscribe to claims and volumes."""
        self._api.subscribe(CLAIMS, self._claim_changed)
        self._api.subscribe(VOLUMES, self._volume_changed)

    def _claim_changed(self, kind: EventType, claim: Obj, _old: Obj | None) -> None:
        if kind != "DELETED" and (claim.get("status") or {}).get("phase") != "Bound":
            self._context.queue.add(self.reconcile, key_of(claim), self._random.uniform(*DELAY_S))

    def _volume_changed(self, kind: EventType, volume: Obj, _old: Obj | None) -> None:
        reference = volume["spec"].get("claimRef")
        if kind != "DELETED" and reference:
            key = f"{reference['namespace']}/{reference['name']}"
            self._context.queue.add(self.reconcile, key, self._random.uniform(*DELAY_S))

    def reconcile(self, key: str) -> None:
        """Bind a claim, or make what it needs."""
        claim = self._context.find(CLAIMS, key)
        if claim is None or (claim.get("status") or {}).get("phase") == "Bound":
            return
        reserved = self._reserved(claim)
        if reserved is not None:
            self._bind(claim, reserved)
            return
        storage_class = self._api.find(CLASSES, None, claim["spec"].get("storageClassName") or "")
        if storage_class is None or storage_class["provisioner"] == NO_PROVISIONER:
            return
        if storage_class["volumeBindingMode"] == "Immediate":
            self._provision(claim, "")
            return
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED)
        if not node:
            return
        found = self._context.find("nodes", node)
        if found is None or self._random.random() < GIVES_UP:
            self._api.patch(
                CLAIMS,
                claim["metadata"]["namespace"],
                claim["metadata"]["name"],
                {"metadata": {"annotations": {SELECTED: None}}},
            )
            return
        self._provision(claim, (found["metadata"].get("labels") or {}).get(ZONE, ""))

    def _reserved(self, claim: Obj) -> Obj | None:
        """The volume that names the claim."""
        for volume in self._api.list(VOLUMES):
            if (volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]:
                return volume
        return None

    def _provision(self, claim: Obj, zone: str) -> None:
        """Make a volume, which every node of the zone reaches; without a zone, every node."""
        meta, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{meta['uid']}"
        volume: Obj = {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "storageClassName": spec["storageClassName"],
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
        }
        if zone:
            term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
            volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        self._bind(claim, self._api.create(VOLUMES, {"metadata": {"name": name}, "spec": volume}))

    def _bind(self, claim: Obj, volume: Obj) -> None:
        """The claim has this volume."""
        bound = copied(claim)
        bound["spec"]["volumeName"] = volume["metadata"]["name"]
        annotations = bound["metadata"].setdefault("annotations", {})
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
        bound = copied(self._api.update(CLAIMS, bound))
        bound["status"] = {
            "phase": "Bound",
            "accessModes": claim["spec"]["accessModes"],
            "capacity": volume["spec"]["capacity"],
        }
        self._api.update_status(CLAIMS, bound)
        taken = copied(self._api.get(VOLUMES, None, volume["metadata"]["name"]))
        taken["status"] = {**(taken.get("status") or {}), "phase": "Bound"}
        self._api.update_status(VOLUMES, taken)
