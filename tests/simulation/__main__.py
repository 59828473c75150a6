"""Simulates many seeds, or one with its story: ``make simulate SEEDS=300``, ``make simulate SEED=7``."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from simulation.faults import FaultKind
from simulation.minimal_plan import minimal
from simulation.planted_bugs import PLANTED
from simulation.run import Outcome, Plan, simulated

#: Seeds in which a planted bug must be found.
SEARCH = 200


def outcome(seed: int) -> Outcome:
    """One seed; what it leaves is collected before the next one."""
    made = simulated(Plan(seed))
    gc.collect()
    return made


def outcomes(seeds: Iterable[int], jobs: int) -> Iterator[Outcome]:
    """Those of all seeds, in order."""
    if jobs == 1:
        yield from map(outcome, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(outcome, seeds, chunksize=5)


def reported(found: Iterator[Outcome]) -> int:
    """Print what was found; the number of seeds with violations."""
    faults: Counter[FaultKind] = Counter()
    phases: Counter[str] = Counter()
    failed, seeds, cpu_s, virtual_s = [], 0, 0.0, 0.0
    bindings = evictions = takeovers = 0
    for each in found:
        seeds += 1
        faults += each.faults
        phases += Counter(each.facts.phases)
        bindings += each.facts.bindings
        evictions += each.facts.evictions
        takeovers += each.facts.takeovers
        cpu_s += each.cpu_s
        virtual_s += each.virtual_s
        if each.violations:
            failed.append(each.seed)
            print(f"seed {each.seed}: {each.violations[0]}", flush=True)
            print(f"    make simulate SEED={each.seed}", flush=True)
    print(f"{seeds} seeds, {len(failed)} with violations")
    hours = virtual_s / 3600
    print(f"{hours:.1f} simulated hours, {cpu_s:.0f} CPU s: {cpu_s / hours:.0f} CPU s an hour")
    print(f"{bindings} bindings, {evictions} evictions and deletions, {takeovers} changes of the leader")
    print("records: " + (", ".join(f"{phases[name]} {name}" for name in sorted(phases)) or "none"))
    print("faults:")
    for kind in FaultKind:
        print(f"  {faults[kind]:>8} {kind}")
    missing = [kind.name for kind in FaultKind if not faults[kind]]
    if missing:
        print(f"never: {', '.join(missing)}")
    return len(failed)


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
    """Run; the exit status."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--trace", type=Path, help="write the story of --seed to this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--planted", action="store_true", help="run the planted bugs instead")
    given = parser.parse_args()
    if given.planted:
        return bool(planted())
    if given.seed is not None:
        return told(given.seed, given.trace)
    return bool(reported(outcomes(range(given.first, given.first + given.seeds), given.jobs)))


if __name__ == "__main__":
    sys.exit(main())
