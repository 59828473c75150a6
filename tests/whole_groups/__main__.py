"""Random clusters with groups: none may be broken by the operator, and all start where they can.

make whole-groups CLUSTERS=200 SEED=1
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter

from whole_groups.composites import start_together
from whole_groups.preemption import preempt
from whole_groups.topology import start
from whole_groups.world import play


def main() -> int:
    """Play the clusters, and print what was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts, broken = Counter[str](), 0
    for seed in range(asked.seed, asked.seed + asked.clusters):
        story = asyncio.run(play(seed))
        counts += story.counts
        broken += len(story.broken)
        for sentence in story.broken:
            print(f"seed {seed}: {sentence}")
    print(f"{asked.clusters} clusters, {broken} groups broken; {dict(counts)}")
    wrong = starts(asked.seed, asked.clusters) + preemptions(asked.seed, asked.clusters)
    wrong += composites(asked.seed, asked.clusters)
    return 1 if broken + wrong else 0


def starts(first: int, count: int) -> int:
    """Let groups start in racks, print what was wrong, and return how often."""
    found = {seed: start(seed) for seed in range(first, first + count)}
    for seed, outcome in found.items():
        for fault in outcome.faults:
            print(f"seed {seed}: {fault}")
    used, fewest = (sum(each.racks[at] for each in found.values()) for at in (0, 1))
    faults = sum(len(each.faults) for each in found.values())
    started = sum(each.started for each in found.values())
    print(
        f"{count} groups in racks, {faults} faults; {started} started; {used} racks used, {fewest} would do"
    )
    return faults + (used > 1.03 * fewest)


def composites(first: int, count: int) -> int:
    """Let composite groups start, print what was wrong, and return how often."""
    found = {seed: start_together(seed) for seed in range(first, first + count)}
    for seed, outcome in found.items():
        for fault in outcome.faults:
            print(f"seed {seed}: {fault}")
    faults = sum(len(each.faults) for each in found.values())
    started = sum(each.started for each in found.values())
    may = sum(each.may_start for each in found.values())
    print(f"{count} composite groups, {faults} faults; {started} started of {may} for which there is a way")
    return faults + (started < 0.98 * may)


def preemptions(first: int, count: int) -> int:
    """Let groups preempt, print what was wrong, and return how often."""
    found = {seed: preempt(seed) for seed in range(first, first + count)}
    for seed, outcome in found.items():
        for fault in outcome.faults:
            print(f"seed {seed}: {fault}")
    faults = sum(len(each.faults) for each in found.values())
    made = [each for each in found.values() if each.victims]
    names = ("disruptions beyond budgets", "priority", "groups", "pods")
    excess = {name: sum(each.excess[at] for each in made) for at, name in enumerate(names)}
    print(
        f"{count} groups that preempt, {faults} faults; {len(made)} have victims; more than needed: {excess}"
    )
    return faults


if __name__ == "__main__":
    sys.exit(main())
