"""Encodes what kubectl reads of ``/openapi/v2`` as protobuf: which query parameters PATCH takes, by kind.

kubectl asks for it before it sends the items of a ``v1 List``. Source: gnostic ``openapiv2/OpenAPIv2.proto``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from roadstead.discovery.openapi_schemas import GVK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.values.resources import Obj

#: The type that clients accept, and the type of the response, which is written as a type has to be.
ACCEPTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF = ACCEPTED.replace("@", ".")


def patch_operations(by_path: Mapping[str, Obj]) -> bytes:
    """A Document with nothing but the given operations of PATCH, by path."""
    items = [_path_item(path, operation) for path, operation in sorted(by_path.items())]
    return _text(1, "2.0") + _field(8, b"".join(_field(2, item) for item in items))


def _path_item(path: str, operation: Obj) -> bytes:
    """A NamedPathItem."""
    parameters = b"".join(
        _field(8, _field(1, _field(2, _field(3, _text(2, each["in"]) + _text(4, each["name"])))))
        for each in operation["parameters"]
    )
    kind = _text(1, GVK) + _field(2, _text(2, orjson.dumps(operation[GVK]).decode()))
    return _text(1, path) + _field(2, _field(8, parameters + _field(13, kind)))


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, value: bytes) -> bytes:
    """A field of a length-delimited type."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
