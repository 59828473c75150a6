"""Draws runs toward the branches that no seed takes.

``make simulate SEEDS=16 ARGS="--branches FILE --draw 60"`` does so after sixteen seeds.

A seed draws among all features and faults, so what a rare branch needs hardly ever comes together. A drawn
run has a few of them, and more of each. One that takes a branch which no run before it took is kept, and half
of those that follow differ from a kept one in a single thing. What is worth it becomes a directed plan
(:mod:`simulation.directed`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from simulation.branches import Branches, Line, report
from simulation.faults import FaultKind
from simulation.minimal_plan import command
from simulation.run import FAULTY_S, Plan
from simulation.world.features import Feature

#: How many features and kinds of faults a drawn run has.
FEATURES, KINDS = (0, 4), (2, 12)

#: Share of the runs that differ from a kept one in a single thing.
ALTERED = 0.5

#: Seeds of drawn runs lie below this one.
SEEDS = 10_000

#: Runs that are drawn before what they have reached counts.
ROUND = 8


def drawn(random: Random, kept: Sequence[Plan]) -> Plan:
    """A run that might reach more.

    Args:
        random: Draws.
        kept: Runs that have.
    """
    if kept and random.random() < ALTERED:
        return _altered(random, random.choice(kept))
    return Plan(
        random.randrange(1, SEEDS),
        faulty_s=FAULTY_S * random.choice((1, 2, 4)),
        kinds=frozenset(random.sample(list(FaultKind), random.randint(*KINDS))),
        features=frozenset(random.sample(list(Feature), random.randint(*FEATURES))),
    )


def _altered(random: Random, plan: Plan) -> Plan:
    """The same with another seed, or with one feature or kind of faults more or fewer."""
    drawn = random.random()
    if drawn < 0.4:
        return replace(plan, seed=random.randrange(1, SEEDS))
    if drawn < 0.7:
        return replace(plan, features=frozenset(plan.features or ()) ^ {random.choice(list(Feature))})
    return replace(plan, kinds=frozenset(plan.kinds or ()) ^ {random.choice(list(FaultKind))})


def toward(
    seeds: Sequence[Plan], runs: int, jobs: int, out: Path, tell: Callable[[str], object] = print
) -> int:
    """Run seeds, then draw runs toward what they leave; how many broke a promise.

    Args:
        seeds: The runs that come first.
        runs: How many are drawn.
        jobs: How many run simultaneously.
        out: Where the table goes of what is left, and all of that.
        tell: Takes a line about what was found.
    """
    random, kept, wrong = Random(f"toward branches {runs}"), list[Plan](), 0
    with tempfile.TemporaryDirectory(prefix="branches-") as folder:
        branches = Branches(Path(folder))

        def made(plans: Sequence[Plan]) -> Iterator[tuple[Plan, list[str]]]:
            nonlocal wrong
            for plan, violations, news in branches.runs(plans, jobs):
                if violations:
                    wrong += 1
                    tell(f"seed {plan.seed}: {violations[0]}\n    {command(plan)}")
                yield plan, news

        for _ in made(seeds):
            pass
        tell(f"{len(seeds)} seeds: {left(branches.lines())}")
        for begin in range(0, runs, ROUND):
            for plan, news in made([drawn(random, kept) for _ in range(min(ROUND, runs - begin))]):
                if news:
                    kept.append(plan)
                    tell(f"{len(news)} lines more: {command(plan)}\n    {', '.join(news)}")
        lines = branches.lines()
    tell(f"{len(seeds)} seeds and {runs} drawn runs: {left(lines)}")
    out.write_text("\n".join(report(lines)) + "\n", encoding="utf-8")
    return wrong


def left(lines: Iterable[Line]) -> str:
    """How many branches runs took, and how many they left in modules of which they reached anything."""
    exits, taken = (sum(counts) for counts in zip(*((each.exits, each.taken) for each in lines), strict=True))
    return f"{taken} branches taken, {exits - taken} left in modules that were reached"
