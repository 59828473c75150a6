"""Events, in their two API groups: the same objects with other field names.

They are kept as those of v1. Source: Kubernetes v1.36 ``pkg/apis/events/v1/conversion.go``,
``pkg/apis/core/validation/events.go``, ``pkg/registry/core/event``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.devcluster.kinds.checks import immutable, invalid, required
from plimsoll.devcluster.kinds.kind import Kind
from plimsoll.devcluster.kinds.metadata import path_segment_faults

if TYPE_CHECKING:
    from plimsoll.devcluster.resources import Obj
    from plimsoll.devcluster.statuses import Cause

NEW = "events.k8s.io/v1"
#: v1 name: events.k8s.io name.
_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "reportingComponent": "reportingController",
}
_OLD_NAMES = {new: old for old, new in _NAMES.items()}


def converted(obj: Obj, api_version: str) -> Obj:
    """An Event of one group as one of the other."""
    if obj["apiVersion"] == api_version:
        return obj
    names = _NAMES if api_version == NEW else _OLD_NAMES
    return {**{names.get(key, key): value for key, value in obj.items()}, "apiVersion": api_version}


class Events(Kind):
    """Events of either group."""

    creates_on_update = True

    def __init__(self, *, new: bool = False) -> None:
        self._new = new
        self._about = "regarding" if new else "involvedObject"

    def name_faults(self, name: str) -> list[str]:
        """Anything that can be in a path; recorders put the time in."""
        return path_segment_faults(name)

    def default(self, obj: Obj) -> None:
        """The object it is about is in the event's namespace, of v1 where nothing is said."""
        if not self._new:
            obj.setdefault("involvedObject", {})

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Those of events.k8s.io must say who reports what and when; those of v1 may be older."""
        namespace = obj["metadata"].get("namespace", "")
        about = obj.get(self._about) or {}
        causes: list[Cause] = []
        expected = about.get("namespace") or "default"
        if namespace != expected:
            told = "does not match event.namespace"
            causes.append(invalid("involvedObject.namespace", about.get("namespace", ""), told))
        modern = self._new
        if not modern:
            return causes
        if not obj.get("eventTime"):
            causes.append(required("eventTime"))
        return causes + self._modern_causes(obj)

    @staticmethod
    def _modern_causes(obj: Obj) -> list[Cause]:
        causes = [
            required(field)
            for field in ("reportingController", "reportingInstance", "action", "reason")
            if not obj.get(field)
        ]
        if obj.get("type") not in ("Normal", "Warning"):
            causes.append(invalid("type", obj.get("type", ""), "has invalid value: "))
        if len(obj.get("note", "").encode()) > 1024:
            causes.append(invalid("message", "", "can have at most 1024 bytes"))
        causes += [
            invalid(field, obj[field], "can have at most 128 bytes")
            for field in ("reason", "action", "reportingInstance")
            if len(obj.get(field, "")) > 128
        ]
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Only the series counts on; in v1 most may change."""
        if not self._new:
            return []
        causes: list[Cause] = []
        for field in ("regarding", "related", "reason", "action", "type", "eventTime", "reportingController"):
            causes += immutable(_OLD_NAMES.get(field, field), new.get(field), old.get(field))
        return causes + immutable("message", new.get("note"), old.get("note"))

    def field_labels(self) -> frozenset[str]:
        """As upstream."""
        return _NEW_LABELS if self._new else _OLD_LABELS

    def fields(self, obj: Obj) -> dict[str, str]:
        """As upstream; ``obj`` is as stored, of v1."""
        about = obj.get("involvedObject") or {}
        source = (obj.get("source") or {}).get("component") or obj.get("reportingComponent", "")
        values = {f"{self._about}.{key}": about.get(key, "") for key in _ABOUT}
        values["reason"] = obj.get("reason", "")
        values["type"] = obj.get("type", "")
        if self._new:
            values["reportingController"] = obj.get("reportingComponent", "") or source
        else:
            values["source"] = source
            values["reportingComponent"] = obj.get("reportingComponent", "")
        return values


_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_OLD_LABELS = frozenset(
    [f"involvedObject.{key}" for key in _ABOUT] + ["reason", "source", "type", "reportingComponent"]
)
_NEW_LABELS = frozenset([f"regarding.{key}" for key in _ABOUT] + ["reason", "type", "reportingController"])
