"""Request bodies in Protocol Buffers: bytes as kubectl sends them, and rejections."""

import pytest

from roadstead.server.bodies.protobuf_bodies import decoded_protobuf
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
        (body("v1", "ConfigMap", message((15, "x"))), "field 15 of V1ConfigMap"),
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
