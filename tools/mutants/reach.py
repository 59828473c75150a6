"""Measures the lines that each test reaches, and its cost, and keeps both.

Each test file runs in a process forked from the one that has collected it, under coverage.py, and is
measured again when it has changed or a module that it reached. What a fixture of more than one test does
counts for all tests of its file that use it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import resource
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage
import pytest

import distributions
from coverage_map import lines_of_functions

#: The context of what belongs to all tests of a file.
SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Reached:
    """What one test reaches.

    Attributes:
        cost_s: Seconds of processor time.
        lines: A bit for each line of each module, by its path.
    """

    cost_s: float
    lines: dict[str, int]


@dataclass(slots=True)
class Reach:
    """What is known of all tests.

    Args:
        root: The repository.
        folder: Where it is kept; a file for each test file.
    """

    root: Path
    folder: Path
    _digests: dict[str, str] = field(default_factory=dict)
    _known: dict[str, dict[str, Reached]] = field(default_factory=dict)
    _lines: dict[str, set[int]] = field(default_factory=dict)

    def of(self, test_file: str) -> dict[str, Reached]:
        """The tests of a file that pass, by name; empty if it is not measured."""
        if test_file not in self._known:
            self._known[test_file] = self._read(test_file)
        return self._known[test_file]

    def is_fresh(self, test_file: str) -> bool:
        """Whether neither a file nor a module that it reached has changed since."""
        path = self._path(test_file)
        if not path.exists():
            return False
        digests: dict[str, str] = json.loads(gzip.decompress(path.read_bytes()))["digests"]
        return all(self._digest(each) == digest for each, digest in digests.items())

    def read_modules(self) -> None:
        """Read all modules of the product once, before forks read them again for each test file."""
        for each in distributions.modules(self.root):
            path = each.relative_to(self.root).as_posix()
            self._digest(path)
            self._within(path)

    def keep(self, test_file: str, tests: dict[str, tuple[float, dict[str, list[int]]]]) -> None:
        """Keep what was measured: the cost of each test and the lines that it ran."""
        modules = sorted({each for _, lines in tests.values() for each in lines})
        places = {each: place for place, each in enumerate(modules)}
        within = {each: self._within(each) for each in modules}
        kept = {
            "digests": {each: self._digest(each) for each in (test_file, *modules)},
            "modules": modules,
            "tests": {
                name: [
                    cost,
                    {
                        places[each]: hex(sum(1 << line for line in set(run) & within[each]))
                        for each, run in lines.items()
                    },
                ]
                for name, (cost, lines) in tests.items()
            },
        }
        path = self._path(test_file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps(kept).encode(), 1))
        self._known.pop(test_file, None)

    def _read(self, test_file: str) -> dict[str, Reached]:
        path = self._path(test_file)
        if not path.exists():
            return {}
        kept = json.loads(gzip.decompress(path.read_bytes()))
        return {
            name: Reached(cost, {kept["modules"][int(place)]: int(bits, 16) for place, bits in lines.items()})
            for name, (cost, lines) in kept["tests"].items()
        }

    def _path(self, test_file: str) -> Path:
        return self.folder / f"{test_file}.json.gz"

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            file = self.root / path
            self._digests[path] = hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else ""
        return self._digests[path]

    def _within(self, path: str) -> set[int]:
        if path not in self._lines:
            text = (self.root / path).read_text(encoding="utf-8")
            with contextlib.suppress(SyntaxError):
                self._lines[path] = lines_of_functions(text)
        return self._lines.get(path, set())


class Recorder:
    """A plugin of pytest in the process that runs one test file under coverage.py."""

    def __init__(self, root: Path, items: Iterable[pytest.Item]) -> None:
        self._root, self._items = root, [*items]
        product = [f"{root / each}/*" for each in distributions.FOLDERS]
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=product, messages=False)
        self._coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self._contexts: list[str] = []
        self._costs: dict[str, float] = {}
        self._failed: set[str] = set()
        self._sharing: set[str] = set()

    def start(self) -> None:
        """Begin to measure."""
        self._coverage.start()

    def tests(self) -> dict[str, tuple[float, dict[str, list[int]]]]:
        """What was measured, of the tests that passed."""
        self._coverage.stop()
        data = self._coverage.get_data()
        files = [each for each in data.measured_files() if Path(each).is_relative_to(self._root)]
        known = data.measured_contexts()
        shared = self._lines(data, files, SHARED) if SHARED in known else {}
        found = {}
        for name, cost in self._costs.items():
            if name not in self._failed:
                lines = self._lines(data, files, name) if name in known else {}
                if name in self._sharing:
                    lines = {
                        each: [*lines.get(each, ()), *shared.get(each, ())] for each in {**lines, **shared}
                    }
                found[name] = (cost, lines)
        return found

    def _lines(self, data: Any, files: Iterable[str], context: str) -> dict[str, list[int]]:
        data.set_query_context(context)
        return {
            Path(each).relative_to(self._root).as_posix(): lines
            for each in files
            if (lines := data.lines(each))
        }

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Measure a test."""
        self._contexts = [item.nodeid]
        self._coverage.switch_context(item.nodeid)
        before = _spent_s()
        result = yield
        self._costs[item.nodeid] = round(_spent_s() - before, 4)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Measure a fixture that other tests use, too, as one of all."""
        if fixturedef.scope == "function":
            return (yield)
        for each in self._items:
            if fixturedef.argname in getattr(each, "fixturenames", ()):
                self._sharing.add(each.nodeid)
        self._contexts.append(SHARED)
        self._coverage.switch_context(SHARED)
        try:
            return (yield)
        finally:
            self._contexts.pop()
            self._coverage.switch_context(self._contexts[-1])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that fails."""
        if report.outcome == "failed":
            self._failed.add(report.nodeid)


def _spent_s() -> float:
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
