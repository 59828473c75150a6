"""Formats errors of an object, field by field: the exact path, and one sentence.

The operator writes these into ``Accepted=False``, for the spec and for the args of plugins and strategies
alike; paths are in the API server's notation (``spec.rebalancing.strategies[0].args.thresholds``).
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from msgspec import Struct
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from plimsoll.model.shortened import shortened

Schema = dict[str, Any]

RULE_BROKEN = "rule_broken"
"""Type of the pydantic error that a broken rule across fields raises; its context holds ``sentence`` and
``field``."""

DUPLICATE = "duplicate"
"""Type of the pydantic error for a second item of one key; its context holds ``value`` and ``index``."""

_TYPES = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a string",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "datetime_type": "a time such as 2026-01-31T12:00:00Z",
}
"""What to give, by type of pydantic error."""

_BOUNDS = {
    "greater_than_equal": ("too small", "the smallest allowed value is {ge}"),
    "greater_than": ("too small", "it must be greater than {gt}"),
    "less_than_equal": ("too large", "the largest allowed value is {le}"),
    "less_than": ("too large", "it must be less than {lt}"),
    "string_too_short": ("too short", "it needs at least {min_length} characters"),
    "string_too_long": ("too long", "it may have at most {max_length} characters"),
    "too_short": ("too short", "it needs at least {min_length} items"),
    "too_long": ("too long", "it may have at most {max_length} items"),
}
"""What is wrong and what is allowed, by type of pydantic error."""

_GIVE = "; give "
"""Between what is wrong with a type and what is right."""

_KEY = "[key]"
"""What pydantic puts at the end of a location when the key itself is wrong, not the value."""

_SHOWN = 60
"""Characters of a refused value that a sentence shows."""

_LONGEST_PATH = 300
"""Characters of a path that a message shows; names of fields that there are not may be of any length."""

_CREDENTIALS = re.compile(r"//[^/\s\"]*@")
"""User and password in a URL, which no sentence shows."""


class FieldError(Struct, frozen=True):
    """The problem of the field at a path from the root of the object, and the allowed values."""

    path: str
    sentence: str

    def __str__(self) -> str:
        path = shortened(self.path, _LONGEST_PATH)
        return f"{path}: {self.sentence}" if path else self.sentence


def field_errors(
    error: ValidationError, *, model: type[BaseModel] | None = None, prefix: str = ""
) -> tuple[FieldError, ...]:
    """Pydantic's errors, in order, one for each field and cause.

    Args:
        error: what the model's validation raised.
        model: the expected model; with it, sentences name the allowed fields and an example.
        prefix: path of the validated part in its object (``spec.rebalancing.strategies[0].args``).
    """
    schema = _schema_of(model) if model else {}
    found = [_field_error(detail, schema, prefix) for detail in error.errors(include_url=False)]
    return tuple(_joined(found))


def summary(errors: Sequence[FieldError], *, shown: int = 3) -> str:
    """The errors as one message for a condition; errors beyond ``shown`` are counted."""
    rest = len(errors) - shown
    tail = f"; and {rest} more" if rest > 0 else ""
    return "; ".join(str(error) for error in errors[:shown]) + tail


def _joined(errors: Sequence[FieldError]) -> list[FieldError]:
    """Each error once; errors of a union's branches about one field are joined into one sentence."""
    kept: dict[tuple[str, str], list[str]] = {}
    for each in errors:
        wrong, _, allowed = each.sentence.partition(_GIVE)
        choices = kept.setdefault((each.path, wrong), [])
        if allowed not in choices:
            choices.append(allowed)
    joined = []
    for (path, wrong), choices in kept.items():
        if "a number" in choices and "a whole number" in choices:
            choices.remove("a whole number")
        allowed = " or ".join(choices)
        joined.append(FieldError(path, f"{wrong}{_GIVE}{allowed}" if allowed else wrong))
    return joined


@cache
def _schema_of(model: type[BaseModel]) -> Schema:
    return model.model_json_schema(by_alias=True)


def _field_error(detail: ErrorDetails, schema: Schema, prefix: str) -> FieldError:
    *parents, last = detail["loc"] or ("",)
    path, parent = _walked(parents, schema, prefix)
    if last == _KEY:
        target = _walked(parents[:-1], schema, prefix)[1].get("propertyNames", {})
    else:
        path, target = _step(path, parent, last, schema.get("$defs", {}))
    context = detail.get("ctx", {})
    if detail["type"] == DUPLICATE:
        path = f"{path}[{context['index']}]"
    elif detail["type"] == RULE_BROKEN and context["field"]:
        path = f"{path}.{context['field']}" if path else context["field"]
    return FieldError(path, _sentence(detail, target, parent, str(last)))


def _walked(loc: Sequence[int | str], schema: Schema, prefix: str) -> tuple[str, Schema]:
    """The path to a location, and the schema there (empty if it is not known)."""
    path, here = prefix, schema
    for part in loc:
        path, here = _step(path, here, part, schema.get("$defs", {}))
    return path, here


def _step(path: str, schema: Schema, part: int | str, definitions: Schema) -> tuple[str, Schema]:
    """One step down; a union's branch is no step on the wire."""
    if "anyOf" in schema or part == "":
        return path, {}
    if isinstance(part, int):
        return f"{path}[{part}]", resolved(schema.get("items", {}), definitions)
    below = f"{path}.{part}" if path else part
    field = schema.get("properties", {}).get(part) or schema.get("additionalProperties")
    field = field or next(iter(schema.get("patternProperties", {}).values()), None)
    return below, resolved(field, definitions) if isinstance(field, dict) else {}


def _sentence(detail: ErrorDetails, schema: Schema, parent: Schema, field: str) -> str:  # noqa: PLR0911 - a sentence for each kind of error
    kind = detail["type"]
    context: dict[str, Any] = detail.get("ctx", {})
    value = _shown(detail["input"])
    if kind == "json_invalid":
        return "it is nested too deeply, or holds what JSON cannot carry; flatten its args"
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return _unknown_field(field, list(parent.get("properties", ())))
    if kind in {"enum", "literal_error"}:
        return f"{value} is not allowed; use {_alternatives(context['expected'])}"
    if kind in _TYPES:
        return f"{value} has the wrong type{_GIVE}{_TYPES[kind]}"
    if kind in _BOUNDS:
        wrong, allowed = _BOUNDS[kind]
        return f"{value} is {wrong}; {allowed.format(**context)}"
    if kind == "string_pattern_mismatch":
        examples = " or ".join(str(example) for example in schema.get("examples", ()))
        hint = f"write it like {examples}" if examples else f"it must match {context['pattern']}"
        return f"{value} is malformed; {hint}"
    if kind in {RULE_BROKEN, DUPLICATE}:
        return detail["msg"]
    said = detail["msg"].removeprefix("Value error, ")
    # Errors about a whole object name its fields already; the object's own value would only distract.
    return said if isinstance(detail["input"], Mapping) else f"{value} is refused: {said}"


def _unknown_field(field: str, known: Sequence[str]) -> str:
    if not known:
        return "there is no such field; remove it"
    close = get_close_matches(field, known, n=1)
    hint = f"did you mean {close[0]}" if close else "remove it"
    return f"there is no such field; {hint} (allowed: {', '.join(known)})"


def _alternatives(expected: str) -> str:
    """Pydantic's "'A', 'B' or 'C'" without the quotes, and with true and false as on the wire."""
    return expected.replace("'", "").replace("True", "true").replace("False", "false")


def _shown(value: Any) -> str:
    try:
        content = to_json(value, fallback=str).decode()
    except PydanticSerializationError:  # nested too deeply, or invalid UTF-8
        return f"a value of type {type(value).__name__}"
    text = _CREDENTIALS.sub("//…@", content)
    return shortened(text, _SHOWN)


def resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """The schema with its reference resolved; a nullable field becomes an optional one of its other type.

    Siblings of a reference (description, default) precede its target. If several types are possible,
    ``anyOf`` stays.
    """
    branches = [branch for branch in schema.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return resolved(branches[0] | rest, definitions)
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return resolved(definitions[schema["$ref"].removeprefix("#/$defs/")] | rest, definitions)
    return dict(schema)
