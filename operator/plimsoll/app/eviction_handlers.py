"""Passes deleted and annotated Eviction records from kopf to the record store and the proposals."""

from collections.abc import Mapping
from typing import Any, Protocol

import kopf

GROUP, VERSION, PLURAL = "plimsoll.dev", "v1alpha1", "evictions"


class RecordSink(Protocol):
    """Remembers records."""

    def forget(self, namespace: str, name: str) -> None:
        """A record is gone."""


class AnswerSink(Protocol):
    """Receives the answers of users to proposals."""

    def annotated(self, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """A record has these annotations."""

    def forget(self, namespace: str, name: str) -> None:
        """A record is gone."""


def register(registry: kopf.OperatorRegistry, records: RecordSink, answers: AnswerSink) -> None:
    """Enter the handler.

    What records say is our own writing and not read back; annotations, and that one is gone, are news.
    """

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def record_changed(event: kopf.RawEvent, namespace: str | None, name: str | None, **_: Any) -> None:
        if event["type"] == "DELETED":
            records.forget(namespace or "", name or "")
            answers.forget(namespace or "", name or "")
        else:
            annotations = event["object"].get("metadata", {}).get("annotations") or {}
            answers.annotated(namespace or "", name or "", annotations)
