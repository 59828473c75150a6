"""Bodies in Protocol Buffers: bytes as kubectl sends them, rejections, every field of every kind."""

from collections.abc import Iterator
from typing import Any

import pytest

from roadstead.schemas.fields import schema_of
from roadstead.schemas.schemas import Array, Mapping, Struct
from roadstead.server.bodies.content_negotiation import accepted
from roadstead.server.bodies.protobuf_bodies import decoded_protobuf, encoded_protobuf
from roadstead.server.bodies.wire_fields import WireField, message_fields, message_of
from roadstead.values.resources import BUILT_IN
from roadstead.values.status_errors import StatusError


def message(*fields: tuple[int, bytes | int | str]) -> bytes:
    """A message of small fields."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(bytes([number << 3, value]))
        else:
            data = value.encode() if isinstance(value, str) else value
            parts.append(bytes([number << 3 | 2, len(data)]) + data)
    return b"".join(parts)


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    """The envelope around an object."""
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw))


def test_object_as_kubectl_sends_it() -> None:
    """What was never set is left out; a map and a nested object are what they are in JSON."""
    # kubectl create configmap c --from-literal=a=1, as it was seen on the wire
    metadata = message((1, "c"), (2, ""), (3, ""), (4, ""), (5, ""), (6, ""), (7, 0), (8, b""))
    raw = message((1, metadata), (2, message((1, "a"), (2, "1"))))

    decoded = decoded_protobuf(body("v1", "ConfigMap", raw))

    assert decoded["data"] == {"a": "1"}
    assert {key: value for key, value in decoded["metadata"].items() if value} == {"name": "c"}
    assert "creationTimestamp" not in decoded["metadata"]
    assert "generation" not in decoded["metadata"]


def test_types_that_are_no_scalars_in_json() -> None:
    """Integer-or-string, selectors and binary data."""
    at_least = message((1, 1), (2, 0), (3, "50%"))
    labels = message((1, message((1, "app"), (2, "web"))))
    budget = message((2, message((1, at_least), (2, labels))))

    assert decoded_protobuf(body("policy/v1", "PodDisruptionBudget", budget))["spec"] == {
        "minAvailable": "50%",
        "selector": {"matchLabels": {"app": "web"}},
    }
    secret = message((2, message((1, "k"), (2, b"\x00\xff"))))
    assert decoded_protobuf(body("v1", "Secret", secret))["data"] == {"k": "AP8="}


def test_negative_numbers() -> None:
    """They come as ten bytes of two's complement."""
    minus_one = bytes([2 << 3]) + b"\xff" * 9 + b"\x01"

    decoded = decoded_protobuf(body("scheduling.k8s.io/v1", "PriorityClass", minus_one))

    assert decoded["value"] == -1


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b'{"kind":"ConfigMap"}', "does not begin as Protocol Buffers of Kubernetes do"),
        (body("v1", "ConfigMap", message((15, "x"))), "field 15 of core.v1.ConfigMap"),
        (body("v1", "Gadget", b""), "does not read Gadget in version 'v1'"),
        (body("v1", "ConfigMap", b"\x0a\x7f"), "ends too early"),
        (body("v1", "ConfigMap", b"\x0b"), "wire type 3 is not known"),
    ],
    ids=["JSON", "a field that is not known", "a kind that is not known", "cut off", "groups"],
)
def test_what_cannot_be_read_is_refused(sent: bytes, told: str) -> None:
    """With 400 and what it was; nothing is dropped."""
    with pytest.raises(StatusError, match=told) as refused:
        decoded_protobuf(sent)

    assert refused.value.code == 400


_SAMPLES = {
    "string": "a",
    "bool": True,
    "int32": -3,
    "int64": 1 << 40,
    "double": 0.5,
    "bytes": "AP8=",
    "Time": "2026-01-31T12:00:00Z",
    "MicroTime": "2026-01-31T12:00:00.000007Z",
    "Quantity": "500m",
    "IntOrString": "50%",
    "FieldsV1": {"f:spec": {}},
    "JSON": [1, {"a": None}],
    "RawExtension": {"b": 1},
}


def sample(message: str, depth: int = 0) -> Any:
    """A value of a message in which every field is set."""
    if message in _SAMPLES:
        return _SAMPLES[message]
    if message.endswith("ExtraValue"):
        return ["a", "b"]
    if "JSONSchemaPropsOr" in message:
        return True if message.endswith("Bool") else ["a"] if message.endswith("StringArray") else []
    if depth > 12 or (depth > 4 and message.endswith("JSONSchemaProps")):
        return {}
    made: dict[str, Any] = {}
    for field in message_fields(message).values():
        one = sample(field.type, depth + 1)
        if field.inline:
            made |= one
        else:
            made[field.name] = [one] if field.shape == "[]" else {"k": one} if field.shape == "{}" else one
    return made


KINDS = sorted({(one.api_version, one.kind) for one in BUILT_IN})


@pytest.mark.parametrize(("api_version", "kind"), KINDS, ids=[f"{kind}.{group}" for group, kind in KINDS])
def test_every_field_of_every_kind_is_read_as_it_is_written(api_version: str, kind: str) -> None:
    """The table has every kind that is served."""
    message = message_of(api_version, kind)
    assert message is not None
    obj = {"apiVersion": api_version, "kind": kind, **sample(message)}

    encoded = encoded_protobuf(obj)

    assert encoded is not None
    assert decoded_protobuf(encoded) == obj


def test_forms_of_an_answer() -> None:
    """The first that is known; custom resources have no messages."""
    header = "application/vnd.kubernetes.protobuf,application/json"

    assert accepted(header, protobuf=True).media == "protobuf"
    assert accepted(header).media == "json"
    with pytest.raises(StatusError) as refused:
        accepted("application/vnd.kubernetes.protobuf")
    assert refused.value.code == 406
    metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    assert accepted(metadata, protobuf=True).shape == "PartialObjectMetadata"


def unnamed(message: str, schema: Struct, seen: set[str]) -> Iterator[str]:
    """Fields of a schema, and of what is in it, that the message does not have."""
    if message in seen:
        return
    seen.add(message)
    fields: dict[str, WireField] = {}
    for field in message_fields(message).values():
        inner = message_fields(field.type).values() if field.inline else [field]
        while any(one.inline for one in inner):
            inner = [
                each for one in inner for each in (message_fields(one.type).values() if one.inline else [one])
            ]
        fields |= {one.name: one for one in inner}
    for name, node in schema.fields.items():
        if name in ("apiVersion", "kind"):
            continue
        if name not in fields:
            yield f"{message}.{name}"
            continue
        below = node.items if isinstance(node, Array) else node.values if isinstance(node, Mapping) else node
        if isinstance(below, Struct) and fields[name].type not in _SAMPLES and "JSONSchema" not in message:
            yield from unnamed(fields[name].type, below, seen)


def test_fields_have_the_names_of_the_schemas() -> None:
    """The schemas come from the generated client, the messages from another table."""
    missing: list[str] = []
    for one in BUILT_IN:
        message = message_of(one.api_version, one.kind)
        schema = schema_of(one.group, one.version, one.kind)
        if message is not None and schema is not None:
            missing += unnamed(message, schema, set())

    assert sorted(set(missing)) == []
