"""Plants drawn or listed faults in a copy of the tree and prints which test found each: ``make planted``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import coverage_map
from planter import faults
from planter.rare_branches import drawn
from planter.trials import Outcome, Scratch, Trials, Verdict

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Read the command line, draw and plant."""
    parser = argparse.ArgumentParser(prog="planter", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=60, help="how many faults to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--most", type=int, default=3, help="a branch is rare that so many test files reach at most"
    )
    parser.add_argument("--package", default="", help="the only package of plimsoll to draw from")
    parser.add_argument("--faults", type=Path, help="a list of faults to plant again, instead of drawing")
    parser.add_argument("--draw-only", action="store_true", help="write the list and plant nothing")
    parser.add_argument("--cap", type=float, default=40.0, help="seconds of processor time for a fault")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to plant in")
    parser.add_argument("--map", type=Path, help="which tests cover which lines, as written by make coverage")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".planted", help="for faults.json and results.json"
    )
    given = parser.parse_args()
    found = coverage_map.read(given.map or given.root / coverage_map.PLACE)
    if not found:
        sys.stderr.write("There is no map of which tests cover which lines; `make coverage` writes it.\n")
        return 2
    if given.faults is None:
        wanted = drawn(found, count=given.count, seed=given.seed, most=given.most, package=given.package)
        faults.write(wanted, given.folder / "faults.json")
    else:
        wanted = faults.read(given.faults)
    if not given.draw_only:
        with tempfile.TemporaryDirectory(prefix="planter-") as folder:
            scratch = Scratch(given.root.resolve(), Path(folder) / "tree")
            scratch.make()
            _try(wanted, Trials(scratch, found, given.cap), given.folder / "results.json")
    return 0


def _try(wanted: Iterable[faults.Fault], trials: Trials, results: Path) -> None:
    """Print and keep each verdict when it is there."""
    verdicts: list[Verdict] = []
    for fault in wanted:
        verdicts.append(trials.of(fault))
        sys.stdout.write(f"{row(verdicts[-1])}\n")
        sys.stdout.flush()
        faults.write(verdicts, results)
    sys.stdout.write(summary(verdicts))


def row(verdict: Verdict) -> str:
    """A verdict as a row of a table: package, place, kind, what became of it and which test found it."""
    fault, place = verdict.fault, verdict.place
    where = f"{place.path}:{place.line}" if place else fault.path
    end = verdict.by or verdict.outcome
    if verdict.outcome is Outcome.SURVIVED:
        end += f" {len(verdict.ran)} test files" + (f", {verdict.left} not run" if verdict.left else "")
        end += f"; equivalent: {fault.equivalent}" if fault.equivalent else ""
    return f"| {fault.package} | {where} | {fault.kind} | {end} |"


def summary(verdicts: list[Verdict]) -> str:
    """How many were caught, in a sentence."""
    ends = [each.outcome for each in verdicts]
    equivalent = sum(bool(each.fault.equivalent) for each in verdicts if each.outcome is Outcome.SURVIVED)
    spent_s = sum(each.spent_s for each in verdicts)
    caught, survived, gone = (ends.count(each) for each in Outcome)
    return (
        f"Of {len(ends)} faults {caught} were caught, {survived} survived ({equivalent} of them equivalent), "
        f"the code of {gone} is gone; {spent_s:.0f} CPU s.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
