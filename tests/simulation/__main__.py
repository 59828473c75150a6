"""Simulates many seeds, or one with its story: ``make simulate SEEDS=300``, ``make simulate SEED=7``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from simulation.directed import directed
from simulation.minimal_plan import CPU_S, NONE, RUNS, Search, command, entry
from simulation.planted_bugs import FEATURED, NARROW, PLANTED, SEARCH, found
from simulation.regressions import REGRESSIONS, broken
from simulation.run import FAULTY_S, Outcome, Plan, fresh_tasks, simulated
from simulation.tally import ENOUGH, Tally, total
from simulation.wire.faults import KINDS
from simulation.world.features import Feature

#: Seconds between two lines about how far a run is.
PROGRESS_S = 30.0

#: Runs of one process. Each leaves some five megabytes of garbage; to collect that takes as long as every
#: fifteenth run, and ends with the process for nothing.
RUNS_OF_ONE = 64


def outcomes(plans: Sequence[Plan], jobs: int) -> Iterator[Outcome]:
    """Those of all plans, in order."""
    for wired in {plan.is_wired for plan in plans}:
        fresh_tasks(is_wired=wired)  # once, before processes are forked
    for begin in range(0, len(plans), RUNS_OF_ONE * jobs):
        with ProcessPoolExecutor(jobs) as pool:
            yield from pool.map(simulated, plans[begin : begin + RUNS_OF_ONE * jobs])


def reported(plans: Sequence[Plan], tally: Tally, jobs: int, take: Callable[[Outcome], None]) -> int:
    """Print what was found as it is found; the number of runs with violations."""
    told_at, wrong = time.monotonic(), 0
    for plan, each in zip(plans, outcomes(plans, jobs), strict=True):
        take(each)
        if each.violations:
            wrong += 1
            print(f"seed {each.seed}: {each.violations[0]}", flush=True)
            print(f"    {command(plan)}", flush=True)
        if time.monotonic() > told_at + PROGRESS_S:
            told_at = time.monotonic()
            print(f"... {tally.line}", flush=True)
    return wrong


def summed(tally: Tally, out: Path | None) -> None:
    """Print a summary, and keep it."""
    for line in tally.report():
        print(line)
    if out is not None:
        tally.write(out)


def regressed() -> int:
    """Run what once broke a promise; how many do again."""
    wrong = 0
    for regression, violation in broken():
        wrong += 1
        print(f"{command(regression.plan)}: {violation} (once mended by {regression.commit})", flush=True)
    print(f"{len(REGRESSIONS)} runs that once broke a promise, {wrong} do again", flush=True)
    return wrong


def told(plan: Plan, story: Path | None, runs: int) -> int:
    """Print one run; where it fails, the least that makes it fail."""
    made = simulated(replace(plan, tells=story is not None))
    print(f"seed {plan.seed}: hash {made.digest}, {made.virtual_s:.0f} virtual s, {made.steps} steps")
    print(f"a world with: {'; '.join(sorted(made.features)) or 'nothing more than usual'}")
    if story is not None:
        story.write_text("\n".join(made.story) + "\n", encoding="utf-8")
    for violation in made.violations:
        print(f"  {violation}")
    if made.violations:
        search = Search(plan, runs=runs)
        smallest = search.run()
        said = (
            f"all of {runs} runs; ARGS=--runs gives it more"
            if not search.left
            else f"{runs - search.left} runs, when {CPU_S:g} CPU s were over"
            if search.is_over
            else f"{runs - search.left} runs"
        )
        print(f"the least that fails, found in {said}: {search.made.violations[0]}")
        print(f"    {command(smallest)}")
        print(f"    {entry(smallest, search.made.violations[0])}")
    return bool(made.violations)


def read(names: str) -> list[str]:
    """A list as :func:`simulation.minimal_plan.command` writes it."""
    return [] if names == NONE else names.split(",")


def planted(jobs: int, names: list[str]) -> int:
    """Look for the first seed that finds each planted bug; how many go wrong."""
    wrong = 0
    with ProcessPoolExecutor(jobs) as pool:
        for find in pool.map(found, names):
            wrong += not find.is_good
            print(find, flush=True)
    print(f"{len(names)} planted bugs, {wrong} not found in {SEARCH} seeds, or found without them")
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
    parser.add_argument("--only", type=read, help="of --seed: with faults of these kinds, as NONE or K1,K2")
    parser.add_argument("--features", type=read, help="of --seed: with these features, as NONE or F1,F2")
    parser.add_argument("--faults", type=read, help="of --seed: with these single faults, as NONE or 3,17")
    parser.add_argument("--without", type=read, default=[], help="of --seed: without these objects")
    parser.add_argument("--faulty", type=float, default=FAULTY_S, help="of --seed: seconds with faults")
    parser.add_argument("--runs", type=int, default=RUNS, help="of a failing --seed: to find the least with")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--planted", nargs="*", help="look for planted bugs instead: these, or all")
    parser.add_argument(
        "--branches", type=Path, help="write here which branches of the operator no seed takes"
    )
    parser.add_argument("--draw", type=int, default=0, help="then draw so many runs toward these branches")
    parser.add_argument("--wire", action="store_true", help="HTTP as bytes between in-memory sockets")
    given = parser.parse_args()
    if given.planted is not None:
        return bool(planted(given.jobs, given.planted or [*PLANTED, *NARROW, *FEATURED]))
    if given.seed is not None:
        plan = Plan(given.seed, faulty_s=given.faulty, left_out=frozenset(given.without), is_wired=given.wire)
        if given.only is not None:
            plan = replace(plan, kinds=frozenset(KINDS[name] for name in given.only))
        if given.features is not None:
            plan = replace(plan, features=frozenset(Feature[name] for name in given.features))
        if given.faults is not None:
            plan = replace(plan, faults=frozenset(map(int, given.faults)))
        return told(plan, given.trace, given.runs)
    if given.sum:
        tally = total(given.sum)
        summed(tally, given.out)
        return bool(tally.failed) or tally.lacks
    if given.branches is not None:
        from simulation.drawn_plans import toward  # noqa: PLC0415 - for this alone

        plans = [Plan(given.first + number, is_wired=given.wire) for number in range(given.seeds)]
        return bool(toward(plans, given.draw, given.jobs, given.branches))
    wrong, tally = regressed() if given.first == 1 else 0, Tally()
    seeds = range(given.first, given.first + given.seeds)
    if given.first == 1 and given.seeds >= ENOUGH and not given.wire:
        plans = list(directed())
        wrong += reported(plans, tally, given.jobs, tally.count)
        print(f"{len(plans)} directed plans", flush=True)
    wrong += reported([Plan(seed, is_wired=given.wire) for seed in seeds], tally, given.jobs, tally.take)
    summed(tally, given.out)
    return bool(wrong) or tally.lacks


if __name__ == "__main__":
    sys.exit(main())
