"""Applies structural schemas: prunes unknown fields, drops nulls, fills in defaults.

All three change the object in place; it must not be shared. A schema is the ``openAPIV3Schema`` of a
version in the definition.

Source: apiextensions-apiserver v1.36, ``schema/pruning`` and ``schema/defaulting``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roadstead.schemas.field_errors import below
from roadstead.values.copies import copied

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roadstead.values.resources import Obj

#: Fields that every resource has; no schema prunes them.
META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"


def values_schema(schema: Obj) -> Obj | None:
    """The schema of ``additionalProperties``; ``True`` there is a schema that accepts anything."""
    given = schema.get("additionalProperties")
    if given is True:
        return {PRESERVE: True}
    return given if isinstance(given, dict) else None


def field_schema(schema: Obj, name: str) -> Obj | None:
    """The schema of one field of an object, None for an unknown field."""
    found: Obj | None = (schema.get("properties") or {}).get(name)
    return found if found is not None else values_schema(schema)


def prune(obj: Obj, schema: Obj) -> list[str]:
    """Remove the fields of a resource that are not in its schema.

    Returns:
        the paths of the removed fields, sorted.
    """
    unknown: list[str] = []
    _prune(obj, {**schema, EMBEDDED: True}, "", unknown)
    return sorted(unknown)


def _prune(value: Any, schema: Obj | None, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        _prune_fields(value, schema, path, unknown)
    elif isinstance(value, list):
        keeps = schema is not None and schema.get(PRESERVE)
        items = (schema or {}).get("items")
        if keeps and items is None:
            return
        for index, item in enumerate(value):
            _prune(item, items, f"{path}[{index}]", unknown)


def _prune_fields(obj: Obj, schema: Obj | None, path: str, unknown: list[str]) -> None:
    if schema is None:
        unknown += [below(path, name) for name in obj]
        obj.clear()
        return
    for name in list(obj):
        if schema.get(EMBEDDED) and name in META_FIELDS:
            continue
        inner = field_schema(schema, name)
        if inner is not None:
            _prune(obj[name], inner, below(path, name), unknown)
        elif not schema.get(PRESERVE):
            unknown.append(below(path, name))
            del obj[name]


def drop_nulls(value: Any, schema: Obj | None) -> None:
    """Remove nulls from fields that are not nullable and have no default that would replace them."""
    if isinstance(value, dict):
        for name in list(value):
            inner = field_schema(schema, name) if schema is not None else None
            if value[name] is None:
                if inner is not None and not inner.get("nullable") and inner.get("default") is None:
                    del value[name]
            else:
                drop_nulls(value[name], inner)
    elif isinstance(value, list):
        items = (schema or {}).get("items")
        for item in value:
            drop_nulls(item, items)


def fill_defaults(value: Any, schema: Obj | None) -> None:
    """Give absent fields their default; a null that is not allowed counts as absent."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            default = inner.get("default")
            if default is not None and (name not in value or _must_not_be_null(value[name], inner)):
                value[name] = copied(default)
        for name in value:
            inner = field_schema(schema, name)
            if inner is not None and _must_not_be_null(value[name], inner):
                value[name] = copied(inner.get("default"))
            fill_defaults(value[name], inner)
    elif isinstance(value, list):
        items = schema.get("items")
        for index, item in enumerate(value):
            if items is not None and _must_not_be_null(item, items):
                value[index] = copied(items.get("default"))
            fill_defaults(value[index], items)


def _must_not_be_null(value: Any, schema: Obj) -> bool:
    return value is None and not schema.get("nullable")


def without_metadata(schema: Obj) -> Obj:
    """The schema of a resource without its metadata, which is the same for all resources."""
    properties = schema.get("properties") or {}
    return {**schema, "properties": {key: inner for key, inner in properties.items() if key != "metadata"}}


def old_item_finder(schema: Obj, old: Any) -> Callable[[Any], Any]:
    """A function that finds the old item which an item of a list replaces; by keys, if the list is a map."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return lambda _item: None
    by_key = {_key(item, keys): item for item in old if isinstance(item, dict)}
    return lambda item: by_key.get(_key(item, keys)) if isinstance(item, dict) else None


def _key(item: Obj, keys: Sequence[str]) -> str:
    return repr([item.get(key) for key in keys])
