"""Reads the YAML or JSON files that users name with ``-f``; ``-`` is stdin."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plimsoll.cli.errors import UserError

#: Bytes of a file of manifests, and levels of nesting in it; what has more was not meant.
LONGEST, DEEPEST = 64 * 2**20, 100


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file.

    Attributes:
        source: The file, ``stdin`` for ``-``.
        number: Of the document in its file, from 1.
    """

    source: str
    number: int
    content: Mapping[str, Any]


def manifests(path: Path) -> list[Manifest]:
    """The objects of a file, those of a ``List`` one by one; empty documents are left out.

    Raises:
        UserError: It cannot be read, is no YAML, or has no object.
    """
    source = "stdin" if str(path) == "-" else str(path)
    try:
        found = list(_objects(source, _text(path, source)))
    except (yaml.YAMLError, ValueError) as exc:
        raise UserError(f"{source} is not YAML: {exc}") from exc
    if not found:
        raise UserError(f"{source} has no object")
    return found


def _text(path: Path, source: str) -> str:
    with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as file:
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise UserError(f"{source} is too long for manifests: more than {LONGEST // 2**20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UserError(f"{source} is not text in UTF-8: {exc.reason} at byte {exc.start}") from exc


def _objects(source: str, text: str) -> Iterator[Manifest]:
    _check_depth(text)
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


def _check_depth(text: str) -> None:
    """The loader in C recurses without a bound, and takes the process with it."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
