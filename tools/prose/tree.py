"""Lists the files of the repository that the prose check reads."""

from collections.abc import Iterator
from pathlib import Path

_SUFFIXES = frozenset((".py", ".md", ".yaml", ".yml", ".toml", ".tpl", ".sh"))
_NAMES = frozenset(("Makefile", "Dockerfile", "run", "NOTES.txt"))
#: Folders that hold nothing of ours, or what a program wrote.
_SKIPPED = frozenset(("__pycache__", "dist", "build"))
_HIDDEN = frozenset((".ci", ".github", ".pre-commit-config.yaml"))


def files_below(root: Path) -> Iterator[Path]:
    """Paths from the root, in order."""
    for found in sorted(root.iterdir()):
        if found.name in _SKIPPED or (found.name.startswith(".") and found.name not in _HIDDEN):
            continue
        if found.is_symlink():
            continue
        if found.is_dir():
            yield from files_below(found)
        elif found.suffix in _SUFFIXES or found.name in _NAMES:
            yield found
