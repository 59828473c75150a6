"""The wheels of Plimsoll, plimsoll-testing and plimsoll-demo: built from this checkout, run elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import plimsoll

ROOT = Path(__file__).parents[2]


def built(project: Path, folder: Path) -> Path:
    """A project's wheel, built with the locked build tools."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-index", "--no-build-isolation", "--wheel-dir", str(folder), str(project)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's wheel."""
    return built(ROOT, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="module")
def testing_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the extra ``testing`` brings."""
    return built(ROOT / "operator/plimsoll-testing", tmp_path_factory.mktemp("testing"))


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
    examples = said("-m", "plimsoll", "crds", "--examples", "-d", str(tmp_path / "written")).split()
    assert {Path(each).name for each in examples} == {
        file.name for file in (ROOT / "examples").glob("*.yaml")
    }


def modules_of(folder: str) -> set[str]:
    """The modules below a folder of the operator's sources, as a wheel names them."""
    return {str(path.relative_to(ROOT / "operator")) for path in (ROOT / "operator" / folder).rglob("*.py")}


def test_the_wheel_holds_the_operator_and_nothing_else(wheel: Path) -> None:
    """Every module and the typing marker; neither testing nor the demo nor the development cluster."""
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {name for name in names if name.endswith(".py")}

    assert modules == modules_of("plimsoll") - modules_of("plimsoll/testing")
    assert modules_of("plimsoll/testing")
    assert "plimsoll/py.typed" in names
    assert not {
        name for name in names if {"testing", "demo", "devcluster", "roadstead"} & set(name.split("/"))
    }
    assert {name.split("/")[0] for name in names} == {
        "plimsoll",
        f"plimsoll-{plimsoll.__version__}.dist-info",
    }


def test_the_other_wheel_holds_what_authors_test_with(
    wheel: Path, testing_wheel: Path, tmp_path: Path
) -> None:
    """One folder, which is importable where both are installed."""
    names = zipfile.ZipFile(testing_wheel).namelist()
    for each in (wheel, testing_wheel):
        zipfile.ZipFile(each).extractall(tmp_path)
    code = "import plimsoll.testing.conformance as laws; print(laws.__file__)"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )

    assert {name for name in names if name.endswith(".py")} == modules_of("plimsoll/testing")
    assert done.stdout.startswith(str(tmp_path))


def test_the_demo_is_a_package_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """Found by ``plimsoll demo`` where both are installed, with the policies of the operator's wheel."""
    for each in (wheel, built(ROOT / "examples/demo", tmp_path)):
        zipfile.ZipFile(each).extractall(tmp_path / "both")
    code = (
        "from plimsoll_demo.__main__ import examples, main\n"
        "print(examples().joinpath('scheduler.yaml').is_file())"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "both"), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout == "True\n"
    modules = {file.name for file in (tmp_path / "both/plimsoll_demo").iterdir()}
    assert modules == {file.name for file in (ROOT / "examples/demo").glob("*.py")}


def test_the_extras_are_what_the_pages_say() -> None:
    """The solver, and testing in the version of the operator itself, which it requires in turn."""
    operator = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    testing = tomllib.loads((ROOT / "operator/plimsoll-testing/pyproject.toml").read_text())["project"]

    assert operator["optional-dependencies"]["testing"] == [f"plimsoll-testing=={plimsoll.__version__}"]
    demo = tomllib.loads((ROOT / "examples/demo/pyproject.toml").read_text())["project"]
    assert operator["optional-dependencies"]["demo"] == [f"plimsoll-demo=={plimsoll.__version__}"]
    for extra in (testing, demo):
        assert f"plimsoll=={plimsoll.__version__}" in extra["dependencies"]
    assert [name.split(">")[0] for name in operator["optional-dependencies"]["optimal"]] == ["highspy"]
    assert not any(name.startswith("highspy") for name in operator["dependencies"])
