"""Reads and writes the snapshot file: gzip of JSON lines, written atomically and read as untrusted input.

::

    {"format": "plimsoll-snapshot", "version": 1, "taken": …, "source": …, "counts": {"pods": 2, …}, …}
    {"metadata": {"name": "a", …}, …}      counts["…"] objects of each collection, in the order of counts
    {"name": "node-1", "usage": …}         the readings of usage of nodes, then of pods
    {"sha256": "…"}                        of all bytes above

Sizes are bounded while reading: a line by ``LONGEST_LINE``, all of them by ``LARGEST_CONTENT``.
"""

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO, TypeVar

import msgspec

from plimsoll.model.decoding import DecodeError
from plimsoll.ports.usage import UsageReading
from plimsoll.snapshots.content import MAINTENANCES, POLICIES, RECORDS, SnapshotContent, UsageContent
from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.identity import Names
from plimsoll.snapshots.saved_fields import kinds, trimmed

T = TypeVar("T")

#: The beginning of the first line, in every version.
MAGIC = b'{"format":"plimsoll-snapshot"'

#: The only version that this release writes and reads.
VERSION = 1

#: Maximum bytes of a line, and of a decompressed file; the API server accepts objects of up to 3 MiB.
LONGEST_LINE, LARGEST_CONTENT = 2**22, 2**30

#: A quarter fewer bytes than level 1, for a third more time.
_LEVEL = 6

_NODE_READINGS, _POD_READINGS = "readings/nodes", "readings/pods"

#: Fields of the first line, in addition to the kinds.
COLLECTIONS = frozenset({POLICIES, RECORDS, MAINTENANCES, _NODE_READINGS, _POD_READINGS})


class _Header(msgspec.Struct, kw_only=True, rename="camel"):
    format: str
    version: int
    taken: float = 0.0
    source: str = ""
    counts: dict[str, int] = {}
    missing: dict[str, str] = {}
    usage_problem: str = ""


class _Reading(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    usage: dict[str, int]
    taken: float


class _Trailer(msgspec.Struct, kw_only=True):
    sha256: str


class _Version(msgspec.Struct, kw_only=True):
    version: int


def save(content: SnapshotContent, path: Path, *, force: bool = False) -> int:
    """Write a snapshot without fields that no decision reads; replaces the file only once it is complete.

    Returns:
        Bytes of the file.

    Raises:
        SnapshotError: The file exists and ``force`` is not set, or it cannot be written.
    """
    check_free(path, force=force)
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
        ) as target:
            temporary = target.name
            write(content, target)
            target.flush()
            os.fsync(target.fileno())
        Path(temporary).replace(path)
        return path.stat().st_size
    except OSError as exc:
        raise SnapshotError(str(path), f"it cannot be written: {exc.strerror or exc}") from exc
    finally:
        with suppress(OSError):
            if temporary:
                Path(temporary).unlink(missing_ok=True)


def check_free(path: Path, *, force: bool) -> None:
    """Check, before a long read, that a snapshot may be written there.

    Raises:
        SnapshotError: The file exists and ``force`` is not set, or its folder does not exist.
    """
    if not force and path.exists():
        raise SnapshotError(str(path), "the file exists; choose another name, or overwrite it with --force")
    if not path.parent.is_dir():
        raise SnapshotError(str(path), "the folder does not exist")


def write(content: SnapshotContent, target: IO[bytes]) -> None:
    """Write a snapshot to an open file; equal contents give equal bytes."""
    objects: dict[str, list[bytes]] = {}
    for plural, documents in content.objects.items():
        kept = objects[plural] = []
        for document in documents:
            with suppress(DecodeError):
                kept.append(trimmed(plural, document))
    counts = {plural: len(documents) for plural, documents in objects.items()}
    counts |= {_NODE_READINGS: len(content.usage.nodes), _POD_READINGS: len(content.usage.pods)}
    header = _Header(
        format="plimsoll-snapshot",
        version=VERSION,
        taken=content.taken,
        source=content.source,
        counts=counts,
        missing=dict(content.missing),
        usage_problem=content.usage.problem,
    )
    encode = msgspec.json.Encoder().encode
    digest = hashlib.sha256()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=target, mtime=0) as packed:

        def put(lines: Sequence[bytes]) -> None:
            for start in range(0, len(lines), 1024):
                piece = b"\n".join(lines[start : start + 1024]) + b"\n"
                digest.update(piece)
                packed.write(piece)

        put([encode(header)])
        for documents in objects.values():
            put(documents)
        for readings in (content.usage.nodes, content.usage.pods):
            put([encode(_Reading(name=r.name, usage=dict(r.usage), taken=r.taken)) for r in readings])
        packed.write(encode(_Trailer(sha256=digest.hexdigest())) + b"\n")


def is_snapshot(beginning: bytes) -> bool:
    """Whether decompressed content begins like a snapshot file of any version."""
    return beginning.startswith(MAGIC)


def read(stream: BinaryIO, place: str, *, largest: int = LARGEST_CONTENT) -> SnapshotContent:
    """Read the content of a snapshot file from its decompressed bytes.

    Raises:
        SnapshotError: It is truncated, modified, too large, of another version, or not a snapshot.
    """
    lines = _Lines(stream, place, largest)
    first = lines.first()
    version = _decoded(first, _Version, place, "line 1").version
    if version != VERSION:
        raise SnapshotError(
            place,
            f"it has version {version} of the format, this release reads version {VERSION};"
            " take it again, or use the release that wrote it",
        )
    header = _decoded(first, _Header, place, "line 1")
    objects: dict[str, tuple[bytes, ...]] = {}
    counts = dict(header.counts)
    known = {*COLLECTIONS, *kinds()}
    for plural, count in counts.items():
        if count < 0 or (plural not in known and "." not in plural):
            raise SnapshotError(place, f'line 1 announces {count} of "{plural}", which no release writes')
    readings = counts.pop(_NODE_READINGS, 0), counts.pop(_POD_READINGS, 0)
    for plural, count in counts.items():
        names = Names(place, plural)
        found = tuple(names.checked(line[:-1]) for line in lines.take(count))
        if plural in known:  # else of a plugin that is not installed here
            objects[plural] = found
    nodes, pods = (tuple(_reading(line, place) for line in lines.take(count)) for count in readings)
    expected = lines.digest.hexdigest()
    if _decoded(lines.last(), _Trailer, place, "the last line").sha256 != expected:
        raise SnapshotError(place, "its check sum does not match: the file was changed or damaged")
    usage = UsageContent(nodes, pods, header.usage_problem)
    return SnapshotContent(header.taken, header.source, objects, usage, header.missing)


class _Lines:
    """Reads bounded lines of a stream.

    Attributes:
        number: Number of the last line read, from 1.
        digest: Digest of all lines read; after :meth:`last`, without the last one.
    """

    def __init__(self, stream: BinaryIO, place: str, largest: int) -> None:
        self._stream = stream
        self._place = place
        self._left = largest
        self._largest = largest
        self.number = 0
        self.digest = hashlib.sha256()

    def first(self) -> bytes:
        """The first line."""
        return self._hashed(self._line())

    def take(self, count: int) -> Iterator[bytes]:
        """Read this many further lines."""
        for _ in range(count):
            yield self._hashed(self._line())

    def last(self) -> bytes:
        """Read the last line, which is not part of the digest.

        Raises:
            SnapshotError: Another line follows.
        """
        line = self._line()
        if self._raw():
            raise SnapshotError(self._place, "it goes on after its end; it was changed or damaged")
        return line

    def _hashed(self, line: bytes) -> bytes:
        self.digest.update(line)
        return line

    def _line(self) -> bytes:
        line = self._raw()
        self.number += 1
        self._left -= len(line)
        if len(line) > LONGEST_LINE or self._left < 0:
            size = f"{self._largest >> 20} MiB" if self._left < 0 else f"{LONGEST_LINE >> 20} MiB in one line"
            raise SnapshotError(self._place, f"it holds more than {size}, which no snapshot does")
        if not line.endswith(b"\n"):
            raise SnapshotError(
                self._place, f"it ends in line {self.number}: the file is truncated; copy or take it again"
            )
        return line

    def _raw(self) -> bytes:
        try:
            return self._stream.readline(LONGEST_LINE + 1)
        except EOFError as exc:
            raise SnapshotError(
                self._place,
                f"it ends after line {self.number}: the file is truncated; copy or take it again",
            ) from exc
        except (OSError, zlib.error) as exc:
            raise SnapshotError(
                self._place, f"it cannot be decompressed after line {self.number}: {exc}"
            ) from exc


def _reading(line: bytes, place: str) -> UsageReading:
    found = _decoded(line, _Reading, place, "the readings of usage")
    return UsageReading(found.name, found.usage, found.taken)


def _decoded(line: bytes, kind: type[T], place: str, where: str) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SnapshotError(place, f"{where} is not as in a snapshot file: {exc}") from exc
