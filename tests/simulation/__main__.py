"""Simulates many seeds, or one with its story: ``make simulate SEEDS=300``, ``make simulate SEED=7``."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from simulation.minimal_plan import minimal
from simulation.planted_bugs import PLANTED
from simulation.run import Outcome, Plan, simulated
from simulation.tally import Tally, total

#: Seeds in which a planted bug must be found.
SEARCH = 200

#: Seconds between two lines about how far a run is.
PROGRESS_S = 30.0

#: Runs between two collections of garbage; each leaves some five megabytes.
COLLECTED = 16


def outcome(seed: int) -> Outcome:
    """One seed; what several have left is collected now and then."""
    made = simulated(Plan(seed))
    if seed % COLLECTED == 0:
        gc.collect()
    return made


def outcomes(seeds: Iterable[int], jobs: int) -> Iterator[Outcome]:
    """Those of all seeds, in order."""
    if jobs == 1:
        yield from map(outcome, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(outcome, seeds, chunksize=COLLECTED)


def reported(found: Iterator[Outcome], out: Path | None) -> int:
    """Print what was found as it is found, and a summary; the number of seeds with violations."""
    tally, told_at = Tally(), time.monotonic()
    for each in found:
        tally.take(each)
        if each.violations:
            print(f"seed {each.seed}: {each.violations[0]}", flush=True)
            print(f"    make simulate SEED={each.seed}", flush=True)
        if time.monotonic() > told_at + PROGRESS_S:
            told_at = time.monotonic()
            print(f"... {tally.line}", flush=True)
    summed(tally, out)
    return len(tally.failed)


def summed(tally: Tally, out: Path | None) -> None:
    """Print a summary, and keep it."""
    for line in tally.report():
        print(line)
    if out is not None:
        tally.write(out)


def told(seed: int, story: Path | None) -> int:
    """Print one seed; where it fails, the least that makes it fail."""
    made = simulated(Plan(seed, tells=story is not None))
    print(f"seed {seed}: hash {made.digest}, {made.virtual_s:.0f} virtual s, {made.steps} steps")
    if story is not None:
        story.write_text("\n".join(made.story) + "\n", encoding="utf-8")
    for violation in made.violations:
        print(f"  {violation}")
    if made.violations:
        smallest = minimal(Plan(seed))
        kinds = ", ".join(sorted(kind.name for kind in smallest.kinds or ()))
        print(f"the least that fails: {smallest.faulty_s:g} s with faults of these kinds: {kinds or 'none'}")
    return bool(made.violations)


def planted() -> int:
    """Look for a seed that finds each planted bug, and run it without the bug; how many go wrong."""
    wrong = 0
    for bug in PLANTED:
        for seed in range(bug.seed, bug.seed + SEARCH):
            plan = Plan(seed, kinds=bug.kinds, stops=True)
            found = simulated(replace(plan, mutate=bug.mutate))
            gc.collect()
            if found.violations:
                break
        control = simulated(plan)
        verdict = found.violations[0] if found.violations else "NOT FOUND"
        if control.violations:
            verdict += f"; without it, too: {control.violations[0]}"
        wrong += not found.violations or bool(control.violations)
        print(f"{bug.mutate.__name__} (seed {found.seed}): {verdict}", flush=True)
    print(f"{len(PLANTED)} planted bugs, {wrong} not found or found without them")
    return wrong


def main() -> int:
    """Run; the exit status: 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--out", type=Path, help="keep the sums in this file, as JSON")
    parser.add_argument(
        "--sum", type=Path, nargs="+", help="add up what was kept in these files, and run nothing"
    )
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--trace", type=Path, help="write the story of --seed to this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--planted", action="store_true", help="run the planted bugs instead")
    given = parser.parse_args()
    if given.planted:
        return bool(planted())
    if given.seed is not None:
        return told(given.seed, given.trace)
    if given.sum:
        tally = total(given.sum)
        summed(tally, given.out)
        return bool(tally.failed)
    return bool(reported(outcomes(range(given.first, given.first + given.seeds), given.jobs), given.out))


if __name__ == "__main__":
    sys.exit(main())
