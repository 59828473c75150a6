"""Reads the table of messages in Protocol Buffers: their fields, with number, name in JSON and type.

Source: the wire format of Kubernetes v1.36; ``tools/wire_fields.py`` writes the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class WireField:
    """A field of a message.

    Attributes:
        number: on the wire.
        name: in JSON.
        type: a scalar such as "int32", or the name of a message; of a list or map that of an item.
        shape: "" for a single value, "[]" for a list, "{}" for a map.
        inline: whether JSON has the fields of the message in place of the message.
        drops_zero: whether JSON omits a zero.
    """

    number: int
    name: str
    type: str
    shape: str
    inline: bool
    drops_zero: bool


@cache
def _lines() -> dict[str, str]:
    text = (files(__package__) / "wire_fields.txt").read_text("utf-8")
    parts = (line.partition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: fields for name, _, fields in parts}


@cache
def message_fields(message: str) -> dict[int, WireField]:
    """The fields of a message by number.

    Raises:
        KeyError: the table has no such message.
    """
    found = {}
    for one in _lines()[message].split():
        number, name, kind = one.split(":")
        shape = kind[:2] if kind[:2] in ("[]", "{}") else ""
        field = WireField(
            int(number),
            name.strip("~?"),
            kind.removeprefix(shape),
            shape,
            name.startswith("~"),
            name.endswith("?"),
        )
        found[field.number] = field
    return found


def message_of(api_version: str, kind: str) -> str | None:
    """The message of a kind, or None; every group has DeleteOptions."""
    group, _, version = api_version.rpartition("/")
    place = f"{group.partition('.')[0] or 'core'}.{version}.{kind}"
    if place not in _lines():
        place = f"meta.v1.{kind}"
    return place if place in _lines() else None
