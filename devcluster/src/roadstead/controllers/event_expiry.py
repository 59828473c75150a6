"""Deletes Events that have not changed for an hour, as an API server does through leases in etcd.

Source: kubernetes v1.36 ``cmd/kube-apiserver``, ``--event-ttl`` (1h); each write restarts the hour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

EVENT_TTL_S = 3600.0


class EventExpiry:
    """Deletes expired Events.

    Args:
        context: the context of controllers.
        ttl_s: seconds from the last write of an Event to its deletion.
    """

    def __init__(self, context: Context, ttl_s: float = EVENT_TTL_S) -> None:
        self._context = context
        self._ttl_s = ttl_s

    def start(self) -> None:
        """Subscribe to Events."""
        self._context.api.subscribe("events", self._changed)

    def reconcile(self, key: str) -> None:
        """Delete an Event that has not changed since it was queued."""
        if event := self._context.find("events", key):
            metadata = event["metadata"]
            self._context.api.delete("events", metadata["namespace"], metadata["name"])

    def _changed(self, kind: EventType, event: Obj, _old: Obj | None) -> None:
        if kind != "DELETED":
            self._context.queue.add(self.reconcile, key_of(event), self._ttl_s, restart=True)
