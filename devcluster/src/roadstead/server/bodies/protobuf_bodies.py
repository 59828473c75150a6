"""Decodes request bodies in Protocol Buffers, which kubectl sends when it creates typed objects.

Responses are always JSON, which every client that prefers Protocol Buffers also accepts. Fields have
the types of ``schemas.fields``; ``protobuf_fields`` lists their numbers.

Source: apimachinery v1.36 ``runtime/serializer/protobuf`` (the envelope) and the wire format itself.
"""

from __future__ import annotations

import base64
import datetime as dt
import struct as packing
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson

from roadstead.schemas.fields import schema_of, struct
from roadstead.schemas.schemas import (
    BOOLEAN,
    FALSE_OMITTED,
    INT_OR_STRING,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    TIME,
    Array,
    Mapping,
    Node,
    Scalar,
    Struct,
)
from roadstead.server.bodies.protobuf_fields import WIRE_FIELDS
from roadstead.values.status_errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadstead.values.resources import Obj

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
#: Fields that are bytes in Go, and base64 in JSON.
_BINARY = {("V1Secret", "data"), ("V1ConfigMap", "binaryData")}
#: Numbers that Go sends even if they are not set; JSON omits them then.
_ZERO_IS_UNSET = {("V1ObjectMeta", "generation"), ("V1ServiceSpec", "healthCheckNodePort")}


def decoded_protobuf(body: bytes) -> Obj:
    """A body as a JSON object.

    Raises:
        StatusError: 400, if it is malformed or has fields unknown to this server.
    """
    if not body.startswith(_MAGIC):
        raise bad_request("the body of the request does not begin as Protocol Buffers of Kubernetes do")
    try:
        envelope = dict(_numbered(body[len(_MAGIC) :]))
        names = dict(_numbered(envelope.get(1, b"")))
        api_version, kind = names.get(1, b"").decode(), names.get(2, b"").decode()
        group, _, version = api_version.rpartition("/")
        found = schema_of(group, version, kind) if kind != "DeleteOptions" else struct("V1DeleteOptions")
        if found is None or found.name not in WIRE_FIELDS:
            raise _unknown(f"{kind} in version {api_version!r}")
        return {"apiVersion": api_version, "kind": kind, **_object(envelope.get(2, b""), found)}
    except (IndexError, KeyError, UnicodeDecodeError, packing.error) as error:
        raise bad_request(f"the body of the request cannot be read as Protocol Buffers: {error}") from error


def _unknown(what: str) -> Exception:
    return bad_request(f"this server does not read {what} from Protocol Buffers; send it as JSON")


def _numbered(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number and value, an int or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value - (1 << 64) if value >> 63 else value
        elif kind == _BYTES:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise IndexError("it ends too early")
            yield number, data[at : at + length]
            at += length
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
            yield number, packing.unpack("<d" if length == 8 else "<f", data[at : at + length])[0]
            at += length
        else:
            raise IndexError(f"wire type {kind} is not known")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7


@cache
def _names(model: str) -> dict[int, str]:
    given = WIRE_FIELDS.get(model, "").split()
    return {number: name for number, name in enumerate(given, start=1) if name != "-"}


def _object(data: bytes, schema: Struct) -> Obj:
    """A message as an object; fields that were never set are left out."""
    result: Obj = {}
    names = _names(schema.name)
    for number, value in _numbered(data):
        name = names.get(number)
        if name is None:
            raise _unknown(f"field {number} of {schema.name}")
        node = schema.fields[name]
        if isinstance(node, Array):
            result.setdefault(name, []).append(_value(value, node.items))
        elif isinstance(node, Mapping):
            pair = dict(_numbered(value))
            entry = pair.get(2, b"")
            binary = (schema.name, name) in _BINARY
            decoded = base64.b64encode(entry).decode() if binary else _value(entry, node.values)
            result.setdefault(name, {})[pair.get(1, b"").decode()] = decoded
        else:
            decoded = orjson.loads(dict(_numbered(value))[1]) if name == "fieldsV1" else _value(value, node)
            if decoded is not None and (decoded != 0 or (schema.name, name) not in _ZERO_IS_UNSET):
                result[name] = decoded
    return result


def _value(value: Any, node: Node) -> Any:
    """A field's value as JSON; None for a time that was never set."""
    if isinstance(node, Struct):
        return _object(value, node)
    if node in (TIME, MICRO_TIME):
        return _time(value, micro=node is MICRO_TIME)
    if node is QUANTITY:
        return dict(_numbered(value)).get(1, b"").decode()
    if node is INT_OR_STRING:
        parts = dict(_numbered(value))
        return parts.get(3, b"").decode() if parts.get(1) else parts.get(2, 0)
    if node in (BOOLEAN, FALSE_OMITTED):
        return bool(value)
    if isinstance(value, bytes):
        if not isinstance(node, Scalar):
            raise _unknown("a field of any type")
        return value.decode()
    return float(value) if node is NUMBER else value


def _time(value: bytes, *, micro: bool) -> str | None:
    parts = dict(_numbered(value))
    if not parts:
        return None
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{nanos // 1000:06}Z" if micro else f"{text}Z"
