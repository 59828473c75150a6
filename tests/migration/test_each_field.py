"""Each field of each old format, changed by itself: the policies and the report that follow.

A field is taken from the first case that has it, once with and once without ``--keep-behaviour``. It goes,
has another value, is there twice, and has a value of another kind: either the file is refused with a
sentence, or its lines in the golden file say what differs. ``PLIMSOLL_WRITE_GOLDEN=1`` writes them; a change
of a conversion shows in them which fields it concerns.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from cli.golden_files import check
from cli.test_every_answer import differences
from migration.checks import CHECKS, PLUGINS
from migration.test_conversion import CASES, KEEP, NAMES
from plimsoll.migration.conversion import convert_documents
from plimsoll.migration.documents import MigrationError, Path, SourceDocument

FORMATS = ("descheduler/v1alpha1", "descheduler/v1alpha2", "DeschedulerConfiguration", "kubescheduler")


def cases() -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """The documents of all cases, and whether they are converted to decide as before."""
    for name in NAMES:
        content = (CASES / f"{name}.input.yaml").read_bytes()
        for document in yaml.load_all(content, yaml.CSafeLoader):
            if "apiVersion" in document:
                yield name, content.startswith(KEEP), document


def format_of(document: Mapping[str, Any]) -> str:
    """Which of the formats a document has."""
    kind, version = str(document["kind"]), str(document["apiVersion"])
    return kind if kind in FORMATS else version.partition(".")[0]


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """The paths of all values below a document."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, each in inner:
        yield (*at, key)
        yield from paths(each, (*at, key))


def others(value: Any) -> Iterator[tuple[str, Any]]:
    """What the value is changed to, with words for it."""
    if isinstance(value, bool):
        yield "is the other", not value
    elif isinstance(value, int | float):
        yield "is greater", value + 1
        yield "is 0", 0
    elif isinstance(value, str):
        yield "is another text", value + "x"
    elif isinstance(value, list):
        yield "is there twice", value + copy.deepcopy(value[-1:])
    else:
        yield "is empty", {}
    yield "is of another kind", 7 if isinstance(value, str | list | dict) else [value]


def changed(document: Mapping[str, Any], path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The document with the value of a path changed in each way."""

    def holder() -> tuple[dict[str, Any], Any]:
        whole: Any = copy.deepcopy(document)
        inner = whole
        for part in path[:-1]:
            inner = inner[part]
        return whole, inner

    whole, inner = holder()
    value = inner.pop(path[-1])
    yield "goes", whole
    for words, other in others(value):
        whole, inner = holder()
        inner[path[-1]] = other
        yield words, whole


def lines_of(document: Mapping[str, Any], *, keep: bool) -> list[str]:
    """The policies and the report, a line for each value; or the sentence of the refusal."""
    source = SourceDocument("f", document)
    try:
        found = convert_documents([source], CHECKS, PLUGINS, keep_behaviour=keep)
    except MigrationError as exc:
        return [f"refused: {exc}"]
    lines = []
    for policy in found.policies:
        name = policy["metadata"]["name"]
        lines += [f"{name}: {each}" for each in flat(policy["spec"], "spec")]
    for line in found.report:
        named = ", ".join(line.policies)
        lines.append(f"{line.change} {line.source or '-'} -> {line.target or '-'} ({named}): {line.sentence}")
    return lines


def flat(value: Any, at: str) -> Iterator[str]:
    """A line for each value that holds no other."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from flat(each, f"{at}.{key}")
    elif isinstance(value, list) and value:
        for position, each in enumerate(value):
            yield from flat(each, f"{at}[{position}]")
    else:
        yield f"{at}: {value!r}"


@pytest.mark.parametrize("of", FORMATS)
def test_each_field_is_converted_as_before(of: str) -> None:
    seen: set[tuple[bool, str]] = set()
    told: list[str] = []
    for name, keep, document in cases():
        if of != format_of(document):
            continue
        before, has_heading = lines_of(document, keep=keep), False
        for path in paths(document):
            field = ".".join(str(part) for part in path)
            kind = re.sub(r"\.\d+(?=\.|$)", "[]", field)
            if (keep, kind) in seen:
                continue
            seen.add((keep, kind))
            if not has_heading:
                told.append(f"=== {name}")
                has_heading = True
            for words, other in changed(document, path):
                after = lines_of(other, keep=keep)
                is_refused = after[0].startswith("refused")
                told += [f"--- {field} {words}", *(after if is_refused else differences(before, after))]
    check("convert", re.sub(r"\W", "-", of), "text", "\n".join(told) + "\n")
