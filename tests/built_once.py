"""Builds once what several tests look at: kept in build/tests, named by the hash of all that went in.

A build must see nothing but its parts, so that no change of anything else can make it another: sources are
copied to where it runs, as :func:`sources` found them, and programs are parts by size and time of change.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build/tests"
#: How many builds of a name are kept.
GENERATIONS = 2

#: What goes in, by its name: what is in a file, or what identifies it.
Parts = dict[str, bytes]


def sources(root: Path, names: Iterable[str]) -> Parts:
    """Files, and all files in folders, with their contents and whether they may be executed; links as links.

    Args:
        root: What the names are relative to.
        names: Of files and folders.
    """
    found = {}
    for name in names:
        path = root / name
        for file in [path] if path.is_file() else files_below(path):
            if file.is_symlink():
                content = b"l" + os.fsencode(file.readlink())
            else:
                content = (b"x" if os.access(file, os.X_OK) else b"-") + file.read_bytes()
            found[str(file.relative_to(root))] = content
    return found


def write(parts: Parts, folder: Path) -> None:
    """The files of :func:`sources` in another folder."""
    for name, content in parts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if content[:1] == b"l":
            file.symlink_to(os.fsdecode(content[1:]))
        else:
            file.write_bytes(content[1:])
            file.chmod(0o755 if content[:1] == b"x" else 0o644)


def tools(*paths: Path) -> Parts:
    """Programs, this interpreter, and what folders for packages hold: by size and time of change."""
    found = {"interpreter": sys.version.encode()}
    for path in paths:
        real = path.resolve()
        files = [real] if real.is_file() else sorted(real.glob("*.dist-info/RECORD"))
        states = (
            f"{file} {each.st_size} {each.st_mtime_ns}"
            for file, each in ((one, one.lstat()) for one in files)
        )
        found[f"tool {path}"] = "\n".join(states).encode()
    return found


def files_below(folder: Path) -> list[Path]:
    """All files of a folder but bytecode, in order."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each != "__pycache__"]
        links = [each for each in folders if Path(parent, each).is_symlink()]
        found += [Path(parent, name) for name in (*names, *links)]
    return sorted(found)


def built_once(name: str, parts: Parts, build: Callable[[Path], None], kept: Path = KEPT) -> Path:
    """The folder that ``build`` fills, or has filled from the same parts; another process waits for it.

    Args:
        name: Of what is built.
        parts: All that goes in.
        build: Fills a folder that it makes. If it raises, nothing is kept.
        kept: Where builds are kept.
    """
    digest = hashlib.sha256()
    for part, content in sorted(parts.items()):
        digest.update(f"{len(part)} {part} {len(content)} ".encode() + content)
    folder = kept / f"{name}-{digest.hexdigest()[:32]}"
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            earlier = sorted(kept.glob(f"{name}-*"), key=lambda each: each.stat().st_mtime)
            for old in earlier[: 1 - GENERATIONS]:
                remove(old)
            unfinished = kept / f".{name}"
            remove(unfinished)
            build(unfinished)
            unfinished.rename(folder)
        os.utime(folder)
    return folder


def remove(folder: Path) -> None:
    """Remove a folder, also one that nothing may be written to."""
    if folder.exists():
        for parent, *_ in os.walk(folder):
            Path(parent).chmod(0o755)
        shutil.rmtree(folder)
