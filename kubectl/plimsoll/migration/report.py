"""Collects the report of a conversion: each field of the source, and each default that differs."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.migration.documents import Path, SourceDocument

AS_WRITTEN = "Kept as written."


class FieldChange(StrEnum):
    """The outcome of a field."""

    KEPT = "Kept"
    RENAMED = "Renamed"
    DEFAULT_DIFFERS = "DefaultDiffers"
    NO_COUNTERPART = "NoCounterpart"


class Note(Struct, frozen=True):
    """The outcome of one field, as the conversion reports it.

    Attributes:
        source: Path in the source; None for a default without a field in the source.
        target: Path in the policy, or a flag of ``plimsoll run``; "" without a counterpart.
    """

    change: FieldChange
    source: Path | None
    target: str
    sentence: str


class ReportLine(Struct, frozen=True):
    """One line of the report.

    source: Path in the source; "" for a default.
    line: Line of the source, 0 if unknown.
    policies: Names of the policies that contain the target; none for a flag or without a counterpart.
    """

    change: FieldChange
    origin: str
    source: str
    line: int
    policies: tuple[str, ...]
    target: str
    sentence: str


def carried(source: Path | None, target: str, sentence: str = "") -> Note:
    """A field whose value is unchanged in the result: kept, or renamed if its name changes."""
    name = target.rpartition(".")[2]
    was = source[-1] if source else name
    if was == name or isinstance(was, int):
        return Note(FieldChange.KEPT, source, target, sentence or AS_WRITTEN)
    return Note(FieldChange.RENAMED, source, target, sentence or f"Written as {name}.")


def differs(target: str, sentence: str, source: Path | None = None) -> Note:
    """A default or an effect that differs from the source."""
    return Note(FieldChange.DEFAULT_DIFFERS, source, target, sentence)


def dropped(source: Path, sentence: str) -> Note:
    """A field without a counterpart."""
    return Note(FieldChange.NO_COUNTERPART, source, "", sentence)


def path_text(path: Path) -> str:
    """A path in the usual notation: ``profiles[0].pluginConfig[1].args``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class ReportWriter:
    """Collects the lines about one document."""

    def __init__(self, document: SourceDocument) -> None:
        self._document = document
        self._lines: dict[ReportLine, dict[str, None]] = {}
        self._covered: set[Path] = set()

    def add(self, notes: Iterable[Note], policy: str = "") -> None:
        """Add notes about a resulting policy; identical notes about a field are merged."""
        for note in notes:
            # A step of the conversion may have no field in the file.
            if note.source is None or _has(self._document.body, note.source):
                self._write(note, policy)

    def _write(self, note: Note, policy: str) -> None:
        source = note.source
        if source is not None:
            self._covered.add(source)
        line = ReportLine(
            note.change,
            self._document.origin,
            "" if source is None else path_text(source),
            0 if source is None else self._document.line(source),
            (),
            note.target,
            note.sentence,
        )
        policies = self._lines.setdefault(line, {})
        if note.target.startswith(("spec.", "metadata.")):
            policies[policy] = None

    def lines(self, unknown: str) -> list[ReportLine]:
        """All lines in source order, defaults last; ``unknown`` is the sentence for all other fields."""
        for path in _leaves(self._document.body, ()):
            known = any(path[: len(each)] == each or each[: len(path)] == path for each in self._covered)
            if path and not known and path[0] != "metadata" and not _is_heading(path):
                self.add([dropped(path, unknown)])
        found = (replace(line, policies=tuple(policies)) for line, policies in self._lines.items())
        return sorted(found, key=lambda each: (not each.source, each.line))


def _is_heading(path: Path) -> bool:
    """Whether a field only identifies the subject of its neighbours."""
    return path[-1] in ("apiVersion", "kind") or (path[-1] == "name" and path[-3:-2] == ("pluginConfig",))


def _has(value: Any, path: Path) -> bool:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    found = False
    for key, item in items:
        found = True
        yield from _leaves(item, (*path, key))
    if not found:
        yield path
