"""Runs ``make release`` on this checkout: twice, to be compared, and once for the same inputs.

It is made in a folder that has what :data:`NAMES` names and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

from built_once import Parts, built_once, sources, tools, write
from deploy.tools import ROOT, tool
from plimsoll.version import __version__
from release.__main__ import epoch

#: All of the repository that goes into a release.
NAMES = (
    *(".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "crds", "deploy", "devcluster"),
    *("cel", "client", "core", "examples", "kubectl", "operator", "optimal", "pyproject.toml"),
    *("requirements-runtime.lock", "testing", "tools"),
)
#: The folders of both releases.
FIRST, AGAIN = "first", "again"


def parts() -> Parts:
    """All that a release is made of."""
    programs = [Path(tool(name)) for name in ("helm", "cyclonedx-py", "make")]
    compiler = [Path(found) for found in [shutil.which("cc")] if found]
    libraries = [Path(sysconfig.get_path("purelib")), *ROOT.glob(".tools/lib/*/site-packages")]
    return {
        **sources(ROOT, [*NAMES, "tests/built_once.py", "tests/deploy/released.py"]),
        **tools(Path(sys.executable), *libraries, *programs, *compiler),
        **{f"variable {name}": value.encode() for name, value in environment(ROOT).items()},
    }


def environment(folder: Path) -> dict[str, str]:
    """The variables of a release that is made in a folder."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(folder / "tools"),
        "SOURCE_DATE_EPOCH": str(epoch()),
    }


def made(
    folder: Path, out: Path, version: str = __version__, *options: str
) -> subprocess.CompletedProcess[str]:
    """A release by the tools of a folder, a dry run without images unless options are given."""
    command = [
        sys.executable,
        "-m",
        "release",
        version,
        str(out),
        *(options or ("--dry-run", "--without-image")),
    ]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )


@cache
def released() -> Path:
    """A folder with both releases."""

    def build(folder: Path) -> None:
        source = folder / "source"
        write(sources(ROOT, NAMES), source)
        if (ROOT / ".tools").exists():
            (source / ".tools").symlink_to(ROOT / ".tools")
        for name in (FIRST, AGAIN):
            done = made(source, folder / name)
            assert done.returncode == 0, done.stderr
        shutil.rmtree(source)

    return built_once("release", parts(), build)
