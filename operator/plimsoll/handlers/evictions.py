"""Eviction record deleted → control.keeping."""

from typing import Any, Protocol

import kopf

GROUP, VERSION, PLURAL = "plimsoll.dev", "v1alpha1", "evictions"


class RecordSink(Protocol):
    """Remembers records."""

    def forget(self, namespace: str, name: str) -> None:
        """A record is gone."""


def register(registry: kopf.OperatorRegistry, records: RecordSink) -> None:
    """Enter the handler. What records say is our own writing and not read back; that one is gone is news."""

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def record_changed(event: kopf.RawEvent, namespace: str | None, name: str | None, **_: Any) -> None:
        if event["type"] == "DELETED":
            records.forget(namespace or "", name or "")
