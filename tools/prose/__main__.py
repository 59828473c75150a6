"""Runs the prose check: ``python -m prose [--record] [path ...]``, from the root of the repository.

Without a path the whole tree is read, and files may have as many finds as ``tools/prose/known.txt`` says.
With paths every find in them is listed. ``--record`` writes the list, which may only shrink in total.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from prose import known
from prose.finds import Find, finds_in
from prose.tree import files_below


def main(arguments: list[str] | None = None) -> int:
    """Print what is to change; 1 when something is."""
    parser = argparse.ArgumentParser(prog="prose", description=__doc__)
    parser.add_argument(
        "paths", nargs="*", type=Path, help="files or folders to read; the whole tree without"
    )
    parser.add_argument("--record", action="store_true", help="write tools/prose/known.txt")
    options = parser.parse_args(arguments)
    listed = known.read(known.LIST.read_text(encoding="utf-8")) if known.LIST.exists() else {}

    if options.paths:
        return _report(sorted(_finds(options.paths)), "")
    finds = list(_finds([Path()]))
    if options.record:
        return _record(finds, listed)
    return _report(known.new(finds, listed), " more than tools/prose/known.txt allows")


def _finds(paths: Iterable[Path]) -> Iterator[Find]:
    for path in paths:
        for file in files_below(path) if path.is_dir() else [path]:
            yield from finds_in(file, file.read_text(encoding="utf-8"))


def _report(finds: list[Find], than: str) -> int:
    for find in finds:
        print(find)
    if finds:
        print(f"{len(finds)} finds in {len({find.path for find in finds})} files{than}", file=sys.stderr)
    return 1 if finds else 0


def _record(finds: list[Find], listed: dict[str, int]) -> int:
    allowed = sum(listed.values())
    if known.LIST.exists() and len(finds) > allowed:
        print(f"{len(finds)} finds, and the list has {allowed}: it may only shrink", file=sys.stderr)
        return 1
    known.LIST.write_text(known.written(known.counted(finds)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
