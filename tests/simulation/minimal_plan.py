"""Finds the least that makes a seed fail: fewer features, faults and objects, and a shorter time.

Leaving something out changes what happens later, and with it what is drawn, so this is a search and no proof.
The single faults are searched as in Zeller's delta debugging (ddmin): first without half of them, then
without a quarter, and so on.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from simulation.run import FAULTY_S, Outcome, Plan, simulated

T = TypeVar("T")

#: Nothing, on the command line.
NONE = "NONE"

#: Runs that a search may take: some minutes.
RUNS = 150

#: Seconds of CPU after which a search begins no further run: those of a large world are long.
CPU_S = 300.0

#: Steps of runs between two collections of garbage, of which a thousand leave some 0.4 megabytes.
COLLECTED = 300_000


class Search:
    """Looks for smaller plans that fail, too.

    Args:
        plan: Fails.
        simulate: Runs a plan.
        runs: How many runs it may take.
        cpu_s: After so many seconds of CPU it begins no further one.

    Attributes:
        smallest: The smallest plan so far.
        made: What became of it.
        left: How many runs it may still take.
    """

    def __init__(
        self,
        plan: Plan,
        simulate: Callable[[Plan], Outcome] = simulated,
        runs: int = RUNS,
        cpu_s: float = CPU_S,
    ) -> None:
        self._simulate = simulate
        self._cpu_s = cpu_s
        self._uncollected = 0  #: steps since garbage was collected
        self.left = runs
        self.smallest = replace(plan, stops=True)
        self.made = simulate(self.smallest)
        self._wanted = {kind_of(each) for each in self.made.violations[:1]}

    @property
    def is_over(self) -> bool:
        """Whether its time is."""
        return self._cpu_s <= 0

    def run(self) -> Plan:
        """The smallest plan that was found."""
        if not self.made.violations:
            return self.smallest
        features = sorted(self.made.features)
        self._less(features, lambda kept: replace(self.smallest, features=frozenset(kept)))
        happened = sorted(self.made.faults)
        self._less(happened, lambda kinds: replace(self.smallest, kinds=frozenset(kinds)))
        for share in (0.25, 0.5, 0.75):
            if self._fails(replace(self.smallest, faulty_s=round(share * self.smallest.faulty_s, 3))):
                break
        self._less(
            self.made.objects, lambda kept: replace(self.smallest, left_out=self._but(frozenset(kept)))
        )
        self._less(range(self.made.drawn), lambda kept: replace(self.smallest, faults=frozenset(kept)))
        return self.smallest

    def _but(self, kept: frozenset[str]) -> frozenset[str]:
        """Everything that the present smallest plan leaves out, and what is not kept."""
        return self.smallest.left_out | (frozenset(self.made.objects) - kept)

    def _fails(self, plan: Plan) -> bool:
        """Whether a plan fails in the same way; if it does, it is the smallest."""
        if self.left <= 0 or self.is_over:
            return False
        self.left -= 1
        made = self._simulate(plan)
        self._cpu_s -= made.cpu_s
        self._uncollected += made.steps
        if self._uncollected > COLLECTED:
            self._uncollected = 0
            gc.collect()
        fails = any(kind_of(each) in self._wanted for each in made.violations)
        if fails:
            self.smallest, self.made = plan, made
        return fails

    def _less(self, items: Sequence[T], plan_of: Callable[[Sequence[T]], Plan]) -> None:
        """Keep as few of some items as still fail."""
        kept, parts = list(items), 2
        if not kept or not self._fails(plan_of(kept)):
            return
        if self._fails(plan_of([])):
            return
        while len(kept) > 1:
            size = -(-len(kept) // parts)
            for begin in range(0, len(kept), size):
                fewer = kept[:begin] + kept[begin + size :]
                if fewer and self._fails(plan_of(fewer)):
                    kept, parts = fewer, max(parts - 1, 2)
                    break
            else:
                if size == 1:
                    return
                parts = min(2 * parts, len(kept))


def kind_of(violation: str) -> str:
    """A violation without times, amounts and names of objects: those of another run differ."""
    return re.sub(r"\S*\d\S*", "#", violation)


def command(plan: Plan) -> str:
    """What reruns a plan."""
    options = []
    if plan.kinds is not None:
        options.append(f"--only {_written(sorted(kind.name for kind in plan.kinds))}")
    if plan.features is not None:
        options.append(f"--features {_written(sorted(each.name for each in plan.features))}")
    if plan.left_out:
        options.append(f"--without {_written(sorted(plan.left_out))}")
    if plan.faults is not None:
        options.append(f"--faults {_written(map(str, sorted(plan.faults)))}")
    if plan.faulty_s != FAULTY_S:
        options.append(f"--faulty {plan.faulty_s:g}")
    if plan.is_wired:
        options.append("--wire")
    given = f' ARGS="{" ".join(options)}"' if options else ""
    return f"make simulate SEED={plan.seed}{given}"


def _written(names: Iterable[str]) -> str:
    return ",".join(names) or NONE


def entry(plan: Plan, sentence: str) -> str:
    """A line for the table of :mod:`simulation.regressions`."""
    kinds = None if plan.kinds is None else sorted(kind.name for kind in plan.kinds)
    faults = None if plan.faults is None else sorted(plan.faults)
    features = None if plan.features is None else sorted(each.name for each in plan.features)
    options = {
        "kinds": kinds,
        "features": features,
        "left_out": sorted(plan.left_out) or None,
        "faults": faults,
        "is_wired": plan.is_wired or None,
        "faulty_s": None if plan.faulty_s == FAULTY_S else plan.faulty_s,
    }
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    return f'Regression({plan.seed}, "<commit>", {sentence.partition(" ")[2]!r}{given}),'
