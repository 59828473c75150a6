"""Tables of the valid arguments of in-tree plugins and strategies, derived from their models.

An expression of an admission policy cannot use a JSON schema, but it can look up tables: the fields of an
object, and the type, bounds and allowed words of each. A place is written as the name of the plugin or
strategy and the steps below its arguments: ``PodTopologySpread.defaultConstraints[].maxSkew``,
``LowNodeUtilization.thresholds{}``. Rules across fields are checked by the operator alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Struct, field
from pydantic import BaseModel, Strict

from plimsoll.framework.field_errors import Schema, resolved
from plimsoll.framework.registry import Registrable

#: The words for types of a JSON schema in a sentence; a quantity may be a string or an integer.
GIVE = {
    "amount": "a string or a whole number",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}

#: Maximum number of levels of objects below the arguments of any plugin or strategy; a test counts them.
LEVELS = 4


class ArgumentTables(Struct, frozen=True):
    """The valid arguments, by place.

    Attributes:
        fields: Names of the fields of each object.
        required: Names of the required fields of each object that has some.
        types: A key of GIVE, followed by a question mark where null is allowed as well, and by an exclamation
            mark where nothing is converted; elsewhere pydantic reads numbers and booleans from strings.
        least: Smallest allowed number.
        most: Largest allowed number.
        choices: Allowed words.
    """

    fields: dict[str, list[str]] = field(default_factory=dict)
    required: dict[str, list[str]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)


def argument_tables(sources: Iterable[type[Registrable]], levels: int = LEVELS) -> ArgumentTables:
    """The tables of these classes."""
    tables = ArgumentTables()
    for source in sources:
        schema = source.args_model.model_json_schema(by_alias=True)
        _enter_object(tables, source.name, schema, schema.get("$defs", {}), levels)
        for place in _strict_places(source.args_model, source.name):
            if place in tables.types:
                tables.types[place] += "!"
    return tables


def _strict_places(kind: Any, place: str, metadata: Iterable[object] = ()) -> Iterator[str]:
    """The places at and below ``place`` whose values are not converted; each once."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _strict_places(args[0], place, (*metadata, *args[1:]))
    elif origin in (Union, UnionType):
        yield from dict.fromkeys(found for each in args for found in _strict_places(each, place, metadata))
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from _strict_places(args[1], f"{place}{{}}")
    elif origin is tuple:
        yield from _strict_places(args[0], f"{place}[]")
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, info in kind.model_fields.items():
            yield from _strict_places(info.annotation, f"{place}.{info.alias or name}", info.metadata)
    elif any(isinstance(each, Strict) for each in metadata):
        yield place


def _enter_object(
    tables: ArgumentTables, place: str, schema: Schema, definitions: Mapping[str, Any], levels: int
) -> None:
    properties = schema.get("properties", {})
    tables.fields[place] = list(properties)
    if schema.get("required"):
        tables.required[place] = list(schema["required"])
    for name, given in properties.items():
        below = resolved(given, definitions)
        _enter_value(tables, f"{place}.{name}", below, nullable={"type": "null"} in given.get("anyOf", ()))
        for step in ("[]", "{}"):
            inner = below.get("items" if step == "[]" else "additionalProperties")
            if isinstance(inner, dict):
                inner = resolved(inner, definitions)
                _enter_value(tables, f"{place}.{name}{step}", inner)
                if step == "[]" and "properties" in inner and levels:
                    _enter_object(tables, f"{place}.{name}[]", inner, definitions, levels - 1)
        if "properties" in below and levels:
            _enter_object(tables, f"{place}.{name}", below, definitions, levels - 1)


def _enter_value(tables: ArgumentTables, place: str, schema: Schema, *, nullable: bool = False) -> None:
    kinds = {schema["type"]} if "type" in schema else {each.get("type") for each in schema.get("anyOf", ())}
    unions = {frozenset({"integer", "number"}): "number", frozenset({"integer", "string"}): "amount"}
    kind = next(iter(kinds)) if len(kinds) == 1 else unions.get(frozenset(kinds), "")
    if kind not in GIVE:
        return
    tables.types[place] = f"{kind}?" if nullable else kind
    if kind in ("integer", "number"):
        step = 1 if kind == "integer" else 0
        for table, bound, exclusive, by in (
            (tables.least, "minimum", "exclusiveMinimum", step),
            (tables.most, "maximum", "exclusiveMaximum", -step),
        ):
            if bound in schema:
                table[place] = float(schema[bound])
            elif exclusive in schema:
                table[place] = float(schema[exclusive] + by)
    elif kind == "string" and "enum" in schema:
        tables.choices[place] = list(schema["enum"])
