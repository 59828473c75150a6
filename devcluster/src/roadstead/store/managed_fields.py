"""Tracks the managers of fields; ``metadata.managedFields`` is rendered from them.

Source: apimachinery v1.36 ``util/managedfields`` and structured-merge-diff v6 ``merge/update.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from roadstead.store.field_sets import Fields, compared, difference, union, whole

if TYPE_CHECKING:
    from roadstead.schemas.schemas import Node
    from roadstead.values.resources import Obj

#: Metadata without owner, because the server sets it.
_UNOWNED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "selfLink",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_UNOWNED_STEPS = frozenset(f"f:{name}" for name in _UNOWNED)


@dataclass(frozen=True, slots=True)
class Manager:
    """An entry of managedFields."""

    name: str
    operation: str  # "Apply" or "Update"
    api_version: str
    time: str
    subresource: str
    fields: Fields

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of a manager."""
        return (self.name, self.operation, self.subresource)

    @property
    def entry(self) -> Obj:
        """As in ``metadata.managedFields``."""
        entry: Obj = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields,
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


Managers = tuple[Manager, ...]


def read(entries: Any) -> Managers:
    """Managers from ``metadata.managedFields``; malformed entries are dropped."""
    return tuple(
        Manager(
            str(one.get("manager", "")),
            str(one.get("operation", "Update")),
            str(one.get("apiVersion", "")),
            str(one.get("time", "")),
            str(one.get("subresource", "")),
            one.get("fieldsV1") or {},
        )
        for one in entries
        if isinstance(one, dict) and one.get("fieldsV1")
    )


def rendered(obj: Obj, managers: Managers) -> bytes:
    """An object as JSON with its managedFields; it begins with its kind."""
    first = {"kind": obj["kind"], "apiVersion": obj["apiVersion"]}
    if not managers:
        return orjson.dumps({**first, **obj})
    metadata = {**obj["metadata"], "managedFields": [manager.entry for manager in managers]}
    return orjson.dumps({**first, **obj, "metadata": metadata})


def owned(fields: Fields, subresource: str) -> Fields:
    """The part of a set that can be owned through the main resource or a subresource."""
    result = {key: value for key, value in fields.items() if key not in ("f:apiVersion", "f:kind", ".")}
    metadata = result.pop("f:metadata", None)
    if metadata:
        kept = {key: value for key, value in metadata.items() if key not in _UNOWNED_STEPS and key != "."}
        if kept:
            result["f:metadata"] = kept
    if subresource:
        return {key: value for key, value in result.items() if key in ("f:status", "f:metadata")}
    return result


def _metadata_apart(obj: Obj) -> Obj:
    """An object without the metadata that has no owner."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _UNOWNED}
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    return {**rest, "metadata": metadata} if metadata else rest


def created(obj: Obj, schema: Node, who: Manager, *, has_status: bool) -> Managers:
    """The managers of a new object."""
    content = _metadata_apart(obj)
    if has_status:
        content.pop("status", None)
    fields = {key: value for key, value in whole(content, schema).items() if key != "."}
    return (replace(who, fields=fields),) if fields else ()


def updated(managers: Managers, old: Obj, new: Obj, schema: Node, who: Manager) -> Managers:
    """The managers after an update: the writer owns the changed fields, the others lose them."""
    changed, removed = compared(_metadata_apart(old), _metadata_apart(new), schema)
    if not changed and not removed:
        return managers
    result = []
    mine: Fields = {}
    for manager in managers:
        if manager.key == who.key:
            mine = manager.fields
            continue
        fields = difference(difference(manager.fields, changed), removed)
        if fields:
            result.append(manager if fields == manager.fields else replace(manager, fields=fields))
    fields = difference(union(mine, changed), removed)
    if fields:
        result.append(replace(who, fields=fields))
    return tuple(result)
