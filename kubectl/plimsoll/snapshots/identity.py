"""Checks the names of objects from files: each must be valid for the API server, and unique."""

import re

import msgspec
from msgspec import Struct

from plimsoll.snapshots.errors import SnapshotError

#: A valid object name: no path, no space, no control character.
_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:]{0,252}")


class _Meta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None


class _Named(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    metadata: _Meta = _Meta()


_DECODER = msgspec.json.Decoder(_Named)


class Identity(Struct, frozen=True):
    """Identifies an object; the namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Names:
    """The names of one collection.

    Args:
        place: The origin of the objects, for messages.
        plural: The plural of the collection.
    """

    def __init__(self, place: str, plural: str) -> None:
        self._place = place
        self._plural = plural
        self._seen: set[tuple[str, str]] = set()
        self._decode = _DECODER.decode

    def checked(self, document: bytes) -> bytes:
        """The same object, if its name is valid and new.

        Raises:
            SnapshotError: It is not an object, or its name is missing, invalid or a duplicate.
        """
        found = self.identity(document)
        if (found.namespace, found.name) in self._seen:
            raise self._error(f"is named {found}, as an earlier one; leave one of them out")
        self._seen.add((found.namespace, found.name))
        return document

    def identity(self, document: bytes) -> Identity:
        """The identity of an object.

        Raises:
            SnapshotError: It is not an object, or its name is missing or invalid.
        """
        try:
            meta = self._decode(document).metadata
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise self._error(f"is no object with a name: {exc}") from exc
        namespace = meta.namespace or ""
        for name in (meta.name, namespace) if namespace else (meta.name,):
            if _NAME.fullmatch(name) is None:
                raise self._error(f"is named {name[:64]!r}, and no API server accepts that as a name")
        return Identity(namespace, meta.name, meta.uid or "")

    def _error(self, problem: str) -> SnapshotError:
        return SnapshotError(self._place, f"object {len(self._seen) + 1} of {self._plural} {problem}")
