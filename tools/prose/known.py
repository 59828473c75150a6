"""Finds that are known: a count for each file, which may only shrink.

A line of the list is a key and a count. A module of the operator is keyed by its dotted name, any other file
by its path.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from prose.finds import Find

LIST = Path("tools/prose/known.txt")


def key_of(path: Path) -> str:
    """The key of a file."""
    if path.suffix == ".py" and path.parts[0] == "operator":
        return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
    return path.as_posix()


def counted(finds: Iterable[Find]) -> Counter[str]:
    """Finds by key."""
    return Counter(key_of(find.path) for find in finds)


def read(text: str) -> dict[str, int]:
    """The list."""
    rows = (line.rsplit(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#"))
    return {key: int(count) for key, count in rows}


def written(counts: Mapping[str, int]) -> str:
    """The list as text."""
    return "".join(f"{key} {count}\n" for key, count in sorted(counts.items()))


def new(finds: Iterable[Find], known: Mapping[str, int]) -> list[Find]:
    """The finds in files that have more of them than the list allows."""
    listed = sorted(finds)
    counts = counted(listed)
    return [find for find in listed if counts[key_of(find.path)] > known.get(key_of(find.path), 0)]
