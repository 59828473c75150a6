"""Runs the checker's unit tests against each mutant of the checker: ``make mutants PACKAGE=checker``.

Each mutant gets a process of its own, forked from one that has imported what the tests need.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mutation.mutants import Mutant, mutants
from mutation.plain_tests import calls

ROOT = Path(__file__).parents[2]
PROMISES = ROOT / "tests" / "promises"
EXPECTED = Path(__file__).with_name("survivors.txt")

#: Seconds after which a mutant that does not end counts as found.
PATIENCE_S = 60

#: Tests that find most mutants of a module whose name is not theirs; they come first.
NEAR = {
    "conditions": "reports",
    "lives": "records",
    "policies": "protections",
    "record_book": "records",
    "rest": "reports",
    "selectors": "moments",
    "statuses": "reports",
    "view": "placement",
    "volumes": "placement",
}


@dataclass(slots=True)
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module as the mutant has it."""

    name: str
    mutant: Mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """That of the one module."""
        return importlib.util.spec_from_loader(fullname, self) if fullname == self.name else None

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the mutant's code."""
        exec(compile(self.mutant.tree, f"<{self.name}>", "exec"), module.__dict__)


@dataclass(slots=True)
class Hunt:
    """Mutants under test, and what has become of them."""

    jobs: int
    running: dict[int, tuple[str, Mutant]] = field(default_factory=dict)
    killed: int = 0
    survivors: list[str] = field(default_factory=list)

    def run(self, found: Iterable[tuple[str, Mutant]]) -> None:
        """Try all."""
        for name, mutant in found:
            if len(self.running) >= self.jobs:
                self._wait()
            child = os.fork()
            if child == 0:
                _try(name, mutant)
            self.running[child] = (name, mutant)
        while self.running:
            self._wait()

    def _wait(self) -> None:
        child, status = os.wait()
        name, mutant = self.running.pop(child)
        if status:
            self.killed += 1
            return
        self.survivors.append(f"{name}: {mutant.change}")
        print(f"survives: {name}:{mutant.line}: {mutant.change}", flush=True)


def _try(name: str, mutant: Mutant) -> None:
    """Run the tests in this process, which ends; status 0 is for a mutant that no test finds."""
    signal.alarm(PATIENCE_S)
    _forget()
    sys.meta_path.insert(0, Finder(name, mutant))
    os._exit(not _passes(name.rpartition(".")[2]))


def _passes(stem: str) -> bool:
    """Whether all tests pass, the nearest to a module first."""
    near = f"test_{NEAR.get(stem, stem)}"
    paths = sorted(PROMISES.glob("test_*.py"), key=lambda path: (path.stem != near, path.stem))
    try:
        for path in paths:
            for call in calls(importlib.import_module(f"promises.{path.stem}")):
                call()
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - however a test fails
        return False
    return True


def _forget() -> None:
    """Import the checker and its tests afresh."""
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(PROMISES)):
            del sys.modules[name]


def expected() -> set[str]:
    """Survivors that are explained: a line each, comments between them."""
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def main() -> int:
    """Report what was killed and what survived; the exit status."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", help="names of modules of the checker; all, unless given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    os.chdir(ROOT)
    if not _passes(""):
        print("the tests fail without any mutant")
        return 1
    sources = [path for path in sorted(PROMISES.glob("*.py")) if not path.name.startswith("test_")]
    wanted = [path for path in sources if path.stem in (given.modules or (path.stem,))]
    hunt = Hunt(given.jobs)
    hunt.run(
        (f"promises.{path.stem}", mutant)
        for path in wanted
        if path.stem != "streams"
        for mutant in mutants(path.read_text(encoding="utf-8"))
    )
    known = expected()
    new = [each for each in hunt.survivors if each not in known]
    gone = known - set(hunt.survivors) if not given.modules else set()
    print(f"{hunt.killed} mutants killed, {len(hunt.survivors)} survive, {len(new)} of these unexplained")
    for each in sorted(gone):
        print(f"explained, but killed or gone: {each}")
    return bool(new or gone)


if __name__ == "__main__":
    sys.exit(main())
