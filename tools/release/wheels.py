"""Builds the operator's wheel and source archive, and the wheels that come with them."""

import contextlib
import os
import platform
import re
import sys
import zipfile
from pathlib import Path

from hatchling import build as hatchling

#: Folders of projects whose wheels have the operator's version or are required by one that has.
PROJECTS = (".", "cel", "core", "client", "optimal", "kubectl", "testing", "examples/demo", "devcluster")
#: The oldest C library that the kernel may need, as the tag of its wheel says.
C_LIBRARY = (2, 17)


def platform_tag() -> str:
    """Of a wheel with the compiled kernel, for this machine."""
    return f"manylinux_{C_LIBRARY[0]}_{C_LIBRARY[1]}_{platform.machine()}"


def newest_symbol(wheel: Path) -> tuple[int, ...]:
    """The newest version of the C library that a wheel's libraries ask for; (0,) without libraries."""
    with zipfile.ZipFile(wheel) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist() if name.endswith(".so"))
    versions = re.findall(rb"GLIBC_(\d+(?:\.\d+)+)", content)
    return max((tuple(map(int, each.split(b"."))) for each in versions), default=(0,))


def build(root: Path, out: Path, epoch_s: int) -> list[Path]:
    """Write the wheels and the operator's source archive into ``out``; their paths."""
    os.environ |= {"SOURCE_DATE_EPOCH": str(epoch_s), "PLIMSOLL_WHEEL_PLATFORM": platform_tag()}
    before = set(out.iterdir())
    target = str(out.resolve())
    with contextlib.redirect_stdout(sys.stderr):
        for project in PROJECTS:
            with contextlib.chdir(root / project):
                hatchling.build_wheel(target)
        with contextlib.chdir(root):
            hatchling.build_sdist(target)
    made = sorted(set(out.iterdir()) - before)
    for wheel in (each for each in made if each.suffix == ".whl"):
        if newest_symbol(wheel) > C_LIBRARY:
            raise RuntimeError(f"{wheel.name} needs glibc {newest_symbol(wheel)}, later than {C_LIBRARY}")
    return made
