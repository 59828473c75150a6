"""Asks mypy about a mutant that no test caught, because a change that mypy refuses is never merged."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from mutants.mutant import Mutant, text_with


def complaint(mutant: Mutant, root: Path, cache: Path) -> str:
    """What mypy says first about the module with the mutant; empty if it accepts it.

    Args:
        mutant: What is planted.
        root: The repository, as it is.
        cache: The folder of mypy's cache; what is known of other modules is kept there.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as shadow:
        shadow.write(text_with(mutant, (root / mutant.path).read_text(encoding="utf-8")))
        shadow.flush()
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(cache), "--no-error-summary"]
        command += ["--shadow-file", mutant.path, shadow.name, mutant.path]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603 - our own mypy
    # A filter that is left out says "if True" here; a change that leaves one out does not.
    errors = [
        each
        for each in done.stdout.splitlines()
        if each.startswith(mutant.path) and ": error: " in each and not each.endswith("[redundant-expr]")
    ]
    return errors[0].partition(": error: ")[2] if done.returncode == 1 and errors else ""
