"""Reads the Eviction records of a snapshot."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson
from pydantic import ValidationError

from plimsoll.api.v1alpha1.eviction import Eviction, EvictionStatus
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.model.names import RecordKey
from plimsoll.records.record import Record
from plimsoll.snapshots.content import RECORDS, SnapshotContent

Skip = Callable[[str, str, str], None]
"""Called with the plural, ``namespace/name`` and the problem of an object that cannot be read."""


def ignored(_plural: str, _name: str, _problem: str) -> None:
    """Leave an unreadable object out."""


def records_of(content: SnapshotContent, skip: Skip = ignored) -> dict[RecordKey, Record]:
    """The readable records by ``namespace/name``."""
    found = (_record(document, skip) for document in content.objects.get(RECORDS, ()))
    return {record.key: record for record in found if record is not None}


def plain(plural: str, document: bytes, skip: Skip) -> dict[str, Any] | None:
    """A document as plain values; None if it is not an object."""
    try:
        found = orjson.loads(document)
    except orjson.JSONDecodeError as exc:
        skip(plural, "", str(exc))
        return None
    return found if isinstance(found, dict) and isinstance(found.get("metadata"), dict) else None


def _record(document: bytes, skip: Skip) -> Record | None:
    raw = plain(RECORDS, document, skip)
    if raw is None:
        return None
    meta = raw.get("metadata") or {}
    values = {key: value for key, value in raw.items() if key != "metadata"}
    values["metadata"] = {"name": meta.get("name"), "namespace": meta.get("namespace")}
    try:
        eviction = Eviction.model_validate(values)
        namespace, name = str(meta["namespace"]), str(meta["name"])
        created = datetime.fromisoformat(meta["creationTimestamp"]).timestamp()
    except (ValidationError, KeyError, OverflowError, ValueError, TypeError) as exc:
        problem = (
            summary(field_errors(exc, model=Eviction)) if isinstance(exc, ValidationError) else repr(exc)
        )
        skip(RECORDS, f"{meta.get('namespace')}/{meta.get('name')}", problem)
        return None
    return Record(namespace, name, eviction.spec, eviction.status or EvictionStatus(), created)
