"""Deletes the pods of deleted nodes without waiting for a kubelet.

Source: kubernetes v1.36 ``pkg/controller/podgc/gc_controller.go`` (orphaned pods).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import is_finished, with_condition

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

QUARANTINE_S = 40.0
"""Seconds for which pods of a deleted node are kept, in case it is created again."""


class PodGarbageController:
    """Deletes the pods of deleted nodes.

    Args:
        context: the context of controllers.
        quarantine_s: seconds between the deletion of a node and that of its pods.
    """

    def __init__(self, context: Context, quarantine_s: float = QUARANTINE_S) -> None:
        self._context = context
        self._quarantine_s = quarantine_s

    def start(self) -> None:
        """Subscribe to nodes."""
        self._context.api.subscribe("nodes", self._node_changed)

    def reconcile(self, node: str) -> None:
        """Delete the pods of a node that was not created again."""
        if self._context.find("nodes", node):
            return
        for pod in self._context.pods_on(node):
            self._delete(pod)

    def _node_changed(self, kind: EventType, node: Obj, _old: Obj | None) -> None:
        if kind == "DELETED":
            self._context.queue.add(self.reconcile, key_of(node), self._quarantine_s)

    def _delete(self, pod: Obj) -> None:
        status = pod.get("status") or {}
        if not is_finished(pod):
            conditions = with_condition(
                status.get("conditions") or [],
                "DisruptionTarget",
                "True",
                "DeletionByPodGC",
                "PodGC: node no longer exists",
                now=self._context.now,
            )
            self._context.write_status("pods", pod, {**status, "phase": "Failed", "conditions": conditions})
        metadata = pod["metadata"]
        self._context.api.delete(
            "pods", metadata["namespace"], metadata["name"], grace_seconds=0, uid=metadata["uid"]
        )
