"""Encodes what kubectl reads of ``/openapi/v2`` as protobuf: which query parameters PATCH takes, by kind.

kubectl asks for it before it sends the items of a ``v1 List``. Source: gnostic ``openapiv2/OpenAPIv2.proto``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from roadstead.discovery.openapi_schemas import GVK
from roadstead.values.wire import sized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.values.resources import Obj

#: The type that clients accept, and the type of the response, which is written as a type has to be.
ACCEPTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF = ACCEPTED.replace("@", ".")


def patch_operations(by_path: Mapping[str, Obj]) -> bytes:
    """A Document with nothing but the given operations of PATCH, by path."""
    items = [_path_item(path, operation) for path, operation in sorted(by_path.items())]
    return _text(1, "2.0") + sized(8, b"".join(sized(2, item) for item in items))


def _path_item(path: str, operation: Obj) -> bytes:
    """A NamedPathItem."""
    parameters = b"".join(
        sized(8, sized(1, sized(2, sized(3, _text(2, each["in"]) + _text(4, each["name"])))))
        for each in operation["parameters"]
    )
    kind = _text(1, GVK) + sized(2, _text(2, orjson.dumps(operation[GVK]).decode()))
    return _text(1, path) + sized(2, sized(8, parameters + sized(13, kind)))


def _text(number: int, value: str) -> bytes:
    return sized(number, value.encode())
