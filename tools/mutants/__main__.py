"""Draws mutants by seed, tries them and prints what became of them, by package: ``make mutants``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from affected_tests import SLOW, distances, importers_of, is_test
from distributions import package_of
from mutants import mutant as mutants
from mutants.equivalents import Equivalents
from mutants.hunt import Hunt, Limits, Outcome, Verdict, in_turn
from mutants.mutant import Mutant
from mutants.reach import Reach
from mutants.results import Results
from mutants.typed import complaint
from planter import faults

ROOT = Path(__file__).parents[2]
#: Where what is known of tests and the last results lie.
FOLDER = ROOT / ".mutants"
#: Tests that are no candidates: they start processes that are not forked from the one with the mutant, read
#: texts, or look at the whole product in ways that are too dear for a mutant.
ELSEWHERE = (*SLOW, "tests/structure/", "tests/docs/", "tests/tools/", "tests/large_objects/")
#: Tests that run the whole product, or a browser, for seconds: candidates for their own packages only.
DEAR = (
    "tests/chaos/",
    "tests/fuzzing/",
    "tests/misbehaving/",
    "tests/simulation/",
    "tests/soak/",
    "tests/web_pages/",
)


def main() -> int:
    """Read the command line, draw and try; the exit status is 1 below the floor."""
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--package", default="", help="packages of plimsoll, with commas between them; all, unless given")
    add("--since", default="", help="only packages with files that differ from this commit")
    add("--portion", default="", help="of what is drawn, try only mutants of these packages, with commas")
    add("--count", type=int, default=30, help="how many mutants")
    add("--seed", type=int, default=1)
    add(
        "--line-s",
        type=float,
        default=4.0,
        help="seconds of processor time for the cheapest tests that reach a line, and for the dearest",
    )
    add("--module-s", type=float, default=2.0, help="the same for others that reach its module")
    add("--faults", type=Path, help="draw nothing; try the faults of this list, as the planter keeps them")
    add("--wide-s", type=float, default=15.0, help="the same for the rest that reach the line of a survivor")
    add("--files", type=int, default=0, help="so many test files at most, the nearest; 0: all")
    add("--reach-s", type=float, default=600.0, help="the same for measuring test files, the nearest first")
    add("--floor", type=float, default=0.0, help="fail when fewer percent are caught")
    add("--jobs", type=int, default=os.cpu_count() or 1)
    add("--results", type=Path, default=FOLDER / "results.json", help="what is there is not tried again")
    add("--again", action="store_true", help="draw nothing; try those of the results again that survived")
    given = parser.parse_args()
    packages = [each for each in given.package.split(",") if each]
    if given.since:
        packages += touched(given.since)
        if not packages:
            sys.stdout.write("No package of plimsoll differs.\n")
            return 0
    texts = mutants.modules(ROOT, packages)
    results = Results(given.results, Equivalents.read(), sys.stdout.write)
    if given.again:
        wanted = mutants.found_again(results.mutants(), texts)
        results.forget_survivors()
    elif given.faults:
        wanted = mutants.listed(faults.read(given.faults), ROOT)
    else:
        wanted = mutants.drawn(texts, given.count, given.seed)
    portion = [each for each in given.portion.split(",") if each]
    wanted = [each for each in wanted if not portion or each.package in portion]
    waiting = results.waiting(wanted)
    if waiting:
        errors = os.dup(2)  # pytest captures the other one
        near = candidates(waiting)
        files = in_turn(near.values())[: given.files or None]
        hunt = Hunt(
            Reach(ROOT, FOLDER / "reach"),
            waiting,
            Limits(given.line_s, given.module_s, given.wide_s, given.reach_s),
            given.jobs,
            lambda verdict: results.tell(typed(verdict)),
            lambda text: os.write(errors, f"{text}\n".encode()),
            lambda mutant: near[mutant.path],
        )
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            own = ["-q", "-p", "no:cacheprovider", f"--basetemp={folder}/tests"]
            own += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
            pytest.main([*own, *files], plugins=[hunt])
    sys.stdout.write(results.summary(wanted))
    return int(results.percent(wanted) < given.floor)


def typed(verdict: Verdict) -> Verdict:
    """The same verdict, unless mypy refuses what no test has caught."""
    if verdict.outcome not in (Outcome.SURVIVED, Outcome.NOT_REACHED):
        return verdict
    why = complaint(verdict.mutant, ROOT, FOLDER / "types")
    return replace(verdict, outcome=Outcome.REFUSED, by=why) if why else verdict


def candidates(wanted: Iterable[Mutant]) -> dict[str, list[str]]:
    """The test files of each module's package and those that import it, nearest first."""
    files = [each for each in _git("ls-files", "-co", "--exclude-standard") if (ROOT / each).exists()]
    modules = [each for each in files if each.endswith(".py")]
    importers = importers_of(modules, ROOT)
    tests = [
        each
        for each in modules
        if is_test(each) and each.startswith("tests/") and not each.startswith(ELSEWHERE)
    ]
    one_each = {each.path: each for each in wanted}
    return {path: nearest(tests, each, importers) for path, each in one_each.items()}


def nearest(tests: Iterable[str], mutant: Mutant, importers: Mapping[str, Iterable[str]]) -> list[str]:
    """The test files of a mutant's package and those that import its module, nearest first."""
    steps = distances(importers, [mutant.path])
    within, home = mutant.homes
    stem = Path(mutant.path).stem

    def order(test: str) -> tuple[object, ...]:
        far = steps.get(test, len(steps))
        return far, stem not in test, not test.startswith(within), not test.startswith(home), test

    found = (each for each in tests if each.startswith(home) or (each in steps and not each.startswith(DEAR)))
    return sorted(found, key=order)


def touched(since: str) -> list[str]:
    """The packages with modules that differ from a commit."""
    (base,) = _git("merge-base", "HEAD", since)
    changed = {*_git("diff", "--name-only", base), *_git("ls-files", "-o", "--exclude-standard")}
    return sorted({package_of(each) for each in changed if each.endswith(".py")} - {""})


def _git(*args: str) -> list[str]:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603, S607 - git is the user's
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
