"""Converts schemas to types of the Common Expression Language, and JSON values to values of those types.

The language's checker supports messages but no JSON schemas. Therefore each object of a schema becomes a
message type of a descriptor pool, against which an expression is checked: a field that is not in the schema
is an error of the definition. Nothing is decoded into the messages; expressions are evaluated on the plain
values that ``cel_value`` returns.

Source: apiextensions-apiserver v1.36 ``schema/cel/model`` and apiserver ``pkg/cel`` (types, escaping).
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cel_expr_python import cel
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, timestamp_pb2

from roadstead.schemas.formats import duration_nanoseconds, instant
from roadstead.schemas.structural import EMBEDDED, INT_OR_STRING, values_schema

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

_PACKAGE = "schema"
_WELL_KNOWN = (any_pb2, struct_pb2, duration_pb2, timestamp_pb2)
_FIELD = descriptor_pb2.FieldDescriptorProto

#: Reserved words; a field of such a name is written ``__name__`` in an expression.
_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPABLE = re.compile(r"__|[./-]")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

#: Fields of a resource that expressions may use without the schema.
_RESOURCE_FIELDS: Obj = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}


def escaped(name: str) -> str | None:
    """A field's name in expressions; None if expressions cannot refer to it."""
    if name in _RESERVED:
        return f"__{name}__"
    text = _ESCAPABLE.sub(lambda found: _ESCAPES[found[0]], name)
    return text if _IDENTIFIER.fullmatch(text) else None


def with_resource_fields(schema: Obj) -> Obj:
    """The schema of a resource with the metadata fields that expressions may use."""
    return {**schema, "properties": {**(schema.get("properties") or {}), **_RESOURCE_FIELDS}}


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a value.

    Attributes:
        kind: "int", "double", "bool", "string", "bytes", "timestamp", "duration", "dyn", "list", "map" or
            "message".
        name: the name of the message.
        of: the type of the items or values.
    """

    kind: str
    name: str = ""
    of: Shape | None = None


_STRING_KINDS = {"byte": "bytes", "date": "timestamp", "date-time": "timestamp", "duration": "duration"}
_SCALAR_KINDS = {"integer": "int", "number": "double", "boolean": "bool"}
_SCALAR_FIELDS = {
    "int": _FIELD.TYPE_INT64,
    "double": _FIELD.TYPE_DOUBLE,
    "bool": _FIELD.TYPE_BOOL,
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
}
_WELL_KNOWN_FIELDS = {
    "timestamp": "Timestamp",
    "duration": "Duration",
    "dyn": "Value",
    "list": "ListValue",
    "map": "Struct",
}
_CEL_TYPES = {
    "int": cel.Type.INT,
    "double": cel.Type.DOUBLE,
    "bool": cel.Type.BOOL,
    "string": cel.Type.STRING,
    "bytes": cel.Type.BYTES,
    "timestamp": cel.Type.TIMESTAMP,
    "duration": cel.Type.DURATION,
    "dyn": cel.Type.DYN,
}


class Types:
    """The message types of one schema."""

    def __init__(self) -> None:
        self._file = descriptor_pb2.FileDescriptorProto(
            name="schema.proto",
            package=_PACKAGE,
            syntax="proto2",
            dependency=[module.DESCRIPTOR.name for module in _WELL_KNOWN],
        )
        self._pool: descriptor_pool.DescriptorPool | None = None

    @property
    def pool(self) -> descriptor_pool.DescriptorPool:
        """The descriptors of all shapes so far; none can be added afterwards."""
        if self._pool is None:
            self._pool = descriptor_pool.DescriptorPool()
            for module in _WELL_KNOWN:
                known = descriptor_pb2.FileDescriptorProto()
                module.DESCRIPTOR.CopyToProto(known)
                self._pool.Add(known)
            self._pool.Add(self._file)
        return self._pool

    def shape(self, schema: Obj) -> Shape | None:
        """The type of a schema's values, None if expressions cannot access them."""
        if schema.get(INT_OR_STRING):
            return Shape("dyn")
        kind = schema.get("type")
        if kind == "array":
            of = self.shape(schema.get("items") or {})
            return Shape("list", of=of) if of else None
        if kind == "object":
            return self._object_shape(schema)
        if kind == "string":
            return Shape(_STRING_KINDS.get(schema.get("format", ""), "string"))
        return Shape(_SCALAR_KINDS[kind]) if kind in _SCALAR_KINDS else None

    def _object_shape(self, schema: Obj) -> Shape | None:
        values = values_schema(schema)
        if values is not None:
            of = self.shape(values)
            return Shape("map", of=of) if of else None
        if schema.get(EMBEDDED):
            schema = with_resource_fields(schema)
        fields = [
            (name, shape)
            for key, inner in (schema.get("properties") or {}).items()
            if (name := escaped(key)) and (shape := self.shape(inner))
        ]
        message = self._file.message_type.add(name=f"T{len(self._file.message_type)}")
        for number, (name, shape) in enumerate(fields, start=1):
            self._add_field(message, name, number, shape)
        return Shape("message", f"{_PACKAGE}.{message.name}")

    def _add_field(
        self, message: descriptor_pb2.DescriptorProto, name: str, number: int, shape: Shape
    ) -> None:
        if shape.kind == "list" and shape.of:
            message.field.add(name=name, number=number, label=_FIELD.LABEL_REPEATED, **_field_type(shape.of))
            return
        entry = _entry_name(name)
        if shape.kind == "map" and shape.of and all(one.name != entry for one in message.nested_type):
            pair = message.nested_type.add(name=entry)
            pair.options.map_entry = True
            pair.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL, type=_FIELD.TYPE_STRING)
            pair.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL, **_field_type(shape.of))
            path = f".{_PACKAGE}.{message.name}.{entry}"
            message.field.add(
                name=name,
                number=number,
                label=_FIELD.LABEL_REPEATED,
                type=_FIELD.TYPE_MESSAGE,
                type_name=path,
            )
            return
        message.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL, **_field_type(shape))


def _field_type(shape: Shape) -> dict[str, Any]:
    """The declaration of a field; nested lists are declared as lists of anything."""
    if shape.kind in _SCALAR_FIELDS:
        return {"type": _SCALAR_FIELDS[shape.kind]}
    name = shape.name or f"google.protobuf.{_WELL_KNOWN_FIELDS[shape.kind]}"
    return {"type": _FIELD.TYPE_MESSAGE, "type_name": f".{name}"}


def _entry_name(name: str) -> str:
    """The required name of the pair type of a map field: CamelCase and ``Entry``."""
    parts = [part for part in name.split("_") if part]
    return "".join(part[0].upper() + part[1:] for part in parts) + "Entry"


def declared(shape: Shape) -> cel.Type:
    """The type in a variable's declaration."""
    if shape.kind == "list" and shape.of:
        return cel.Type.List(declared(shape.of))
    if shape.kind == "map" and shape.of:
        return cel.Type.Map(cel.Type.STRING, declared(shape.of))
    return cel.Type(shape.name) if shape.name else _CEL_TYPES[shape.kind]


def cel_value(value: Any, schema: Obj) -> Any:
    """A JSON value in expressions: typed by its schema, with escaped names of fields."""
    if value is None or schema.get(INT_OR_STRING):
        return value
    if isinstance(value, dict):
        values = values_schema(schema)
        if values is not None:
            return {key: cel_value(item, values) for key, item in value.items()}
        if schema.get(EMBEDDED):
            schema = with_resource_fields(schema)
        properties = schema.get("properties") or {}
        return {
            name: cel_value(item, properties[key])
            for key, item in value.items()
            if key in properties and (name := escaped(key))
        }
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [cel_value(item, items) for item in value]
    if schema.get("type") == "number":
        return float(value)
    if isinstance(value, str):
        return _string_value(value, schema.get("format", ""))
    return value


def _string_value(value: str, form: str) -> Any:
    kind = _STRING_KINDS.get(form)
    if kind == "bytes":
        return base64.b64decode(value)
    if kind == "timestamp":
        moment = instant(value if form == "date-time" else f"{value}T00:00:00Z")
        stamp = timestamp_pb2.Timestamp()
        if moment is not None:
            stamp.FromDatetime(moment)
        return stamp
    if kind == "duration":
        length = duration_pb2.Duration()
        length.FromNanoseconds(duration_nanoseconds(value) or 0)
        return length
    return value
