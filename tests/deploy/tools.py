"""The programs that judge deploy/: helm, kubectl, hadolint, jactionlint."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tool(name: str) -> str:
    """Where a program is: in .tools/bin (``make tools``), else on the PATH; without it the test fails."""
    found = shutil.which(name, path=ROOT / ".tools/bin") or shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed: make tools")
    return found
