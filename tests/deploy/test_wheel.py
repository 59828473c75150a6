"""The wheel: built from this checkout, run from a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import plimsoll

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plimsoll's wheel, built from this checkout with the locked build tools."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-index", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("plimsoll-*.whl")
    return built


def test_the_wheel_runs_from_a_folder_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """`plimsoll version` and `plimsoll run --help`, with nothing of the checkout in sight."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def said(*args: str) -> str:
        done = subprocess.run(
            [sys.executable, *args],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    assert said("-c", "import plimsoll; print(plimsoll.__file__)").startswith(str(tmp_path))
    assert said("-m", "plimsoll", "version") == plimsoll.__version__
    assert "--kubeconfig" in said("-m", "plimsoll", "run", "--help")


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every module, the typing marker, no tests."""
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {
        str(path.relative_to(ROOT / "operator")) for path in (ROOT / "operator/plimsoll").rglob("*.py")
    }

    assert modules <= names
    assert "plimsoll/py.typed" in names
    assert {name.split("/")[0] for name in names} == {
        "plimsoll",
        f"plimsoll-{plimsoll.__version__}.dist-info",
    }
