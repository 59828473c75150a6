"""Validates the schemas of definitions: they must be structural and consistent.

Source: apiextensions-apiserver v1.36 ``pkg/apiserver/schema/validation.go`` and
``pkg/apis/apiextensions/validation/validation.go``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from roadstead.definitions.rules import RULES, compiled_rules, path_steps
from roadstead.schemas.field_errors import forbidden, invalid, not_supported, required
from roadstead.schemas.patterns import compiled
from roadstead.schemas.schema_values import list_causes, value_causes
from roadstead.schemas.structural import (
    EMBEDDED,
    INT_OR_STRING,
    META_FIELDS,
    PRESERVE,
    prune,
    values_schema,
)
from roadstead.values.copies import copied

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

Causes = list["Cause"]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_JUNCTORS = ("allOf", "anyOf", "oneOf")
#: Keywords that no definition may use.
_FORBIDDEN = {
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "patternProperties": "patternProperties is not supported",
    "additionalItems": "additionalItems is not supported",
    "id": "id is not supported",
    "$ref": "$ref is not supported",
}
#: Keywords that a schema inside allOf, anyOf, oneOf and not must leave to the surrounding schema.
_ONLY_STRUCTURE = {
    "type": "must be empty to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "default": "must be undefined to be structural",
    "additionalProperties": "must be undefined to be structural",
    "nullable": "must be false to be structural",
    PRESERVE: "must be false to be structural",
    EMBEDDED: "must be false to be structural",
    INT_OR_STRING: "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    RULES: "must be empty to be structural",
}
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "items": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
#: Keywords allowed at the root of a schema with a status subresource.
_WITH_STATUS = frozenset(
    {"description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}
    | {"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required"}
    | {"items", "properties", "externalDocs", "example", PRESERVE, RULES, "x-kubernetes-map-type"}
)
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def schema_causes(schema: Obj, path: str, *, with_status: bool) -> Causes:
    """Causes for which the schema of a version is invalid; ``path`` is its path in the definition."""
    causes = _root_causes(schema, path, with_status=with_status)
    causes += _node_causes(schema, path, "root", resource=True)
    if causes:
        return causes  # defaults and rules are checked in a valid schema only
    causes = _default_causes(schema, path, root=True)
    return causes or rule_causes(schema, path)


def _root_causes(schema: Obj, path: str, *, with_status: bool) -> Causes:
    causes = []
    kind = schema.get("type")
    if kind and kind != "object":
        causes.append(invalid(f"{path}.type", kind, "must be object at the root"))
    if schema.get("nullable"):
        causes.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    if "additionalProperties" in schema:
        causes.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    strays = [key for key in schema if key not in _WITH_STATUS]
    if with_status and strays:
        text = f"{strays[0]} is not allowed at the root of the schema if the status subresource is enabled"
        causes.append(forbidden(f"{path}.{strays[0]}", text))
    metadata = (schema.get("properties") or {}).get("metadata")
    if metadata is not None:
        stray_fields = set(metadata.get("properties") or {}) - {"name", "generateName"}
        if stray_fields or set(metadata) - {"type", "properties", "description"}:
            text = (
                "must not specify anything other than name and generateName, but metadata is implicitly "
                "specified"
            )
            causes.append(forbidden(f"{path}.properties[metadata]", text))
    return causes


def _node_causes(schema: Obj, path: str, level: str, *, resource: bool = False) -> Causes:
    """Causes for which one schema, or a schema below it, is invalid."""
    causes = _type_causes(schema, path, level)
    causes += [forbidden(f"{path}.{key}", why) for key, why in _FORBIDDEN.items() if key in schema]
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        causes.append(forbidden(f"{path}.uniqueItems", text))
    if schema.get("properties") and schema.get("additionalProperties"):
        text = "additionalProperties and properties are mutual exclusive"
        causes.append(forbidden(f"{path}.additionalProperties", text))
    if PRESERVE in schema and not schema[PRESERVE]:
        causes.append(invalid(f"{path}.{PRESERVE}", schema[PRESERVE], "must be true or undefined"))
    causes += _pattern_causes(schema, path)
    causes += _map_type_causes(schema, path)
    causes += _list_type_causes(schema, path)
    causes += _written_rule_causes(schema, path)
    causes += _all_nested_causes(schema, path, schema, path)
    for name, inner in (schema.get("properties") or {}).items():
        where = f"{path}.properties[{name}]"
        if (resource or schema.get(EMBEDDED)) and name in META_FIELDS:
            wanted = "object" if name == "metadata" else "string"
            if inner.get("type") != wanted:
                causes.append(invalid(f"{where}.type", inner.get("type", ""), f"must be {wanted}"))
            if "default" in inner and resource:
                causes.append(forbidden(f"{where}.default", f"must not be set in top-level {name}"))
            continue
        causes += _node_causes(inner, where, "field")
    items = schema.get("items")
    if isinstance(items, dict):
        causes += _node_causes(items, f"{path}.items", "items")
    elif isinstance(items, list):
        causes.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        causes += _node_causes(values, f"{path}.additionalProperties", "field")
    return causes


def _type_causes(schema: Obj, path: str, level: str) -> Causes:
    kind = schema.get("type")
    causes = []
    if schema.get(EMBEDDED) and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        causes.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        causes.append(required(f"{path}.type", _EMPTY_TYPE[level]))
    elif kind and kind not in _TYPES:
        causes.append(not_supported(f"{path}.type", kind, _TYPES))
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not schema.get("properties"):
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        causes.append(required(f"{path}.properties", text))
    if schema.get(EMBEDDED) and "additionalProperties" in schema:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        causes.append(forbidden(f"{path}.additionalProperties", text))
    if kind == "array" and not schema.get("items"):
        causes.append(required(f"{path}.items", "must be specified"))
    for other in (PRESERVE, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(other):
            text = "must be false if x-kubernetes-int-or-string is true"
            causes.append(invalid(f"{path}.{other}", schema[other], text))
    return causes


def _pattern_causes(schema: Obj, path: str) -> Causes:
    pattern = schema.get("pattern")
    if not pattern:
        return []
    try:
        compiled(pattern)
    except re.error as error:
        text = f"must be a valid regular expression, but isn't: {error}"
        return [invalid(f"{path}.pattern", pattern, text)]
    return []


def _map_type_causes(schema: Obj, path: str) -> Causes:
    given = schema.get("x-kubernetes-map-type")
    if given is None:
        return []
    causes = []
    if schema.get("type") != "object":
        text = "must be object if x-kubernetes-map-type is specified"
        causes.append(invalid(f"{path}.type", schema.get("type", ""), text))
    if given not in ("atomic", "granular"):
        causes.append(not_supported(f"{path}.x-kubernetes-map-type", given, ("atomic", "granular")))
    return causes


def _list_type_causes(schema: Obj, path: str) -> Causes:
    given = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    at_keys = f"{path}.x-kubernetes-list-map-keys"
    causes = []
    if keys and given != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.x-kubernetes-list-type"
        causes.append(invalid(where, given, text) if given else required(where, text))
    if given is None:
        return causes
    if schema.get("type") != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        causes.append(invalid(f"{path}.type", schema.get("type", ""), text))
    if given not in ("atomic", "set", "map"):
        causes.append(
            not_supported(f"{path}.x-kubernetes-list-type", given, ("atomic", "set", "map")),
        )
    items = schema.get("items")
    if not isinstance(items, dict) or given not in ("set", "map"):
        return causes
    if items.get("nullable"):
        text = f"cannot be nullable when x-kubernetes-list-type is {given}"
        causes.append(forbidden(f"{path}.items.nullable", text))
    if given == "set":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        kind = {"array": "x-kubernetes-list-type", "object": "x-kubernetes-map-type"}.get(
            items.get("type", "")
        )
        loose = items.get("type") == "object" and kind not in items
        if kind and (loose or items.get(kind, "atomic") != "atomic"):
            causes.append(invalid(f"{path}.items.{kind}", items.get(kind), text))
        return causes
    if not keys:
        causes.append(required(at_keys, "must not be empty if x-kubernetes-list-type is map"))
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        return [*causes, invalid(f"{path}.items.type", items.get("type", ""), text)]
    return [*causes, *_key_causes(items, keys, path, at_keys)]


def _key_causes(items: Obj, keys: list[str], path: str, at_keys: str) -> Causes:
    causes = []
    if len(set(keys)) < len(keys):
        causes.append(invalid(at_keys, keys, "must not contain duplicate entries"))
    for key in keys:
        inner = (items.get("properties") or {}).get(key)
        where = f"{path}.items.properties[{key}]"
        if inner is None:
            causes.append(invalid(at_keys, keys, "entries must all be names of item properties"))
            continue
        if inner.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            causes.append(invalid(f"{where}.type", inner["type"], text))
        if key not in (items.get("required") or ()) and "default" not in inner:
            text = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
                "property"
            )
            causes.append(required(f"{where}.default", text))
        if inner.get("nullable"):
            text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            causes.append(forbidden(f"{where}.nullable", text))
    return causes


def _all_nested_causes(schema: Obj, path: str, structure: Obj, at: str) -> Causes:
    """Causes for which schemas in allOf, anyOf, oneOf and not are invalid.

    Args:
        schema: the schema that contains them.
        path: the path of the schema.
        structure: the surrounding schema of the same value.
        at: the path of ``structure``.
    """
    causes: Causes = []
    for junctor in _JUNCTORS:
        for index, nested in enumerate(schema.get(junctor) or []):
            if structure.get(INT_OR_STRING) and _is_int_or_string(nested):
                continue
            causes += _nested_causes(nested, f"{path}.{junctor}[{index}]", structure, at)
    if isinstance(schema.get("not"), dict):
        causes += _nested_causes(schema["not"], f"{path}.not", structure, at)
    return causes


def _is_int_or_string(nested: Obj) -> bool:
    """Whether a nested schema only states that the value is an integer or a string."""
    if nested in ({"type": "integer"}, {"type": "string"}):
        return True
    return bool(nested.get("anyOf")) and all(_is_int_or_string(one) for one in nested["anyOf"])


def _nested_causes(nested: Obj, path: str, structure: Obj, at: str) -> Causes:
    causes = [forbidden(f"{path}.{key}", why) for key, why in _ONLY_STRUCTURE.items() if nested.get(key)]
    causes += _pattern_causes(nested, path)
    causes += _all_nested_causes(nested, path, structure, at)
    below: list[tuple[str, Obj, Obj | None]] = [
        (f"properties[{name}]", inner, (structure.get("properties") or {}).get(name))
        for name, inner in (nested.get("properties") or {}).items()
    ]
    if isinstance(nested.get("items"), dict):
        below.append(("items", nested["items"], structure.get("items")))
    for step, inner, around in below:
        if step == "properties[metadata]":
            causes.append(forbidden(f"{path}.{step}", "must not be specified in a nested context"))
        elif around is None:
            causes.append(required(f"{at}.{step}", f"because it is defined in {path}.{step}"))
        else:
            causes += _nested_causes(inner, f"{path}.{step}", around, f"{at}.{step}")
    return causes


def _default_causes(schema: Obj, path: str, *, root: bool = False) -> Causes:
    """Defaults must be valid by their schema and have no fields that it prunes."""
    causes: Causes = []
    default = schema.get("default")
    if default is not None:
        kept: Any = {"value": copied(default)}
        prune(kept, {"properties": {"value": schema}})
        if kept["value"] != default:
            causes.append(invalid(f"{path}.default", default, "must not have unknown fields"))
        # In messages the path of the value is the path of the keyword.
        causes += value_causes(default, schema, f"{path}.default")
        causes += list_causes(default, schema, f"{path}.default")
    for name, inner in (schema.get("properties") or {}).items():
        if not (root and name in META_FIELDS):
            causes += _default_causes(inner, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        causes += _default_causes(schema["items"], f"{path}.items")
    values = values_schema(schema)
    if values is not None:
        causes += _default_causes(values, f"{path}.additionalProperties")
    return causes


def _written_rule_causes(schema: Obj, path: str) -> Causes:
    """Causes for which the members of a rule, apart from its expressions, are invalid."""
    causes = []
    for index, rule in enumerate(schema.get(RULES) or []):
        where = f"{path}.{RULES}[{index}]"
        text, message = str(rule.get("rule", "")).strip(), str(rule.get("message", ""))
        if not text:
            causes.append(required(f"{where}.rule", "rule is not specified"))
        elif message and not message.strip():
            causes.append(invalid(f"{where}.message", message, "must be non-empty if specified"))
        elif re.search(r"[\n\r]", message.strip()):
            causes.append(invalid(f"{where}.message", message, "must not contain line breaks"))
        elif re.search(r"[\n\r]", text) and not message:
            why = "message must be specified if rule contains line breaks"
            causes.append(required(f"{where}.message", why))
        expression = rule.get("messageExpression")
        if expression and not expression.strip():
            why = "messageExpression must be non-empty if specified"
            causes.append(required(f"{where}.messageExpression", why))
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            causes.append(not_supported(f"{where}.reason", rule["reason"], _REASONS))
        field_path = rule.get("fieldPath")
        if field_path and not _leads_somewhere(schema, field_path):
            causes.append(invalid(f"{where}.fieldPath", field_path, "must be a valid path"))
    return causes


def _leads_somewhere(schema: Obj, field_path: str) -> bool:
    steps = path_steps(field_path)
    if steps is None:
        return False
    at: Obj | None = schema
    for step in steps:
        if at is None:
            return False
        at = (at.get("properties") or {}).get(step) or values_schema(at)
    return at is not None


def rule_causes(schema: Obj, path: str) -> Causes:
    """Causes for which the expressions of a schema's rules are invalid."""
    causes = []
    for fault in compiled_rules(schema).faults:
        where = path
        steps = list(fault.at)
        while steps:
            step = steps.pop(0)
            where += f".properties[{steps.pop(0)}]" if step == "properties" else f".{step}"
        causes.append(invalid(f"{where}.{RULES}[{fault.index}].{fault.member}", fault.value, fault.sentence))
    return causes
