"""Runs each distribution's own tests with its wheel, and with nothing else of this repository.

A test file belongs to the distribution that stands highest among those which it imports, directly or through
modules of the tests. It is run where that distribution's wheel is installed with what the wheel requires, and
with the tests' tools: pytest and its plugins, ``plimsoll-testing`` and ``roadstead`` where its distribution's
tests import them. A file that imports two distributions of which neither stands on the other (the command
line and the operator, say) tests how they meet, so it belongs to none; so does one that imports no
distribution, since it reads files of this repository. ``make test`` runs all of them.

Third-party packages are linked from the environment that runs this, whose hashes pip has compared; a package
that a wheel does not require is missing there, and an import of it fails::

    make suites            # all distributions
    make suites ONLY=core
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from affected_tests import imports_of, is_test, module_of
from deploy.installation import here, link, required
from distributions import ROOT
from release import wheels

#: The folder of each distribution's modules, and the distributions that it requires.
STANDS_ON = {
    "dra-cel": ("cel", ()),
    "plimsoll-core": ("core", ("dra-cel",)),  # with its extra ``devices``
    "plimsoll-client": ("client", ("plimsoll-core",)),
    "plimsoll-optimal": ("optimal", ("plimsoll-core",)),
    "plimsoll": ("operator", ("plimsoll-client",)),
    "kubectl-plimsoll": ("kubectl", ("plimsoll-client",)),
    "roadstead": ("devcluster/src", ()),
}
#: Distributions that are tools of tests, and what they bring.
TOOLS = {"plimsoll-testing": ("testing", ("plimsoll-client",)), "roadstead": ("devcluster/src", ())}
#: What the plugins of these tests import.
PLUGINS = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "sybil", "pyyaml")
#: What no wheel has: how the wheels are built.
CHECKOUT = "the checkout"
#: Tests of the repository as a whole: its releases, pages, tools and structure.
OF_THE_CHECKOUT = ("tests/deploy/", "tests/docs/", "tests/structure/", "tests/testing/", "tests/tools/")
#: Tests that need all verbs, `run` or the solver, and import none of them.
MEETINGS = (
    "tests/cli/test_page.py",
    "tests/cli/test_starts.py",
    "tests/planning/test_zoo_plans.py",
    "tests/rebalancing/test_forked_plans.py",
)
#: What modules of tests need though they do not import it: commands, and a planner found by its entry point.
BY_WORDS = {"cli.commands": "kubectl-plimsoll", "CliRunner": "kubectl-plimsoll"} | dict.fromkeys(
    ("OPTIMAL", '"Optimal"', '"planner", Planner', "planner in Planner", "Planner]"), "plimsoll-optimal"
)
#: Where the modules of tests are imported from; as in pyproject.toml, without the product.
SUPPORT = ("tests", "devcluster/tests", "tools", "benchmarks/load", "examples", "examples/sample-plugin/src")


def folders() -> dict[str, str]:
    """The distribution that has each folder of modules."""
    return {folder: name for name, (folder, _) in {**STANDS_ON, **TOOLS}.items()}


def requirers() -> dict[str, list[str]]:
    """The distributions of this repository that require each package of others, the lowest first.

    Where none does, the package's own distribution: a tool of tests.
    """
    found: dict[str, list[str]] = {}
    for package, owners in metadata.packages_distributions().items():
        named = set(map(canonicalize_name, owners))
        for name in {**STANDS_ON, **TOOLS} if named.isdisjoint(PLUGINS) else ():
            requires = map(Requirement, metadata.distribution(name).requires or ())
            if named.intersection(canonicalize_name(each.name) for each in requires):
                found.setdefault(package, []).append(name)
        if package not in found and named.isdisjoint({*PLUGINS, *STANDS_ON, *TOOLS}):
            found[package] = owners
    return found


def all_below(name: str) -> set[str]:
    """A distribution with all those that it stands on."""
    _, below = {**STANDS_ON, **TOOLS}[name]
    return {name}.union(*map(all_below, below))


class Imports:
    """Which distributions each test file reaches through its imports."""

    def __init__(self, files: Iterable[str]) -> None:
        modules = [each for each in files if each.endswith(".py")]
        self._file_of = {module_of(each): each for each in modules}
        self._owner_of = folders()
        self._requirers = requirers()

    def owner(self, file: str) -> str | None:
        """The distribution to which a module belongs, or the checkout; None for a module of tests."""
        for folder, name in self._owner_of.items():
            if file.startswith(f"{folder}/"):
                return name if "/" in file.removeprefix(f"{folder}/") else CHECKOUT
        return None

    def reached(self, test: str) -> set[str]:
        """The distributions that a test file needs, with those of its fixtures; not what these stand on."""
        found, packages, known = set[str](), set[str](), STANDS_ON.keys() | TOOLS.keys()
        found.update(["kubectl-plimsoll"] if test.startswith("tests/cli/") else [])
        waiting, seen = [test, *self._fixtures(test)], set[str]()
        while waiting:
            file = waiting.pop()
            if file in seen:
                continue
            seen.add(file)
            if owner := self.owner(file):
                found.add(owner)
                continue
            names = imports_of(ROOT / file)
            text = (ROOT / file).read_text(encoding="utf-8")
            found.update(needed for word, needed in BY_WORDS.items() if word in text)
            waiting += [self._file_of[name] for name in names if name in self._file_of]
            packages |= {name.partition(".")[0] for name in names}
        installed = set[str]().union(*(all_below(each) for each in found & known))
        for those in (self._requirers[each] for each in packages if each in self._requirers):
            if installed.isdisjoint(those):
                found.add(those[0])
        return found

    def _fixtures(self, test: str) -> Iterator[str]:
        for folder in Path(test).parents:
            file = str(folder / "conftest.py")
            if folder != Path() and file in self._file_of.values() and file != "tests/conftest.py":
                yield file


def home(reached: set[str]) -> str | None:
    """The distribution to which a test belongs that reaches some; None where it tests how several meet."""
    named = reached & STANDS_ON.keys() if CHECKOUT not in reached else set()
    subjects = named - {"roadstead"} or named
    order = TopologicalSorter({name: set(below) for name, (_, below) in STANDS_ON.items()}).static_order()
    highest = [name for name in order if name in subjects][-1:]
    return highest[0] if highest and subjects <= all_below(highest[0]) else None


def suites(files: Iterable[str]) -> dict[str, tuple[list[str], set[str]]]:
    """The test files of each distribution, and the tools that they import."""
    files = list(files)
    imports = Imports(files)
    found: dict[str, tuple[list[str], set[str]]] = {name: ([], set()) for name in STANDS_ON}
    for test in (
        each for each in files if is_test(each) and not each.startswith((*OF_THE_CHECKOUT, *MEETINGS))
    ):
        reached = imports.reached(test)
        if name := home(reached):
            found[name][0].append(test)
            found[name][1].update(reached - STANDS_ON.keys() | reached & TOOLS.keys() - {name})
    return found


def install(name: str, with_tools: Iterable[str], built: Path, folder: Path) -> None:
    """Make an environment that has a distribution, what it requires, and the tools of its tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)  # noqa: S603 - this interpreter
    (packages,) = (folder / "lib").glob("python*/site-packages")
    with_tools = set(with_tools)
    for each in set().union(*map(all_below, (name, *(with_tools & TOOLS.keys())))):
        (wheel,) = built.glob(f"{each.replace('-', '_')}-*.whl")
        zipfile.ZipFile(wheel).extractall(packages)
    tools = [here(Requirement(each)) for each in (*PLUGINS, *(with_tools - TOOLS.keys()))]
    link([*tools, *required([*metadata.distributions(path=[str(packages)]), *tools])], packages)


def run(name: str, tests: list[str], environment: Path, arguments: list[str]) -> int:
    """Run tests in an environment; pytest's exit code."""
    sys.stdout.write(f"\n{name}: {len(tests)} test files\n")
    sys.stdout.flush()
    command = [str(environment / "bin/python"), "-m", "pytest", "-q", "-o", f"pythonpath={' '.join(SUPPORT)}"]
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([*command, *arguments, *tests], cwd=ROOT, env=kept, check=False).returncode  # noqa: S603 - the environment just made


def main() -> int:
    """Build the wheels, and run the suites."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=STANDS_ON, help="a distribution; may be repeated")
    options, arguments = parser.parse_known_args()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - git is the user's
    found = suites(listed.stdout.splitlines())
    with tempfile.TemporaryDirectory() as place:
        built = Path(place) / "wheels"
        built.mkdir()
        wheels.build(ROOT, built, epoch_s=0)
        codes = {}
        for name in options.only or STANDS_ON:
            tests, with_tools = found[name]
            install(name, with_tools, built, Path(place) / name)
            codes[name] = run(name, tests, Path(place) / name, arguments)
    failed = [name for name, code in codes.items() if code]
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "all suites passed\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
