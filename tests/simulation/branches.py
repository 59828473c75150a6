"""Measures which branches of the operator simulated seeds reach, and lists those that none does.

A branch is an exit of a line that has several, as coverage.py counts them, in modules of which a seed reaches
anything at all: commands, pages and parts that are not built here have none. Runs that are drawn toward what
is left come after the seeds (:mod:`simulation.drawn_plans`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import coverage

from coverage_map import lines_of_functions
from distributions import PRODUCT, package_of
from simulation.run import Plan, simulated

ROOT = Path(__file__).parents[2]


class Line(NamedTuple):
    """A line with several exits.

    Attributes:
        path: The module, seen from the root of the repository.
        exits: How many it has.
        taken: How many of these any seed has taken.
    """

    path: str
    number: int
    text: str
    exits: int
    taken: int


class Branches:
    """What runs have reached so far.

    Args:
        folder: Of the measurements.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found = _measurement(folder / "all")
        self._exits: dict[str, dict[int, int]] = {}
        self._files = 0

    def runs(self, plans: Sequence[Plan], jobs: int) -> Iterator[tuple[Plan, list[str], list[str]]]:
        """Make runs; each with its violations, and what it has reached first, as ``module:line``."""
        begin = self._files
        self._files += len(plans)
        files = [self._folder / f"run-{number}" for number in range(begin, self._files)]
        with ProcessPoolExecutor(jobs) as pool:
            for plan, file, violations in zip(plans, files, pool.map(_run, files, plans), strict=True):
                yield plan, violations, self._taken(file)

    def _taken(self, file: Path) -> list[str]:
        run, all_runs = coverage.CoverageData(str(file)), self._found.get_data()
        run.read()
        news = {
            path: set(run.arcs(path) or ()).difference(all_runs.arcs(path) or ())
            for path in run.measured_files()
        }
        all_runs.update(run)
        file.unlink()
        return [
            f"{_seen(path)}:{line}"
            for path in sorted(news)
            for line in sorted({line for line, _ in news[path]} & self._of_several(path))
        ]

    def _of_several(self, path: str) -> set[int]:
        """The lines of functions of a module with several exits."""
        if path not in self._exits:
            text = Path(path).read_text(encoding="utf-8")
            within = lines_of_functions(text)
            stats = self._found.branch_stats(path)
            self._exits[path] = {number: exits for number, (exits, _) in stats.items() if number in within}
        return set(self._exits[path])

    def lines(self) -> list[Line]:
        """Those with several exits, by module and number."""
        return list(_lines(self._found, sorted(self._found.get_data().measured_files())))


def _seen(path: str) -> str:
    return Path(path).relative_to(ROOT).as_posix()


def _measurement(file: Path) -> coverage.Coverage:
    include = [f"{ROOT / folder}/*" for folder in PRODUCT]
    return coverage.Coverage(
        data_file=str(file), branch=True, config_file=False, include=include, messages=False
    )


def _run(file: Path, plan: Plan) -> list[str]:
    measurement = _measurement(file)
    measurement.start()
    try:
        return simulated(plan).violations
    finally:
        measurement.stop()
        measurement.save()


def _lines(found: coverage.Coverage, files: Iterable[str]) -> Iterator[Line]:
    for file in files:
        text = Path(file).read_text(encoding="utf-8")
        within, lines = lines_of_functions(text), text.splitlines()
        for number, (exits, taken) in sorted(found.branch_stats(file).items()):
            if number in within:
                yield Line(_seen(file), number, lines[number - 1].strip(), exits, taken)


def report(lines: Iterable[Line]) -> Iterator[str]:
    """A table by package, the least reached first, and each line with an exit that no seed takes."""
    by_package: dict[str, list[Line]] = defaultdict(list)
    for each in lines:
        by_package[package_of(each.path)].append(each)

    def percent(package: str) -> float:
        return 100 * sum(each.taken for each in by_package[package]) / sum(_exits(by_package[package]))

    yield "| Package | Branches | Reached by a seed |"
    yield "| --- | ---: | ---: |"
    for package in sorted(by_package, key=lambda name: (percent(name), name)):
        yield f"| {package} | {sum(_exits(by_package[package]))} | {percent(package):.0f} % |"
    yield ""
    for package in sorted(by_package, key=lambda name: (percent(name), name)):
        for each in by_package[package]:
            if each.taken < each.exits:
                yield f"{each.path}:{each.number}: {each.taken} of {each.exits}: {each.text}"


def _exits(lines: Iterable[Line]) -> list[int]:
    return [each.exits for each in lines]
