"""Reading pydantic's JSON schemas: references followed, "or null" taken out."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]


def resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """The schema with its reference followed; a field that may be null is an optional one of its other type.

    What stands beside a reference (description, default) goes before what it refers to. Where several
    types are possible the ``anyOf`` stays.
    """
    branches = [branch for branch in schema.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return resolved(branches[0] | rest, definitions)
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return resolved(definitions[schema["$ref"].removeprefix("#/$defs/")] | rest, definitions)
    return dict(schema)
