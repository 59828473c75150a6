"""Runs the prose check on paths or on the whole tree: ``python -m prose [path ...]``, from its root."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from prose.finds import Find, finds_in
from prose.tree import files_below


def main(arguments: list[str] | None = None) -> int:
    """Print what is to change; 1 when something is."""
    parser = argparse.ArgumentParser(prog="prose", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[Path()], help="files or folders to read")
    finds = sorted(_finds(parser.parse_args(arguments).paths))
    for find in finds:
        print(find)
    if finds:
        print(f"{len(finds)} finds in {len({find.path for find in finds})} files", file=sys.stderr)
    return 1 if finds else 0


def _finds(paths: Iterable[Path]) -> Iterator[Find]:
    for path in paths:
        for file in files_below(path) if path.is_dir() else [path]:
            yield from finds_in(file, file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
