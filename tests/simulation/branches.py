"""Measures which branches of the operator simulated seeds reach, and lists those that none does.

A branch is an exit of a line that has several, as coverage.py counts them, in modules of which a seed reaches
anything at all: commands, pages and parts that are not built here have none.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
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


def measured(plans: Sequence[Plan], jobs: int) -> list[Line]:
    """The lines with several exits, by module and number, after these runs."""
    with tempfile.TemporaryDirectory(prefix="branches-") as folder:
        file = Path(folder) / "coverage"
        with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
            for _ in pool.map(partial(_run, file), plans):
                pass
        found = _measurement(file)
        found.combine([folder])
        return list(_lines(found, sorted(found.get_data().measured_files())))


def _measurement(file: Path, *, suffix: bool = False) -> coverage.Coverage:
    include = [f"{ROOT / folder}/*" for folder in PRODUCT]
    return coverage.Coverage(
        data_file=str(file),
        data_suffix=suffix,
        branch=True,
        config_file=False,
        include=include,
        messages=False,
    )


def _run(file: Path, plan: Plan) -> None:
    measurement = _measurement(file, suffix=True)
    measurement.start()
    try:
        simulated(plan)
    finally:
        measurement.stop()
        measurement.save()


def _lines(found: coverage.Coverage, files: Iterable[str]) -> Iterator[Line]:
    for file in files:
        text = Path(file).read_text(encoding="utf-8")
        within, lines = lines_of_functions(text), text.splitlines()
        for number, (exits, taken) in sorted(found.branch_stats(file).items()):
            if number in within:
                path = Path(file).relative_to(ROOT).as_posix()
                yield Line(path, number, lines[number - 1].strip(), exits, taken)


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
