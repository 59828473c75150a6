"""Makes the map of which test files cover which lines of ``plimsoll``, after ``make coverage``, and reads it.

The map holds lines of functions only: the others run when a module is imported, which says nothing about
what a test looks at. It also holds the text of each module as it was measured, so that a reader can tell
which lines have changed since.
"""

import argparse
import ast
import gzip
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: Where ``make coverage`` writes it, seen from the root of the repository.
PLACE = ".coverage-map/map.json.gz"


@dataclass(frozen=True, slots=True)
class Measured:
    """One module.

    Attributes:
        text: As it was measured.
        tests: The test files that cover each line of a function, by the line's number from 1; lines that no
            test covers are left out.
    """

    text: str
    tests: Mapping[int, frozenset[str]]


#: The measured modules by their paths from the root of the repository.
CoverageMap = dict[str, Measured]


def lines_of_functions(text: str) -> set[int]:
    """The numbers of the lines that run when a function of the module is called."""
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {
        line
        for function in functions
        for statement in function.body
        for line in range(statement.lineno, (statement.end_lineno or 0) + 1)
    }


def file_of(context: str) -> str:
    """The test file of a context: the last one, for a fork of a process that another file has started."""
    return context.rpartition("|")[2]


def measured(data: Any, root: Path) -> CoverageMap:
    """The map of what coverage.py has measured.

    Args:
        data: A ``coverage.CoverageData``, read.
        root: The folder of the repository.
    """
    found: CoverageMap = {}
    for name in sorted(data.measured_files()):
        path = Path(name)
        if path.suffix == ".py" and path.is_relative_to(root) and path.exists():
            text = path.read_text(encoding="utf-8")
            within = lines_of_functions(text)
            tests = {
                line: frozenset(map(file_of, contexts)) - {""}
                for line, contexts in data.contexts_by_lineno(name).items()
                if line in within
            }
            kept = {line: each for line, each in tests.items() if each}
            found[path.relative_to(root).as_posix()] = Measured(text, kept)
    return found


def write(found: CoverageMap, path: Path) -> None:
    """Write a map; sets of test files that cover several lines are written once."""
    tests = sorted({test for each in found.values() for those in each.tests.values() for test in those})
    numbers = {test: number for number, test in enumerate(tests)}
    sets: dict[frozenset[str], int] = {}
    files = {
        name: {
            "text": each.text,
            "lines": {line: sets.setdefault(those, len(sets)) for line, those in each.tests.items()},
        }
        for name, each in found.items()
    }
    numbered = [sorted(numbers[test] for test in those) for those in sets]
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({"tests": tests, "sets": numbered, "files": files}, file)


def read(path: Path) -> CoverageMap:
    """Read a map; it is empty if there is no such file."""
    if not path.exists():
        return {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        raw = json.load(file)
    sets = [frozenset(raw["tests"][number] for number in those) for those in raw["sets"]]
    return {
        name: Measured(each["text"], {int(line): sets[number] for line, number in each["lines"].items()})
        for name, each in raw["files"].items()
    }


def main() -> None:
    """Write the map of what coverage.py has measured."""
    from coverage import CoverageData  # noqa: PLC0415 - readers of a map do without it

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "data", type=Path, nargs="?", default=ROOT / ".coverage", help="written by coverage.py"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder that was measured")
    parser.add_argument("--map", type=Path, default=ROOT / PLACE, help="where to write it")
    options = parser.parse_args()
    data = CoverageData(str(options.data))
    data.read()
    found = measured(data, options.root)
    write(found, options.map)
    covered = sum(len(each.tests) for each in found.values())
    sys.stderr.write(f"{options.map}: {covered} lines of {len(found)} modules\n")


if __name__ == "__main__":
    main()
