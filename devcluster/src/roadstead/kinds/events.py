"""Checks Events and converts them between their two API groups.

They are stored as v1. Source: Kubernetes v1.36 ``pkg/apis/events/v1/conversion.go``,
``pkg/apis/core/validation/events.go``, ``pkg/registry/core/event``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import immutable, invalid, required
from roadstead.kinds.checks.metadata import path_segment_faults, qualified_name_faults
from roadstead.kinds.kind import Kind

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

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
_LONGEST_TEXT, _LONGEST_MESSAGE = 128, 1024
_OLD_NAMES = {new: old for old, new in _NAMES.items()}


def converted(obj: Obj, api_version: str) -> Obj:
    """An Event of one group as one of the other."""
    if obj["apiVersion"] == api_version:
        return obj
    names = _NAMES if api_version == NEW else _OLD_NAMES
    result = {**{names.get(key, key): value for key, value in obj.items()}, "apiVersion": api_version}
    if api_version == NEW and not result.get("reportingController"):
        result.pop("reportingController", None)
    return result


class Events(Kind):
    """Events of either group."""

    creates_on_update = True
    qualified_finalizers = False

    def __init__(self, *, new: bool = False) -> None:
        self._new = new
        self._about = "regarding" if new else "involvedObject"

    def name_faults(self, name: str) -> list[str]:
        """Any path segment is a name; recorders append the time."""
        return path_segment_faults(name)

    def default(self, obj: Obj) -> None:
        """Some fields are always present, possibly empty."""
        if self._new:
            obj.setdefault("deprecatedSource", {})
            return
        obj.setdefault("involvedObject", {})
        obj.setdefault("source", {})
        obj.setdefault("reportingComponent", "")
        obj.setdefault("reportingInstance", "")

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Events of events.k8s.io must name the reporter and the time; those of v1 need not."""
        causes = self._shared_causes(obj)
        return causes + self._modern_causes(obj) if self._new else causes

    def _shared_causes(self, obj: Obj) -> list[Cause]:
        """Faults in either group; an event with ``eventTime`` must name its reporter."""
        namespace = obj["metadata"].get("namespace", "")
        about = (obj.get(self._about) or {}).get("namespace", "")
        why = "does not match event.namespace"
        mismatch = [invalid("involvedObject.namespace", about, why)]
        if not obj.get("eventTime"):
            return mismatch if namespace != (about or "default") else []
        causes = mismatch if not about and namespace not in ("default", "kube-system") else []
        at = "reportingController" if self._new else "reportingComponent"
        reporter, message = obj.get(at, ""), obj.get("note" if self._new else "message", "")
        if not reporter:
            causes.append(required(at))
        causes += [invalid(at, reporter, fault) for fault in qualified_name_faults(reporter)]
        for field in ("reportingInstance", "action", "reason"):
            text = obj.get(field, "")
            if not text:
                causes.append(required(field))
            if len(text) > _LONGEST_TEXT:
                causes.append(invalid(field, "", f"can have at most {_LONGEST_TEXT} characters"))
        if len(message.encode()) > _LONGEST_MESSAGE:
            causes.append(invalid("message", "", f"can have at most {_LONGEST_MESSAGE} characters"))
        return causes

    @staticmethod
    def _modern_causes(obj: Obj) -> list[Cause]:
        causes = [] if obj.get("eventTime") else [required("eventTime")]
        if obj.get("type") not in ("Normal", "Warning"):
            causes.append(invalid("type", "", "has invalid value: "))
        series = obj.get("series")
        if series is not None and series.get("count", 0) < 2:
            causes.append(invalid("series.count", "", "should be at least 2"))
        if series is not None and not series.get("lastObservedTime"):
            causes.append(required("series.lastObservedTime"))
        fields = ("FirstTimestamp", "LastTimestamp", "Count", "Source")
        return causes + [
            invalid(_OLD_NAMES[f"deprecated{field}"], "", "needs to be unset")
            for field in fields
            if obj.get(f"deprecated{field}")
        ]

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """In events.k8s.io only the series may change, in v1 most fields."""
        causes = self._shared_causes(new)
        if not self._new:
            return causes
        for field in ("regarding", "related", "reason", "action", "type", "eventTime", "reportingController"):
            causes += immutable(_OLD_NAMES.get(field, field), new.get(field), old.get(field))
        return causes + immutable("message", new.get("note"), old.get("note"))

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return _NEW_LABELS if self._new else _OLD_LABELS

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors; ``obj`` is stored as v1."""
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
