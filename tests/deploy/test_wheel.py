"""The wheels of a release: the files of each, and that each works with nothing but its requirements."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from functools import cache
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from built_once import built_once
from deploy.installation import here, link, required
from deploy.released import FIRST, released
from plimsoll.version import __version__
from release import wheels

ROOT = Path(__file__).parents[2]
#: Folder and package of each distribution, by the name of its wheel.
HOLDS = {
    "dra_cel": ("cel", "dra_cel"),
    "plimsoll_core": ("core", "plimsoll"),
    "plimsoll_client": ("client", "plimsoll"),
    "plimsoll_optimal": ("optimal", "plimsoll_optimal"),
    "plimsoll": ("operator", "plimsoll"),
    "kubectl_plimsoll": ("kubectl", "plimsoll"),
    "plimsoll_testing": ("testing", "plimsoll"),
    "roadstead": ("devcluster/src", "roadstead"),
}
#: The version of each wheel.
VERSIONS = dict.fromkeys((*HOLDS, "plimsoll_demo"), __version__)
#: What the operator and the command line stand on.
BELOW = ("plimsoll_core", "plimsoll_client")


def released_wheel(name: str) -> Path:
    """A wheel of a release."""
    (found,) = (released() / FIRST).glob(f"{name}-*.whl")
    return found


@cache
def opened() -> Path:
    """The files of each wheel, in a folder of its name: what one test compiles there serves all others."""

    def build(folder: Path) -> None:
        for wheel in (released() / FIRST).glob("*.whl"):
            name = wheel.name.partition("-")[0]
            zipfile.ZipFile(wheel).extractall(folder / name)
            if name in HOLDS:
                lend_bytecode(ROOT / HOLDS[name][0], folder / name)

    return built_once("wheels", {"release": released().name.encode()}, build)


def lend_bytecode(sources: Path, opened: Path) -> None:
    """Copy what the interpreter has compiled of the same sources, whose times go with it."""
    for module in opened.rglob("*.py"):
        source = sources / module.relative_to(opened)
        compiled = Path(cache_from_source(str(source)))
        if compiled.exists() and source.read_bytes() == module.read_bytes():
            os.utime(module, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
            target = Path(cache_from_source(str(module)))
            target.parent.mkdir(exist_ok=True)
            shutil.copy2(compiled, target)


def unpacked(folder: Path, *names: str) -> Path:
    """A folder with nothing but these wheels and what they require, by links.

    Parts of a namespace are linked one by one, as several wheels have some.
    """
    for name in names:
        for top in (opened() / name).iterdir():
            is_namespace = top.is_dir() and top.suffix != ".dist-info" and not (top / "__init__.py").exists()
            for each in top.iterdir() if is_namespace else (top,):
                if each.name == "__pycache__":  # of the namespace: several wheels have modules there
                    continue
                target = folder / each.relative_to(opened() / name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(each)
    link(required([*metadata.distributions(path=[str(folder)])]), folder)
    return folder


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator, without the command line."""
    return unpacked(tmp_path_factory.mktemp("operator"), *BELOW, "plimsoll")


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command line, without the operator."""
    return unpacked(tmp_path_factory.mktemp("kubectl"), *BELOW, "kubectl_plimsoll")


def ran(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Python with the packages of a folder, where it keeps bytecode, and with no others."""
    return subprocess.run(
        [sys.executable, "-S", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""},
        check=False,
        capture_output=True,
        text=True,
    )


def said(folder: Path, *args: str) -> str:
    """What Python says that must succeed."""
    done = ran(folder, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def modules_of(name: str) -> set[str]:
    """The modules of a distribution's sources, as its wheel names them."""
    folder, package = HOLDS[name]
    return {str(path.relative_to(ROOT / folder)) for path in (ROOT / folder / package).rglob("*.py")}


@pytest.mark.parametrize("name", HOLDS)
def test_a_wheel_holds_its_folder_and_nothing_else(name: str) -> None:
    """Every module; the distributions share a namespace, and no file."""
    names = set(zipfile.ZipFile(released_wheel(name)).namelist())

    assert {each for each in names if each.endswith(".py")} == modules_of(name)
    assert {each.split("/")[0] for each in names} == {HOLDS[name][1], f"{name}-{__version__}.dist-info"}


def test_no_two_distributions_have_a_package_in_common() -> None:
    """Where one is installed without the other, nothing is half there."""
    packages = [{"/".join(path.split("/")[:2]) for path in modules_of(name)} for name in HOLDS]

    assert sum(map(len, packages)) == len(set().union(*packages))


def test_the_operator_runs_without_the_command_line(operator: Path) -> None:
    """And says where the other commands are."""
    assert said(operator, "-c", "import plimsoll.app as a; print(a.__file__)").startswith(str(operator))
    assert said(operator, "-m", "plimsoll", "version") == __version__
    assert "--kubeconfig" in said(operator, "-m", "plimsoll", "run", "--help")
    refused = ran(operator, "-m", "plimsoll", "explain", "pod", "web")
    assert refused.returncode == 1
    assert "come with kubectl-plimsoll" in refused.stderr


def test_the_operator_needs_no_templates(operator: Path) -> None:
    """Neither it nor what it requires names them."""
    wanted = {
        requirement.partition("=")[0].partition(">")[0]
        for name in (*BELOW, "plimsoll")
        for requirement in requirements(name)
    }

    assert not wanted & {"jinja2", "rich", "kubectl-plimsoll"}
    assert (
        "jinja2" not in said(operator, "-c", "import sys, plimsoll.app.process; print(*sys.modules)").split()
    )


def requirements(name: str) -> list[str]:
    """What a wheel requires without extras."""
    with zipfile.ZipFile(released_wheel(name)) as archive:
        text = archive.read(f"{name}-{VERSIONS[name]}.dist-info/METADATA")
    return [each for each in message_from_bytes(text).get_all("Requires-Dist", []) if "extra ==" not in each]


def shown_installations() -> dict[str, set[str]]:
    """The names of the wheels in each ``pip install dist/…`` of the README, by the line."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"pip install ([^`]*dist/(?:\{([^}]+)\}|(\w+))-\*\.whl[^`]*)`", text)
    return {line: {*(several or one).split(",")} for line, several, one in found}


@pytest.mark.parametrize("line", shown_installations())
def test_the_readme_names_all_wheels_of_ours_that_an_installation_requires(line: str) -> None:
    """None is looked for in an index, where a project of others may have its name."""
    named = shown_installations()[line]

    assert of_ours(*named) == named
    assert len(shown_installations()) >= 5


def of_ours(*names: str) -> set[str]:
    """These wheels of ours, and those that they require without extras, directly or not."""
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        found.add(name)
        wanted = {re.split(r"[=<>\[]", each)[0].replace("-", "_") for each in requirements(name)}
        waiting += (wanted & {*VERSIONS}) - found
    return found


def test_the_command_line_runs_without_the_operator(command_line: Path, tmp_path: Path) -> None:
    """`version`, `validate`, `crds --examples`; and says where `run` is."""
    assert said(command_line, "-m", "plimsoll", "version") == __version__
    examples = said(
        command_line, "-m", "plimsoll", "crds", "--examples", "-d", str(tmp_path / "written")
    ).split()
    assert {Path(each).name for each in examples} == {
        file.name for file in (ROOT / "examples").glob("*.yaml")
    }
    assert said(command_line, "-m", "plimsoll", "validate", str(tmp_path / "written/scheduler.yaml"))
    refused = ran(command_line, "-m", "plimsoll", "run")
    assert refused.returncode == 1
    assert "come with plimsoll" in refused.stderr


def test_authors_need_the_core_alone(tmp_path: Path) -> None:
    """A profile of the plugins in the tree is built from it."""
    folder = unpacked(tmp_path, "plimsoll_core")
    code = (
        "from plimsoll.engine.profile import ProfileConfig, build_profile\n"
        "from plimsoll.framework import Registry\n"
        "from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE\n"
        "from plimsoll.engine.profile import Enabled\n"
        "enabled = [Enabled(name) for name in DEFAULT_PLUGINS]\n"
        "print(build_profile(ProfileConfig('s'), Registry(IN_TREE), enabled).scheduler_name)"
    )

    assert said(folder, "-c", code) == "s"


#: The wheels of ours that a distribution stands on, and a program that does its first work.
FIRST_WORK = {
    "plimsoll": (BELOW, "import plimsoll.app.process, plimsoll.app.command"),
    "kubectl_plimsoll": (
        BELOW,
        (
            "from importlib import import_module\n"
            "from pkgutil import walk_packages\n"
            "for name in ('cli', 'inspection', 'migration', 'simulation', 'web_pages'):\n"
            "    package = import_module(f'plimsoll.{name}')\n"
            "    for each in walk_packages(package.__path__, f'{package.__name__}.'):\n"
            "        import_module(each.name)"
        ),
    ),
    "plimsoll_optimal": (("plimsoll_core",), "import plimsoll_optimal.planner, plimsoll_optimal.milp"),
    "plimsoll_testing": (BELOW, "import plimsoll.testing.conformance, plimsoll.testing.fakes"),
    "roadstead": (
        (),
        (
            "import asyncio\n"
            "from roadstead.cluster import DevCluster, simulated_nodes\n"
            "async def serve():\n"
            "    async with DevCluster(nodes=simulated_nodes(1), port=None):\n"
            "        pass\n"
            "asyncio.run(serve())"
        ),
    ),
}


#: Distributions that other tests have unpacked with what they stand on: what is compiled there serves both.
UNPACKED = {"plimsoll": "operator", "kubectl_plimsoll": "command_line"}


@pytest.mark.parametrize("name", FIRST_WORK)
def test_it_works_with_what_it_requires(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """And with nothing else: no test environment lends it a package."""
    below, code = FIRST_WORK[name]
    fixture = UNPACKED.get(name)
    folder: Path = request.getfixturevalue(fixture) if fixture else unpacked(tmp_path, *below, name)

    assert said(folder, "-c", code) == ""


def test_the_files_of_roadstead_s_readme_are_green(tmp_path: Path) -> None:
    """In an environment of roadstead[pytest], kopf and what these require."""
    readme = (ROOT / "devcluster/README.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", readme, re.DOTALL))
    assert set(files) == {"widgets.yaml", "widgets.py", "test_widgets.py", "test_resilience.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    unpacked(packages, "roadstead")
    (wheel,) = metadata.distributions(path=[str(packages)], name="roadstead")
    wanted = [each for each in map(Requirement, wheel.requires or ()) if "extra" in str(each.marker)]
    tools = [here(each) for each in (*wanted, Requirement("kopf"))]
    link([*tools, *required(tools)], packages)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}

    done = subprocess.run(
        [tmp_path / "venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=kept,
        check=False,
        capture_output=True,
        text=True,
    )

    assert "10 passed" in done.stdout, done.stdout + done.stderr


def test_a_package_that_is_not_required_is_missing(tmp_path: Path) -> None:
    """Although the environment of these tests has it."""
    assert "No module named 'kopf'" in ran(unpacked(tmp_path, "plimsoll_core"), "-c", "import kopf").stderr


def test_selectors_are_evaluated_without_plimsoll(tmp_path: Path) -> None:
    """By the wheel of the evaluator alone; the core alone names it."""
    evaluates = (
        "import sys\n"
        "from dra_cel import DeviceView, selector\n"
        "device = DeviceView('gpu.example.com', {'model': 'a100'}, {'memory': '80Gi'})\n"
        "print(selector('device.capacity[device.driver].memory == quantity(\"80Gi\")').matches(device))\n"
        "print(*[each for each in sys.modules if each.startswith(('plimsoll', 'roadstead'))])"
    )
    asks = (
        "from plimsoll.devices.pools import PooledDevice\n"
        "from plimsoll.devices.selectors import answer_of\n"
        "from plimsoll.model.kinds.resource_slice import Device, ResourceSlice\n"
        "print(answer_of('true', PooledDevice(ResourceSlice(), Device(), is_reached=True)).error)"
    )
    core = unpacked(tmp_path / "core", "plimsoll_core")

    assert said(unpacked(tmp_path / "cel", "dra_cel"), "-c", evaluates) == "True"
    assert said(core, "-c", asks).endswith("dra-cel, which is not installed: install plimsoll[devices]")
    assert said(unpacked(core, "dra_cel"), "-c", asks) == ""


def test_the_demo_is_a_package_of_its_own(tmp_path: Path) -> None:
    """Found by ``plimsoll demo`` where both are installed, with the policies of the command line's wheel."""
    together = unpacked(tmp_path, *BELOW, "plimsoll", "kubectl_plimsoll", "plimsoll_demo", "roadstead")
    code = (
        "from plimsoll_demo.__main__ import examples, main\n"
        "print(examples().joinpath('scheduler.yaml').is_file())"
    )
    modules = {file.name for file in (together / "plimsoll_demo").glob("*.py")}

    assert said(together, "-c", code) == "True"
    assert modules == {file.name for file in (ROOT / "examples/demo").glob("*.py")}


@pytest.mark.parametrize("project", [each for each in wheels.PROJECTS if each != "."])
def test_every_project_is_built_as_the_operator_is(project: str) -> None:
    """pip, which asks the project how it is built, builds the operator for the image."""
    systems = [
        tomllib.loads((ROOT / each / "pyproject.toml").read_text())["build-system"] for each in (project, ".")
    ]

    assert systems[0] == systems[1]


def test_distributions_require_one_another_in_their_own_version() -> None:
    """All are released together."""
    for project in (each for each in wheels.PROJECTS if each != "devcluster"):
        stated = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
        extras = stated.get("optional-dependencies", {}).values()
        wanted = [*stated["dependencies"], *(each for extra in extras for each in extra)]
        ours = [each for each in wanted if each.startswith(("dra-cel", "plimsoll", "kubectl-plimsoll"))]

        assert stated["version"] == __version__
        assert all(each.endswith(f"=={__version__}") for each in ours), ours
