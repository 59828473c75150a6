"""Removes the finalizers of deleted claims that no pod uses, and of deleted volumes that are not bound.

A pod counts from its binding to a node until it is deleted, also when it has ended.

Source: kubernetes v1.36 ``pkg/controller/volume/pvcprotection``, ``pkg/controller/volume/pvprotection``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import is_terminating
from roadstead.controllers.volumes.matching import CLAIMS, VOLUMES

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

CLAIM_FINALIZER, VOLUME_FINALIZER = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
_BY_CLAIM = "claim"


def claims_of(pod: Obj) -> list[str]:
    """The keys of the claims that a pod uses, those of ephemeral volumes included."""
    metadata, found = pod["metadata"], []
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            found.append(f"{metadata['namespace']}/{volume['persistentVolumeClaim']['claimName']}")
        elif "ephemeral" in volume:
            found.append(f"{metadata['namespace']}/{metadata['name']}-{volume['name']}")
    return found


class ClaimProtectionController:
    """Lets claims go when no pod uses them."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Subscribe to claims, and to pods that may release one."""
        api = self._context.api
        api.store.collection("pods").add_index(_BY_CLAIM, claims_of)
        api.subscribe("pods", self._pod_changed)
        self._context.enqueue_all(CLAIMS, self.reconcile)

    def reconcile(self, key: str) -> None:
        """Remove the finalizer of a terminating claim that no pod uses."""
        claim = self._context.find(CLAIMS, key)
        if claim is None or not is_terminating(claim):
            return
        pods = self._context.api.store.collection("pods").indexed(_BY_CLAIM, key)
        if not any(entry.obj["spec"].get("nodeName") for entry in pods):
            self._context.drop_finalizer(CLAIMS, claim, CLAIM_FINALIZER)

    def _pod_changed(self, kind: EventType, pod: Obj, _old: Obj | None) -> None:
        if kind == "DELETED":
            for key in claims_of(pod):
                self._context.queue.add(self.reconcile, key)


class VolumeProtectionController:
    """Lets volumes go when they are not bound."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Subscribe to volumes."""
        self._context.enqueue_all(VOLUMES, self.reconcile)

    def reconcile(self, key: str) -> None:
        """Remove the finalizer of a terminating volume that is not bound."""
        volume = self._context.find(VOLUMES, key)
        if volume and is_terminating(volume) and (volume.get("status") or {}).get("phase") != "Bound":
            self._context.drop_finalizer(VOLUMES, volume, VOLUME_FINALIZER)
