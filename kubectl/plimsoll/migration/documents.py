"""Reads configuration files: YAML with several documents, JSON, and ConfigMaps that carry such files.

Nothing in a file is executed. Its size, depth and number of values are bounded; an alias counts as often as
it is used. Each value keeps its line number.

Differs: a duplicate key is rejected, as in kube-scheduler; descheduler takes the last one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.framework.errors import PlimsollError
from plimsoll.model.shortened import shortened

Path = tuple[str | int, ...]
"""Keys and indices from the root of a document."""

LONGEST_FILE, DEEPEST, MOST_VALUES = 4 * 2**20, 60, 200_000

#: Maximum length of an error in characters, since it may repeat input.
LONGEST_SENTENCE = 1000

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
#: Scalars of JSON; any other plain scalar (a date, for example) is text, as in upstream's parsers.
_TEXTS = frozenset({f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value"})
_COLLECTIONS = frozenset({f"{_TAG}seq", f"{_TAG}map"})
_SCALARS = frozenset({f"{_TAG}null", f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float"})


class MigrationError(PlimsollError):
    """A file cannot be converted; a sentence gives the place and the reason."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        """The sentence, in one line."""
        text = f"{self.where}: {self.problem}"
        return shortened(text, LONGEST_SENTENCE)


class SourceDocument(Struct, frozen=True):
    """One document of a file.

    Attributes:
        origin: The file and the position in it, for people.
        lines: Line numbers by path, counted from 1; empty if unknown.
        blocks: Paths of texts written with "|", which begin on the line after their key.
    """

    origin: str
    body: Mapping[str, Any]
    lines: Mapping[Path, int] = field(default_factory=dict)
    blocks: frozenset[Path] = frozenset()

    @property
    def kind(self) -> str:
        """Its kind, "" without one."""
        return str(self.body.get("kind") or "")

    @property
    def api_version(self) -> str:
        """Its API version, "" without one."""
        return str(self.body.get("apiVersion") or "")

    def line(self, path: Path) -> int:
        """The line of a path, or of its closest known ancestor; 0 if unknown."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 0


def read_documents(name: str, content: bytes) -> list[SourceDocument]:
    """All documents of a file; ConfigMaps and Lists are replaced by the documents in them.

    Raises:
        MigrationError: It is too large, not YAML or JSON, or contains no object.
    """
    if len(content) > LONGEST_FILE:
        raise MigrationError(name, f"the file has more than {LONGEST_FILE >> 20} MiB; is it a configuration?")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise MigrationError(name, "this is no text in UTF-8; a configuration is YAML or JSON") from exc
    found = list(_parsed(name, text))
    if not found:
        raise MigrationError(name, "the file is empty; it needs a DeschedulerPolicy or another configuration")
    return [inner for each in found for inner in _unwrapped(each)]


def _parsed(name: str, text: str) -> Iterator[SourceDocument]:
    if text.lstrip()[:1] == "{":
        try:
            yield SourceDocument(name, orjson.loads(text))
        except orjson.JSONDecodeError:
            pass  # YAML may begin with a brace, too, and its errors are clearer
        else:
            return
    try:
        _check_depth(name, text)
        nodes = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as exc:
        raise MigrationError(name, _sentence(exc)) from exc
    for position, node in enumerate(nodes, 1):
        origin = name if len(nodes) == 1 else f"{name} (document {position})"
        reader = _Reader(origin)
        body = reader.value(node, ())
        if body is None:
            continue
        if not isinstance(body, dict):
            raise MigrationError(origin, "the document is not an object; it needs apiVersion and kind")
        yield SourceDocument(origin, body, reader.lines, frozenset(reader.blocks))


def _check_depth(name: str, text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise MigrationError(name, f"values are nested more than {DEEPEST} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _sentence(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"this is no valid YAML or JSON: {' '.join(str(error).split())}"
    mark = error.problem_mark
    place = "" if mark is None else f", at line {mark.line + 1}"
    return f"this is no valid YAML or JSON{place}: {error.problem or 'it cannot be read'}"


class _Reader:
    """Converts YAML nodes to plain values, and records their lines."""

    def __init__(self, origin: str) -> None:
        self.lines: dict[Path, int] = {}
        self.blocks: set[Path] = set()
        self._origin = origin
        self._left = MOST_VALUES
        self._open: set[int] = set()
        self._scalars = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node, path: Path) -> Any:
        """The plain value of a node."""
        line = node.start_mark.line + 1
        self._left -= 1
        if self._left < 0:
            raise self._error(line, f"the document has more than {MOST_VALUES} values, aliases counted")
        if id(node) in self._open or len(path) > DEEPEST:
            raise self._error(line, "an alias leads back to what it is part of")
        self.lines[path] = line
        if isinstance(node, yaml.ScalarNode):
            if node.style == "|":
                self.blocks.add(path)
            return self._scalar(node, line)
        if node.tag not in _COLLECTIONS:
            raise self._error(line, f"the tag {node.tag} is not allowed; write plain YAML")
        self._open.add(id(node))
        found: Any
        if isinstance(node, yaml.SequenceNode):
            found = [self.value(item, (*path, position)) for position, item in enumerate(node.value)]
        else:
            found = self._mapping(node, path)
        self._open.discard(id(node))
        return found

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        for key_node, item in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                value = self.value(item, path)
                merged += value if isinstance(value, list) else [value]
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(line, "a key is an object or a list; keys are names")
            key = str(key_node.value)
            if key in found:
                raise self._error(line, f'the key "{key}" is given twice; keep one')
            found[key] = self.value(item, (*path, key))
            self.lines[*path, key] = line
        for each in merged:
            if not isinstance(each, dict):
                raise self._error(node.start_mark.line + 1, "<< merges objects only")
            found = each | found
        return found

    def _scalar(self, node: yaml.ScalarNode, line: int) -> Any:
        if node.tag not in _SCALARS:
            if node.tag not in _TEXTS:
                raise self._error(line, f"the tag {node.tag} is not allowed; write plain YAML")
            return str(node.value)
        if node.tag == f"{_TAG}int" and ":" in node.value:
            return str(node.value)  # base 60, which upstream's parsers do not support
        try:
            return self._scalars.construct_object(node)
        except (ValueError, yaml.YAMLError) as exc:
            raise self._error(line, f"{node.value[:60]!r} cannot be read") from exc

    def _error(self, line: int, problem: str) -> MigrationError:
        return MigrationError(f"{self._origin}, line {line}", problem)


def _unwrapped(document: SourceDocument) -> Iterator[SourceDocument]:
    """The documents in a ConfigMap or List, or the document itself."""
    if document.kind in ("List", "ConfigMapList"):
        for position, item in enumerate(document.body.get("items") or ()):
            if isinstance(item, dict):
                at: Path = ("items", position)
                inside = {path[2:]: line for path, line in document.lines.items() if path[:2] == at}
                blocks = frozenset(path[2:] for path in document.blocks if path[:2] == at)
                origin = f"{document.origin}, items[{position}]"
                yield from _unwrapped(SourceDocument(origin, item, inside, blocks))
        return
    if document.kind != "ConfigMap":
        yield document
        return
    held = document.body.get("data")
    metadata = document.body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    for key, text in held.items() if isinstance(held, dict) else ():
        if not isinstance(text, str):
            continue
        where = f"{document.origin}, ConfigMap {name}, {key}"
        try:
            inner = list(_parsed(where, text))
        except MigrationError:
            if key.endswith((".yaml", ".yml", ".json")):
                raise
            continue  # a file of another kind
        above = document.lines.get(("data", key), 0)
        is_block = ("data", key) in document.blocks
        for each in inner:
            lines: dict[Path, int] = {(): above}
            if is_block:
                lines = {path: above + line for path, line in each.lines.items()}
            yield replace(each, lines=lines)
