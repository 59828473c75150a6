"""Reads the YAML or JSON files and folders that users name with ``-f``; ``-`` is stdin."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plimsoll.commands.errors import UserError

#: Maximum bytes of a manifest file (aliases expanded), and maximum levels of nesting in it.
LONGEST, DEEPEST = 64 * 2**20, 100

#: Bytes per read: Python allocates memory for the whole requested size.
PIECE = 2**20

#: File name suffixes of manifests in a folder.
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file.

    Attributes:
        source: The file, ``stdin`` for ``-``.
        number: The position of the document in its file, from 1.
    """

    source: str
    number: int
    content: Mapping[str, Any]


def manifests(paths: Iterable[Path]) -> list[Manifest]:
    """The objects of files and folders in order; a ``List`` yields its items, empty documents are left out.

    Raises:
        UserError: A file is not YAML, or has no object; a folder has no manifests.
        OSError: One cannot be read.
    """
    return [each for path in paths for file in manifest_files(path) for each in manifests_of(file)]


def manifest_files(path: Path) -> list[Path]:
    """The file, or the manifests of a folder sorted by name, as ``kubectl apply -f`` finds them.

    Raises:
        UserError: A folder has none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES and each.is_file())
    if not found:
        raise UserError(f"{path}: the folder has no file that ends with {', '.join(SUFFIXES)}")
    return found


def manifests_of(path: Path) -> list[Manifest]:
    """The manifests of one file."""
    source = "stdin" if str(path) == "-" else str(path)
    try:
        found = list(_objects(source, _text(path, source)))
    except yaml.MarkedYAMLError as exc:
        where = "" if exc.problem_mark is None else f" at line {exc.problem_mark.line + 1}"
        raise UserError(f"{source} is not YAML{where}: {exc.problem or exc}") from exc
    except (yaml.YAMLError, RecursionError, ValueError) as exc:
        raise UserError(f"{source} is not YAML: {exc}") from exc
    if not found:
        raise UserError(f"{source} has no object")
    return found


def _text(path: Path, source: str) -> str:
    with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as file:
        content = bytearray()
        while len(content) <= LONGEST and (part := file.read(PIECE)):
            content += part
    if len(content) > LONGEST:
        raise UserError(f"{source} is too long for manifests: more than {LONGEST // 2**20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UserError(f"{source} is not text in UTF-8: {exc.reason} at byte {exc.start}") from exc


def _objects(source: str, text: str) -> Iterator[Manifest]:
    _check_shape(text)
    for number, document in enumerate(yaml.load_all(text, Loader=yaml.CSafeLoader), 1):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise UserError(f"{source}, document {number}: expected an object, got {type(document).__name__}")
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            yield from (Manifest(source, number, item) for item in items if isinstance(item, dict))
        else:
            yield Manifest(source, number, document)


def _check_shape(text: str) -> None:
    """Reject a document that would exhaust the process: deep nesting, recursive or oversized aliases.

    The loader in C recurses without a bound. An alias costs nothing until the document is traversed.
    """
    sizes: dict[str, int] = {}  #: by anchor: characters, plus one for each node
    open_: list[tuple[str | None, int]] = []  #: collections: anchor, size before
    size = repeated = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, size))
            if len(open_) > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            size += 1
            if anchor is not None:
                sizes[anchor] = size - before
        elif isinstance(event, yaml.ScalarEvent):
            size += 1 + len(event.value)
            if event.anchor is not None:
                sizes[event.anchor] = 1 + len(event.value)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in {anchor for anchor, _ in open_}:
                raise ValueError(f"the alias *{event.anchor} is part of what it repeats")
            again = sizes.get(event.anchor or "", 0)
            size, repeated = size + again, repeated + again
            if repeated > LONGEST:
                raise ValueError(f"its aliases repeat more than {LONGEST // 2**20} MiB")
