"""Keeps what was read of a large mapping for as long as the mapping itself lives."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

from plimsoll.model.read_only_dict import LargeDict

ReadT = TypeVar("ReadT")


class ReadOnce(Generic[ReadT]):
    """Reads mappings; the latest large one is read only once.

    An attempt in parts reads the same claim a dozen times. A cache by text would keep it when it has gone.

    Args:
        read: Reads a mapping; may raise.
    """

    def __init__(self, read: Callable[[Mapping[str, Any]], ReadT]) -> None:
        self._read = read
        self._known: tuple[ReferenceType[Mapping[str, Any]], ReadT] | None = None

    def __call__(self, written: Mapping[str, Any]) -> ReadT:
        """What is read of the mapping."""
        if not isinstance(written, LargeDict):
            return self._read(written)
        known = self._known
        if known is not None and known[0]() is written:
            return known[1]
        found = self._read(written)
        self._known = ref(written, self._forget), found
        return found

    def _forget(self, gone: ReferenceType[Mapping[str, Any]]) -> None:
        known = self._known
        if known is not None and known[0] is gone:
            self._known = None
