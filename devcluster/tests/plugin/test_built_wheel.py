"""The README's project, outside of the checkout, with roadstead installed from its wheel."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import roadstead

ROOT = Path(__file__).parents[2]

#: Seconds of processor time that the project may take: environment, installation, cluster, kubectl, operator.
PROCESSOR_S = 10.0

pytestmark = [
    pytest.mark.slow,  # builds and installs a wheel
    pytest.mark.timeout(900),
]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a program prints; it finds kubectl, and nothing of this environment by variables."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-8000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without an index."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation")
    run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("roadstead-*.whl")
    return built


def processor_s() -> float:
    """Seconds of processor time of all processes that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_readme_s_project_runs_with_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """A new environment, three files, the fixture, kubectl and a kopf operator, within the processor time."""
    home, project = tmp_path / "venv", tmp_path / "project"
    project.mkdir()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", readme, re.DOTALL))
    assert set(files) == {"widgets.yaml", "widgets.py", "test_widgets.py"}
    for name, text in files.items():
        (project / name).write_text(text)
    before = processor_s()

    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin" / "python"
    (packages,) = (home / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile")
    run(sys.executable, "-m", "pip", "--python", str(python), "install", *options, wheel)
    said = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    took_s = processor_s() - before

    assert "2 passed" in said
    assert run(home / "bin" / "roadstead", "--version").strip() == roadstead.__version__
    where = run(python, "-c", "import roadstead; print(roadstead.__file__)").strip()
    assert Path(where).is_relative_to(packages)
    assert took_s < PROCESSOR_S


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every module, the typing marker, no tests."""
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/roadstead").rglob("*.py")}

    assert modules <= names
    assert "roadstead/py.typed" in names
    metadata = f"roadstead-{roadstead.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"roadstead", metadata}
    assert b"plimsoll" not in zipfile.ZipFile(wheel).read(f"{metadata}/METADATA").lower()
