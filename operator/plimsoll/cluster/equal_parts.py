"""EqualParts keep one of all equal values, so that half a million pods fit into memory."""

from hashlib import blake2b
from sys import getrefcount
from typing import Generic, TypeVar

import msgspec

PartT = TypeVar("PartT")

#: Longer keys are kept as digests.
_LONG = 64

#: Parts that are kept before the first look for those that no pod has any more.
_FIRST_SWEEP = 1024

#: References of a value that no pod has: two of its part, and the argument of the count.
_UNUSED = 3

_ENCODER = msgspec.msgpack.Encoder()


class _Part(msgspec.Struct, Generic[PartT], frozen=True):
    """A value, and that part of it which pods refer to: itself, or a field."""

    value: PartT
    witness: object


class EqualParts(Generic[PartT]):
    """One of all equal values, each for as long as something else refers to it or its witness."""

    def __init__(self) -> None:
        self._parts: dict[bytes, _Part[PartT]] = {}
        self._sweep_at = _FIRST_SWEEP

    def __len__(self) -> int:
        return len(self._parts)

    def shared(self, value: PartT, witness: object = None) -> PartT:
        """The kept value that equals this one; from now on this one, if none does.

        Args:
            value: May be encoded.
            witness: A field of the value that others refer to instead; None: they refer to the value.
        """
        key = _ENCODER.encode(value)
        if len(key) > _LONG:
            key = blake2b(key, digest_size=16).digest()
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = _Part(value, value if witness is None else witness)
            if len(self._parts) > self._sweep_at:
                self.sweep()
        return found.value

    def sweep(self) -> None:
        """Drop what no object refers to; look again when twice as many are kept."""
        self._parts = {key: part for key, part in self._parts.items() if getrefcount(part.witness) > _UNUSED}
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._parts))
