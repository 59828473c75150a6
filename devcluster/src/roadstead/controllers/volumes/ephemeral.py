"""Creates the claims of ephemeral volumes; they are garbage when their pod is gone.

Source: kubernetes v1.36 ``pkg/controller/volume/ephemeral``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import is_terminating
from roadstead.controllers.volumes.matching import CLAIMS
from roadstead.values.copies import copied

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj


class EphemeralVolumeController:
    """Creates a claim for each ephemeral volume of a pod."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Subscribe to pods."""
        self._context.api.subscribe("pods", self._pod_changed)
        for pod in self._context.api.list("pods"):
            self._pod_changed("ADDED", pod, None)

    def reconcile(self, key: str) -> None:
        """Create what is missing."""
        pod = self._context.find("pods", key)
        if pod is None or is_terminating(pod):
            return
        metadata = pod["metadata"]
        for volume in _ephemeral_volumes(pod):
            name = f"{metadata['name']}-{volume['name']}"
            if self._context.find(CLAIMS, f"{metadata['namespace']}/{name}"):
                continue
            template = volume["ephemeral"]["volumeClaimTemplate"]
            given = template.get("metadata") or {}
            reference = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
            claim = {
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "labels": dict(given.get("labels") or {}),
                    "annotations": dict(given.get("annotations") or {}),
                    "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
                },
                "spec": copied(template["spec"]),
            }
            self._context.api.create(CLAIMS, claim)

    def _pod_changed(self, kind: EventType, pod: Obj, _old: Obj | None) -> None:
        if kind == "ADDED" and _ephemeral_volumes(pod):
            self._context.queue.add(self.reconcile, key_of(pod))


def _ephemeral_volumes(pod: Obj) -> list[Obj]:
    return [volume for volume in pod["spec"].get("volumes") or () if "ephemeral" in volume]
