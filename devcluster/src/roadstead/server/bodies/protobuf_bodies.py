"""Decodes and encodes bodies in Protocol Buffers, which Go clients prefer for built-in kinds.

Watches and errors are sent as JSON, which every client that prefers Protocol Buffers also accepts.

Source: apimachinery v1.36 ``runtime/serializer/protobuf`` (the envelope) and the wire format itself.
"""

from __future__ import annotations

import base64
import datetime as dt
import struct as packing
from typing import TYPE_CHECKING, Any

import orjson

from roadstead.server.bodies.wire_fields import WireField, message_fields, message_of
from roadstead.values.status_errors import bad_request
from roadstead.values.wire import BYTES, sized, varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roadstead.values.resources import Obj

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _FIXED32 = 0, 1, 5
_SCHEMA = "apiextensions.v1.JSONSchemaProps"
#: Messages that are a list of strings in JSON.
_LISTS = frozenset(f"{group}.v1.ExtraValue" for group in ("authentication", "authorization", "certificates"))


# -- decoding ------------------------------------------------------------------------------------------------


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
        message = message_of(api_version, kind)
        if message is None:
            raise _unknown(f"{kind} in version {api_version!r}")
        return {"apiVersion": api_version, "kind": kind, **_object(envelope.get(2, b""), message)}
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, packing.error) as error:
        raise bad_request(f"the body of the request cannot be read as Protocol Buffers: {error}") from error


def _unknown(what: str) -> Exception:
    return bad_request(f"this server does not read {what} from Protocol Buffers; send it as JSON")


def _numbered(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number and value, an int or bytes."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value - (1 << 64) if value >> 63 else value
        elif kind == BYTES:
            length, at = _read_varint(data, at)
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


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7


def _object(data: bytes, message: str) -> Obj:
    """A message as an object, as Go would write it in JSON."""
    result: Obj = {}
    known = message_fields(message)
    for number, value in _numbered(data):
        field = known.get(number)
        if field is None:
            raise _unknown(f"field {number} of {message}")
        if field.inline:
            result |= _object(value, field.type)
        elif field.shape == "[]":
            result.setdefault(field.name, []).append(_value(value, field.type))
        elif field.shape == "{}":
            pair = dict(_numbered(value))
            entry = pair.get(2, b"")
            result.setdefault(field.name, {})[pair.get(1, b"").decode()] = _value(entry, field.type)
        else:
            one = _value(value, field.type)
            if one is not None and (one or not field.drops_zero or isinstance(one, dict)):
                result[field.name] = one
    return result


def _value(value: Any, kind: str) -> Any:
    """A field's value as JSON; None for a time that was never set."""
    match kind:
        case "string":
            return value.decode()
        case "bool":
            return bool(value)
        case "int32" | "int64":
            return int(value)
        case "double":
            return float(value)
        case "bytes":
            return base64.b64encode(value).decode()
        case "Time" | "MicroTime":
            return _time(value, micro=kind == "MicroTime")
        case "Quantity":
            return dict(_numbered(value)).get(1, b"").decode()
        case "IntOrString":
            parts = dict(_numbered(value))
            return parts.get(3, b"").decode() if parts.get(1) else parts.get(2, 0)
        case "FieldsV1" | "JSON" | "RawExtension":
            raw = dict(_numbered(value)).get(1, b"")
            return decoded_protobuf(raw) if raw.startswith(_MAGIC) else orjson.loads(raw or b"null")
        case _ if kind in _LISTS:
            return [one.decode() for _, one in _numbered(value)]
        case _ if kind.startswith(f"{_SCHEMA}Or"):
            return _schema_or(value, kind)
        case _:
            return _object(value, kind)


def _schema_or(value: bytes, kind: str) -> Any:
    """A schema, or its alternative: a list of schemas, a boolean, or a list of strings."""
    found = list(_numbered(value))
    numbers = dict(found)
    at = 2 if kind.endswith("Bool") else 1
    if at in numbers:
        return _object(numbers[at], _SCHEMA)
    if kind.endswith("Bool"):
        return bool(numbers.get(1))
    return [
        _value(one, _SCHEMA if kind.endswith("OrArray") else "string") for number, one in found if number == 2
    ]


def _time(value: bytes, *, micro: bool) -> str | None:
    parts = dict(_numbered(value))
    if not parts:
        return None
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{nanos // 1000:06}Z" if micro else f"{text}Z"


# -- encoding ------------------------------------------------------------------------------------------------


def encoded_protobuf(obj: Obj) -> bytes | None:
    """An object or list in its envelope; None if its kind is unknown here."""
    message = message_of(obj["apiVersion"], obj["kind"])
    if message is None:
        return None
    names = sized(1, obj["apiVersion"].encode()) + sized(2, obj["kind"].encode())
    return _MAGIC + sized(1, names) + sized(2, _message(obj, message)) + sized(3, b"") + sized(4, b"")


def _message(obj: Obj, message: str) -> bytes:
    parts: list[bytes] = []
    for field in message_fields(message).values():
        if field.inline:
            parts.append(sized(field.number, _message(obj, field.type)))
        elif obj.get(field.name) is not None:
            parts += _field(field, obj[field.name])
    return b"".join(parts)


def _field(field: WireField, value: Any) -> Iterable[bytes]:
    if field.shape == "[]":
        return [_single(field.number, one, field.type) for one in value]
    if field.shape == "{}":
        pairs = (
            _single(1, key, "string") + _single(2, item, field.type) for key, item in sorted(value.items())
        )
        return [sized(field.number, pair) for pair in pairs]
    return [_single(field.number, value, field.type)]


def _single(number: int, value: Any, kind: str) -> bytes:
    match kind:
        case "string":
            return sized(number, value.encode())
        case "bool" | "int32" | "int64":
            return varint(number << 3) + varint(int(value) & (1 << 64) - 1)
        case "double":
            return varint(number << 3 | _FIXED64) + packing.pack("<d", value)
        case "bytes":
            return sized(number, base64.b64decode(value))
        case "Time" | "MicroTime":
            moment = dt.datetime.fromisoformat(value)
            whole = int(moment.timestamp())
            return sized(number, _single(1, whole, "int64") + _single(2, moment.microsecond * 1000, "int32"))
        case "Quantity":
            return sized(number, _single(1, str(value), "string"))
        case "IntOrString":
            is_text = isinstance(value, str)
            parts = _single(1, is_text, "bool") + _single(2, 0 if is_text else value, "int32")
            return sized(number, parts + _single(3, value if is_text else "", "string"))
        case "FieldsV1" | "JSON" | "RawExtension":
            return sized(number, sized(1, orjson.dumps(value)))
        case _ if kind in _LISTS:
            return sized(number, b"".join(_single(1, one, "string") for one in value))
        case _ if kind.startswith(f"{_SCHEMA}Or"):
            return sized(number, _schema_parts(value, kind))
        case _:
            return sized(number, _message(value, kind))


def _schema_parts(value: Any, kind: str) -> bytes:
    at = 2 if kind.endswith("Bool") else 1
    if isinstance(value, dict):
        allows = _single(1, value=True, kind="bool") if kind.endswith("Bool") else b""
        return allows + _single(at, value, _SCHEMA)
    if kind.endswith("Bool"):
        return _single(1, value, "bool")
    return b"".join(_single(2, one, _SCHEMA if kind.endswith("OrArray") else "string") for one in value)
