"""Golden files: ``golden/COMMAND/CASE.FORMAT`` is what a command prints.

PLIMSOLL_WRITE_GOLDEN=1 writes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.answer_variants import fields_of
from plimsoll.cli.tables import Table

GOLDEN = Path(__file__).with_name("golden")


def check(command: str, case: str, form: str, text: str) -> None:
    """Compare what a command has printed with its golden file.

    Args:
        command: Its words, separated by a dash: ``explain-pod``.
        case: The scene.
        form: ``table``, ``wide``, ``json``, ``yaml``, ``error``; ``text`` of a command that has no formats.
        text: What it has printed.
    """
    file = GOLDEN / command / f"{case}.{form}"
    assert "\x1b" not in text
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), f"{file} is missing; PLIMSOLL_WRITE_GOLDEN=1 writes it"
    assert text == file.read_text(encoding="utf-8")


def values(answer: Any, path: str = "") -> Iterator[str]:
    """A line for each part that says anything, with the path to it; plain values of one part share a line."""
    if isinstance(answer, dict):
        plain = {key: value for key, value in answer.items() if _is_plain(value)}
        if said := ", ".join(f"{key} {value}" for key, value in plain.items() if value not in (None, "", [])):
            yield f"{path or '.'}: {said}"
        for key, value in answer.items():
            if key not in plain:
                yield from values(value, f"{path}.{key}")
    else:
        for place, value in enumerate(answer):
            yield from values(value, f"{path}[{place}]")


def _is_plain(value: Any) -> bool:
    return (
        not isinstance(value, dict | list)
        or not value
        or (isinstance(value, list) and not isinstance(value[0], dict | list))
    )


def text_of(*answers: tuple[str, Any]) -> str:
    """The values of several answers, each below its name."""
    return "".join(f"{line}\n" for name, answer in answers for line in (f"== {name}", *values(answer)))


def shown(what: Any, path: str = "") -> Iterator[str]:
    """The lines of what a view gives: tables in their wide form, of a page each value with its path."""
    if isinstance(what, str) and not path:
        yield from what.splitlines()
    elif isinstance(what, Table):
        yield from what.lines(wide=True)
    elif fields_of(type(what)):
        for name in fields_of(type(what)):
            yield from shown(getattr(what, name), f"{path}.{name}")
    elif isinstance(what, Mapping):
        for key, value in what.items():
            yield from shown(value, f"{path}[{key!r}]")
    elif isinstance(what, Iterable) and not isinstance(what, str):
        for place, each in enumerate(what):
            yield from shown(each, f"{path}[{place}]" if path else "")
    elif what not in (None, ""):
        yield f"{path}: {what}" if path else f"{what}"
