"""Reads manifest files: YAML or JSON, several documents in a file, ``-`` for standard input."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from plimsoll.cli.errors import UserError

_SUFFIXES = frozenset((".yaml", ".yml", ".json"))


def documents_in(paths: Iterable[str]) -> list[Any]:
    """The documents of files, in order; of a folder those of its manifests, sorted by name.

    Raises:
        UserError: One is not YAML.
        OSError: One cannot be read.
    """
    return [document for path in paths for document in _documents(path)]


def _documents(path: str) -> list[Any]:
    if path == "-":
        return _parsed("standard input", sys.stdin.read())
    if Path(path).is_dir():
        found = sorted(each for each in Path(path).iterdir() if each.suffix in _SUFFIXES)
        return [document for each in found for document in _documents(str(each))]
    try:
        return _parsed(path, Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as exc:
        raise UserError(f"{path} is not UTF-8 text at byte {exc.start}; give a YAML or JSON file") from exc


def _parsed(source: str, text: str) -> list[Any]:
    try:
        return list(yaml.safe_load_all(text))
    except yaml.MarkedYAMLError as exc:
        where = "" if exc.problem_mark is None else f" at line {exc.problem_mark.line + 1}"
        raise UserError(f"{source} is not YAML{where}: {exc.problem or exc}") from exc
    except (yaml.YAMLError, RecursionError, ValueError) as exc:
        raise UserError(f"{source} is not YAML: {exc}") from exc
