"""Compiles the engine's kernel into the wheel where there is a C compiler; without one the wheel is pure.

Hatchling calls it (``pyproject.toml``); ``python core/kernel_build.py`` compiles into the source tree, as an
editable installation does. The library knows nothing of Python: one wheel for all its versions.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script where nothing is built
    BuildHookInterface = object  # type: ignore[assignment,misc]

FOLDER = "plimsoll/engine/kernel"
LIBRARY = "_kernel.so"
#: No contraction, no fast mathematics: every result equals numpy's to the bit.
FLAGS = (
    "-O3",
    "-std=c11",
    "-ffp-contract=off",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
    "-s",
    "-Wall",
    "-Wextra",
    "-Werror",
)


def compiler() -> str | None:
    """The C compiler: ``CC``, or cc, gcc or clang; None without one."""
    return next(
        (
            found
            for name in (os.environ.get("CC", ""), "cc", "gcc", "clang")
            if name and (found := shutil.which(name))
        ),
        None,
    )


def compile_kernel(source: Path, target: Path) -> str:
    """Compile ``source`` to ``target``; "" or why it could not be.

    A program that has loaded the former library keeps it.
    """
    command = compiler()
    if command is None or not sys.platform.startswith("linux"):
        return "no C compiler, or no Linux"
    made = target.with_suffix(f".{os.getpid()}")
    done = subprocess.run(  # noqa: S603 - the compiler of this machine
        [command, *FLAGS, str(source), "-o", str(made)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        made.unlink(missing_ok=True)
        return done.stderr
    made.replace(target)
    return ""


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the library to the wheel, or compiles it where an editable installation finds it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, before the files are collected."""
        folder = Path(self.root, FOLDER)
        target = folder / LIBRARY
        if version != "editable":
            self._made = Path(tempfile.mkdtemp())
            target = self._made / LIBRARY
        reason = compile_kernel(folder / "kernel.c", target)
        if reason:
            self.app.display_warning(f"The kernel is not compiled, numpy computes: {reason}")
        elif version != "editable":
            build_data["force_include"][str(target)] = f"{FOLDER}/{LIBRARY}"
            build_data["pure_python"] = False
            own = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            platform = os.environ.get("PLIMSOLL_WHEEL_PLATFORM", own)  # a release names what it has compared
            build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was compiled for the wheel."""
        if version != "editable":
            shutil.rmtree(self._made, ignore_errors=True)


if __name__ == "__main__":
    here = Path(__file__).parent / FOLDER
    sys.exit(compile_kernel(here / "kernel.c", here / LIBRARY) or None)
