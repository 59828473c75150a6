"""Validates values against structural schemas, with the API server's messages.

Source: kube-openapi ``pkg/validation/validate``; apiextensions-apiserver v1.36 ``apiserver/validation`` and
``schema/listtype``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from roadstead.schemas.field_errors import (
    NOWHERE,
    below,
    duplicate,
    go_number,
    invalid,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
    type_invalid,
)
from roadstead.schemas.formats import fits
from roadstead.schemas.patterns import compiled
from roadstead.schemas.structural import INT_OR_STRING, field_schema, old_item_finder, values_schema

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

Causes = list["Cause"]

_INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def type_name(value: Any) -> str:
    """The JSON schema's name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def value_causes(value: Any, schema: Obj, path: str = "", old: Any = None) -> Causes:
    """Causes for which a value is invalid.

    Args:
        value: a JSON value.
        schema: a structural schema.
        path: the path of the value.
        old: the value that it replaces; unchanged parts are not validated again.
    """
    if (value is None and schema.get("nullable")) or (old is not None and value == old):
        return []
    causes = _type_causes(value, schema, path)
    if value is None:
        return causes
    causes += _junctor_causes(value, schema, path)
    if isinstance(value, str):
        causes += _string_causes(value, schema, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        causes += _number_causes(value, schema, path)
    elif isinstance(value, list):
        causes += _array_causes(value, schema, path, old)
    if schema.get("enum") is not None and not any(_same(value, one) for one in schema["enum"]):
        causes.append(not_supported(path, value, schema["enum"]))
    if isinstance(value, dict):
        causes += _object_causes(value, schema, path, old)
    return causes


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def _type_causes(value: Any, schema: Obj, path: str) -> Causes:
    wanted: tuple[str, ...]
    if schema.get(INT_OR_STRING):
        wanted = ("integer", "string")
    elif schema.get("type"):
        wanted = (schema["type"],)
    else:
        return []
    given = type_name(value)
    if given in wanted or (given == "integer" and "number" in wanted):
        return []
    text = f'{path or "."} in body must be of type {",".join(wanted)}: "{given}"'
    return [type_invalid(path or NOWHERE, given, text)]


def _string_causes(value: str, schema: Obj, path: str) -> Causes:
    causes = []
    most, least = schema.get("maxLength"), schema.get("minLength")
    if most is not None and len(value) > most:
        causes.append(too_long(path, most))
    if least is not None and len(value) < least:
        causes.append(invalid(path, value, f"{path} in body should be at least {least} chars long"))
    pattern = schema.get("pattern")
    if pattern and not compiled(pattern).search(value):
        causes.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
    form = schema.get("format")
    if form and schema.get("type") == "string" and not fits(form, value):
        causes.append(type_invalid(path, value, f"{path} in body must be of type {form}: {quoted(value)}"))
    return causes


def _number_causes(value: float, schema: Obj, path: str) -> Causes:
    causes = []
    factor = schema.get("multipleOf")
    if factor:
        times = value / factor
        if not math.isclose(times, round(times), rel_tol=0, abs_tol=1e-9):
            text = f"{path} in body should be a multiple of {go_number(factor)}"
            causes.append(invalid(path, value, text))
    most, least = schema.get("maximum"), schema.get("minimum")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            causes.append(invalid(path, value, f"{path} in body should be less than {go_number(most)}"))
        elif value > most:
            text = f"{path} in body should be less than or equal to {go_number(most)}"
            causes.append(invalid(path, value, text))
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            causes.append(invalid(path, value, f"{path} in body should be greater than {go_number(least)}"))
        elif value < least:
            text = f"{path} in body should be greater than or equal to {go_number(least)}"
            causes.append(invalid(path, value, text))
    bounds = _INTEGER_RANGES.get(schema.get("format", ""))
    if bounds and schema.get("type") == "integer" and not bounds[0] <= value <= bounds[1]:
        text = f"Checked value must be of type integer with format {schema['format']} in {path}"
        causes.append(invalid(path, value, text))
    return causes


def _array_causes(value: list[Any], schema: Obj, path: str, old: Any) -> Causes:
    causes: Causes = []
    items = schema.get("items")
    if items is not None:
        find = old_item_finder(schema, old)
        for index, item in enumerate(value):
            causes += value_causes(item, items, f"{path}[{index}]", find(item))
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        causes.append(invalid(path, len(value), f"{path} in body should have at least {least} items"))
    if most is not None and len(value) > most:
        causes.append(too_many(path, len(value), most))
    return causes


def _object_causes(value: Obj, schema: Obj, path: str, old: Any) -> Causes:
    causes: Causes = []
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    where = path or NOWHERE
    if least is not None and len(value) < least:
        text = f"{path} in body should have at least {least} properties"
        causes.append(invalid(where, len(value), text))
    if most is not None and len(value) > most:
        causes.append(too_many(where, len(value), most))
    if schema.get("additionalProperties") is False:
        known = schema.get("properties") or {}
        for name in value:
            if name not in known:
                causes.append(invalid(where, "", f"{path}.{name} in body is a forbidden property"))
    before = old if isinstance(old, dict) else {}
    for name, item in value.items():
        inner = field_schema(schema, name)
        if inner is not None:
            causes += value_causes(item, inner, below(path, name), before.get(name))
    causes += [required(below(path, name)) for name in schema.get("required") or () if name not in value]
    return causes


def _junctor_causes(value: Any, schema: Obj, path: str) -> Causes:
    """anyOf, oneOf, allOf and not; if none matches, with the causes of the best candidate."""
    causes: Causes = []
    any_of = schema.get("anyOf")
    if any_of and not (schema.get(INT_OR_STRING) and all(set(one) == {"type"} for one in any_of)):
        results = [value_causes(value, one, path) for one in any_of]
        if all(results):
            causes += _composite(path, "at least one schema (anyOf)", min(results, key=len))
    one_of = schema.get("oneOf")
    if one_of:
        results = [value_causes(value, one, path) for one in one_of]
        valid = sum(not result for result in results)
        if not valid:
            text = "one and only one schema (oneOf). Found none valid"
            causes += _composite(path, text, min(results, key=len))
        elif valid > 1:
            causes += _composite(
                path, f"one and only one schema (oneOf). Found {valid} valid alternatives", []
            )
    all_of = schema.get("allOf")
    if all_of:
        results = [value_causes(value, one, path) for one in all_of]
        failed = [cause for result in results for cause in result]
        if failed:
            none = "" if any(not result for result in results) else ". None validated"
            causes += [*failed, *_composite(path, f"all the schemas (allOf){none}", [])]
    negated = schema.get("not")
    if negated is not None and not value_causes(value, negated, path):
        causes.append(invalid(NOWHERE, "", f'"{path}" must not validate the schema (not)'))
    return causes


def _composite(path: str, what: str, why: Causes) -> Causes:
    return [invalid(NOWHERE, "", f'"{path}" must validate {what}'), *why]


def list_causes(value: Any, schema: Obj, path: str = "") -> Causes:
    """Duplicates in lists that are sets or maps."""
    causes: Causes = []
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        values = values_schema(schema)
        for name, item in value.items():
            if name in known:
                causes += list_causes(item, known[name], below(path, name))
            elif values is not None:
                causes += list_causes(item, values, f"{path}[{name}]")
    elif isinstance(value, list):
        kind = schema.get("x-kubernetes-list-type")
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        if kind == "set":
            causes += _repetitions(value, path)
        elif kind == "map":
            wrong = [index for index, item in enumerate(value) if not isinstance(item, (dict, type(None)))]
            if wrong:
                text = "must be an object for an array of list-type map"
                return [invalid(f"{path}[{wrong[0]}]", value[wrong[0]], text)]
            picked = [{key: item[key] for key in keys if key in item} for item in map(_or_empty, value)]
            causes += _repetitions(picked, path)
        if schema.get("items"):
            for index, item in enumerate(value):
                causes += list_causes(item, schema["items"], f"{path}[{index}]")
    return causes


def _or_empty(item: Obj | None) -> Obj:
    return item or {}


def _repetitions(values: list[Any], path: str) -> Causes:
    """One cause for each value that occurs again, at its second position."""
    seen: dict[str, int] = {}
    causes = []
    for index, value in enumerate(values):
        text = f"{type_name(value)} {quoted(value)}"
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            causes.append(duplicate(f"{path}[{index}]", value))
    return causes
