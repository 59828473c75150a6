"""Reads the state of a cluster from files: a snapshot, or dumps of kubectl; the only entry point.

Nothing in a file is executed, and no name in it is used as a path. Decompressed sizes are bounded.
"""

import gzip
import io
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from plimsoll.snapshots import file
from plimsoll.snapshots.content import SnapshotContent
from plimsoll.snapshots.dumps import Dump
from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.file import LARGEST_CONTENT

#: The argument that means standard input.
STDIN = "-"

_GZIP = b"\x1f\x8b"
_SUFFIXES = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")
_MOST_FILES = 10_000


def read(
    paths: Sequence[str | Path], stdin: BinaryIO | None = None, *, largest: int = LARGEST_CONTENT
) -> SnapshotContent:
    """Read the state of a cluster.

    Args:
        paths: A snapshot file; or files and folders with kubectl's output, "-" for standard input.
        stdin: Standard input.
        largest: Maximum number of decompressed bytes.

    Raises:
        SnapshotError: A file cannot be read.
    """
    named = [str(path) for path in paths]
    if not named:
        raise SnapshotError("no file", "name a snapshot, or files that kubectl get -o json printed")
    dump, taken = Dump(), 0.0
    for name in [each for one in named for each in _files_of(one)]:
        with _opened(name, stdin) as (stream, modified):
            beginning = stream.peek(len(file.MAGIC))[: len(file.MAGIC)]
            if file.is_snapshot(beginning):
                if len(named) > 1:
                    raise SnapshotError(name, "it is a whole snapshot; give it alone")
                return file.read(stream, name, largest=largest)
            _add(dump, _bounded(stream, name, largest), name)
            taken = max(taken, modified)
    return dump.content(taken, named[0] if len(named) == 1 else f"{named[0]} and {len(named) - 1} more")


def _files_of(name: str) -> list[str]:
    if name == STDIN or not Path(name).is_dir():
        return [name]
    found = sorted(str(each) for each in Path(name).rglob("*") if each.name.endswith(_SUFFIXES))
    if not found:
        raise SnapshotError(name, f"the folder has no file that ends with {', '.join(_SUFFIXES[:3])}")
    if len(found) > _MOST_FILES:
        raise SnapshotError(name, f"the folder has more than {_MOST_FILES} files; name a narrower one")
    return found


@contextmanager
def _opened(name: str, stdin: BinaryIO | None) -> Iterator[tuple[io.BufferedReader, float]]:
    """The decompressed stream of a file, and its modification time."""
    try:
        if name == STDIN:
            if stdin is None:
                raise SnapshotError(name, "there is no standard input")
            yield _decompressed(io.BufferedReader(stdin)), time.time()  # type: ignore[arg-type] # raw or buffered
            return
        path = Path(name)
        if path.exists() and not (path.is_file() or path.is_fifo()):
            raise SnapshotError(name, "it is no file")
        with path.open("rb") as stream:
            yield _decompressed(stream), os.fstat(stream.fileno()).st_mtime
    except OSError as exc:
        raise SnapshotError(name, f"it cannot be read: {exc.strerror or exc}") from exc
    except (EOFError, zlib.error) as exc:
        raise SnapshotError(
            name, f"it cannot be decompressed: {exc}; the file is truncated or damaged"
        ) from exc


def _decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    if stream.peek(2)[:2] != _GZIP:
        return stream
    return io.BufferedReader(gzip.GzipFile(fileobj=stream), 2**20)


def _bounded(stream: io.BufferedReader, name: str, largest: int) -> bytes:
    pieces, size = [], 0
    while piece := stream.read(2**20):
        size += len(piece)
        if size > largest:
            raise SnapshotError(
                name,
                f"it holds more than {largest >> 20} MiB, decompressed; plimsoll snapshot save writes what is"
                " needed in a fraction of that",
            )
        pieces.append(piece)
        if size == len(piece) and b"\0" in piece:
            raise SnapshotError(name, "it is neither a snapshot nor JSON nor YAML")
    return b"".join(pieces)


def _add(dump: Dump, text: bytes, name: str) -> None:
    beginning = text[:1024].lstrip()[:1]
    if not beginning:
        raise SnapshotError(name, "it is empty")
    if beginning in (b"{", b"["):
        dump.add_json(text, name)
    else:
        dump.add_yaml(text, name)
