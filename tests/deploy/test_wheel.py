"""The wheels of Plimsoll, plimsoll-testing and plimsoll-demo: those of a release, run elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import plimsoll
from deploy.released import FIRST, released
from release import wheels

ROOT = Path(__file__).parents[2]


def released_wheel(name: str) -> Path:
    """A wheel of a release."""
    (found,) = (released() / FIRST).glob(f"{name}-*.whl")
    return found


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The operator's wheel."""
    return released_wheel("plimsoll")


@pytest.fixture(scope="module")
def testing_wheel() -> Path:
    """The wheel that the extra ``testing`` brings."""
    return released_wheel("plimsoll_testing")


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the operator's wheel."""
    folder = tmp_path_factory.mktemp("alone")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture(scope="module")
def together(alone: Path, testing_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all three wheels."""
    folder = tmp_path_factory.mktemp("together")
    (folder / "plimsoll").mkdir()
    for path in (*alone.glob("*-*"), *alone.glob("plimsoll/[!_]*"), *alone.glob("plimsoll/*.py")):
        (folder / path.relative_to(alone)).symlink_to(path)
    for each in (testing_wheel, released_wheel("plimsoll_demo")):
        zipfile.ZipFile(each).extractall(folder)
    return folder


def said(folder: Path, *args: str) -> str:
    """What Python says with the packages of a folder alone, where it keeps bytecode."""
    done = subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_the_wheel_runs_from_a_folder_of_its_own(alone: Path, tmp_path: Path) -> None:
    """`plimsoll version`, `plimsoll run --help`, `plimsoll crds --examples`."""
    assert said(alone, "-c", "import plimsoll; print(plimsoll.__file__)").startswith(str(alone))
    assert said(alone, "-m", "plimsoll", "version") == plimsoll.__version__
    assert "--kubeconfig" in said(alone, "-m", "plimsoll", "run", "--help")
    examples = said(alone, "-m", "plimsoll", "crds", "--examples", "-d", str(tmp_path / "written")).split()
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


def test_the_other_wheel_holds_what_authors_test_with(together: Path, testing_wheel: Path) -> None:
    """One folder, which is importable where both are installed."""
    names = zipfile.ZipFile(testing_wheel).namelist()

    assert {name for name in names if name.endswith(".py")} == modules_of("plimsoll/testing")
    file = said(together, "-c", "import plimsoll.testing.conformance as laws; print(laws.__file__)")
    assert file.startswith(str(together))


def test_the_demo_is_a_package_of_its_own(together: Path) -> None:
    """Found by ``plimsoll demo`` where both are installed, with the policies of the operator's wheel."""
    code = (
        "from plimsoll_demo.__main__ import examples, main\n"
        "print(examples().joinpath('scheduler.yaml').is_file())"
    )
    modules = {file.name for file in (together / "plimsoll_demo").iterdir()}

    assert said(together, "-c", code) == "True"
    assert modules == {file.name for file in (ROOT / "examples/demo").glob("*.py")}


@pytest.mark.parametrize("project", [each for each in wheels.PROJECTS if each != "."])
def test_every_project_is_built_as_the_operator_is(project: str) -> None:
    """pip, which asks the project how it is built, builds the operator for the image."""
    systems = [
        tomllib.loads((ROOT / each / "pyproject.toml").read_text())["build-system"] for each in (project, ".")
    ]

    assert systems[0] == systems[1]


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
