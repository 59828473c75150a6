"""Deletes finished Jobs after their ``ttlSecondsAfterFinished``.

Source: kubernetes v1.36 ``pkg/controller/ttlafterfinished``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.schemas.timestamps import to_seconds

if TYPE_CHECKING:
    from roadstead.controllers.context import Context

RESOURCE = "jobs.batch"


class TtlAfterFinishedController:
    """Deletes Jobs whose time to live is over."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Subscribe to Jobs."""
        self._context.enqueue_all(RESOURCE, self.reconcile)

    def reconcile(self, key: str) -> None:
        """Delete a finished Job, or queue it for the time of its deletion."""
        job = self._context.find(RESOURCE, key)
        if job is None or (ttl := job["spec"].get("ttlSecondsAfterFinished")) is None:
            return
        conditions = (job.get("status") or {}).get("conditions") or ()
        ended = next(
            (c for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True"), None
        )
        if ended is None:
            return
        left = to_seconds(ended["lastTransitionTime"]) + ttl - self._context.now
        if left > 0:
            self._context.queue.add(self.reconcile, key, left)
            return
        metadata = job["metadata"]
        self._context.api.delete(
            RESOURCE, metadata["namespace"], metadata["name"], propagation="Foreground", uid=metadata["uid"]
        )
