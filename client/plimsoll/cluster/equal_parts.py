"""Keeps one of all equal values, so that half a million pods fit into memory."""

from collections import deque
from hashlib import blake2b
from sys import getrefcount
from typing import Generic, TypeVar

import msgspec

from plimsoll.model.read_only_dict import sealed

PartT = TypeVar("PartT")

#: Longer keys are stored as digests.
_LONG = 64

#: Number of kept parts before the first search for unused ones.
_FIRST_SWEEP = 1024

#: Number of parts of objects that have gone, after which unused ones are looked for.
_MANY = 256

#: Bytes, encoded, of new parts after which unused ones are looked for, or that many for each kept part.
_NEW_BYTES, _NEW_A_PART = 2**21, 64

#: Bytes, encoded, above which unused parts are looked for in turn, and how many at a time: a watch may be
#: idle for a minute.
_HEAVY, _IN_TURN = 32_768, 16

#: References to a value that no pod has: two by its part, and the argument of the count.
_UNUSED = 3

_ENCODER = msgspec.msgpack.Encoder()


class _Part(msgspec.Struct, Generic[PartT], frozen=True):
    """A value, and the part of it that pods refer to: itself, or a field."""

    value: PartT
    witness: object


class EqualParts(Generic[PartT]):
    """Keeps one of all equal values, each while something else refers to it or to its witness."""

    def __init__(self) -> None:
        self._parts: dict[bytes, _Part[PartT]] = {}
        self._sweep_at = _FIRST_SWEEP
        self._calls = 0  #: since the latest sweep
        self._new_bytes = 0  #: of parts that are new since then, encoded
        self._left = 0  #: parts of objects that have gone since then
        self._heavy: deque[bytes] = deque()

    def __len__(self) -> int:
        return len(self._parts)

    def shared(self, value: PartT, witness: object = None) -> PartT:
        """The kept value that equals this one; if none does, this one, its maps made read-only, is kept.

        Args:
            value: It may be encoded.
            witness: A field of the value that others refer to instead, no map; None: they refer to the value.
        """
        self._calls += 1
        if self._calls > 2 * self._sweep_at:  # also if none is new: those of a large object that has gone
            self.sweep()
        key = _ENCODER.encode(value)
        size = len(key)
        if size > _LONG:
            key = blake2b(key, digest_size=16).digest()
        found = self._parts.get(key)
        if found is None:
            value = sealed(value)
            found = self._parts[key] = _Part(value, value if witness is None else witness)
            if size > _HEAVY:
                self._heavy.append(key)
            self._new_bytes += size
            most_bytes = max(_NEW_BYTES, _NEW_A_PART * len(self._parts))
            if len(self._parts) > self._sweep_at or self._new_bytes > most_bytes:
                self.sweep()
        return found.value

    def sweep(self) -> None:
        """Drop values that no object refers to; the next sweep comes when twice as many are kept.

        Where none is new it comes after four times as many calls.
        """
        self._calls = self._left = self._new_bytes = 0
        self._parts = {key: part for key, part in self._parts.items() if getrefcount(part.witness) > _UNUSED}
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._parts))

    def left(self, count: int) -> None:
        """Note that an object with so many parts has gone: when many have, the unused ones are dropped."""
        self._left += count

    def let_go(self) -> None:
        """Drop the unused of some heavy parts, in turn; all unused parts if many objects have gone."""
        if self._left > _MANY and self._left > len(self._parts) // 4:
            self.sweep()
        if not self._heavy:  # as a rule; each line of a watch asks
            return
        for _ in range(min(_IN_TURN, len(self._heavy))):
            key = self._heavy.popleft()
            part = self._parts.get(key)
            if part is not None:
                if getrefcount(part.witness) > _UNUSED:
                    self._heavy.append(key)
                else:
                    del self._parts[key]
