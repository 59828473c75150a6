"""A Fault is a slip at its place, kept by the text around it, so that it can be planted again later."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from distributions import modules, package_of

#: So many lines before and after a fault are kept to recognise its place.
AROUND = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """What is planted where.

    Attributes:
        path: The module, seen from the root of the repository.
        scope: The function with the classes and functions around it: ``Book.add``.
        kind: What the developer did.
        old: The lines that it replaces, without the indentation that they share.
        new: What is there instead.
        before: The lines before it, without indentation.
        after: The lines after it.
        equivalent: Why it changes nothing that anyone could notice, as judged by a person; empty if it does.
    """

    path: str
    scope: str
    kind: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    equivalent: str = ""

    @property
    def package(self) -> str:
        """The package that it is in."""
        return package_of(self.path)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a fault is in the tree as it is now: the module, and the number of its first line from 1."""

    path: str
    line: int


def fault_at(path: str, scope: str, kind: str, text: str, begin: int, end: int, instead: str) -> Fault | None:
    """The fault that replaces some bytes of a module.

    Args:
        path: The module.
        scope: The function.
        kind: What the developer did.
        text: The module's.
        begin: The first byte that is replaced.
        end: The byte after the last one.
        instead: By what.

    Returns:
        None where its lines have text over several lines, whose indentation matters.
    """
    raw = text.encode()
    first = raw.rfind(b"\n", 0, begin) + 1
    last = end if (last := raw.find(b"\n", end)) < 0 else last
    old = raw[first:last].decode()
    new = raw[first:begin].decode() + instead + raw[end:last].decode()
    if '"""' in old or "'''" in old:
        return None
    indentation = len(old) - len(old.lstrip())
    lines = text.splitlines()
    number = raw.count(b"\n", 0, first)
    following = raw.count(b"\n", 0, last) + 1
    return Fault(
        path,
        scope,
        kind,
        tuple(textwrap.dedent(old).splitlines()),
        tuple(each[indentation:] for each in new.splitlines()),
        tuple(each.strip() for each in lines[max(0, number - AROUND) : number]),
        tuple(each.strip() for each in lines[following : following + AROUND]),
    )


def places(fault: Fault, path: str, text: str) -> Iterator[tuple[int, Place]]:
    """Where a module has the lines of a fault, each with how many lines around it are as they were."""
    lines = [each.strip() for each in text.splitlines()]
    old = [each.strip() for each in fault.old]
    for number in range(len(lines) - len(old) + 1):
        if lines[number : number + len(old)] == old:
            before = zip(reversed(lines[:number]), reversed(fault.before), strict=False)
            after = zip(lines[number + len(old) :], fault.after, strict=False)
            yield sum(a == b for a, b in (*before, *after)), Place(path, number + 1)


def place_of(fault: Fault, root: Path) -> Place | None:
    """Where a fault belongs in the tree as it is now: in its module, or where its lines moved; None if gone.

    In its own module one line around it must be as it was, elsewhere half of them.
    """
    home = root / fault.path
    found = list(places(fault, fault.path, home.read_text(encoding="utf-8"))) if home.exists() else []
    likeness, place = max(found, default=(0, None))
    if likeness:
        return place
    others = [
        each
        for module in modules(root)
        for each in places(fault, module.relative_to(root).as_posix(), module.read_text(encoding="utf-8"))
    ]
    likeness, place = max(others, default=(0, None))
    return place if 2 * likeness >= len(fault.before) + len(fault.after) else None


def planted(fault: Fault, line: int, text: str) -> str:
    """The module with the fault, whose first line has a number."""
    lines = text.splitlines()
    first = lines[line - 1]
    indentation = first[: len(first) - len(first.lstrip())]
    new = [f"{indentation}{each}" for each in fault.new]
    return "\n".join([*lines[: line - 1], *new, *lines[line - 1 + len(fault.old) :], ""])


def write(values: Iterable[object], path: Path) -> None:
    """Keep a list of faults, or of what became of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode([*values]), indent=1) + b"\n")


def read(path: Path) -> list[Fault]:
    """Read a list of faults."""
    return msgspec.json.decode(path.read_bytes(), type=list[Fault])
