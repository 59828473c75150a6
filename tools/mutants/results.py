"""Keeps verdicts on mutants and prints them by package, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mutants.equivalents import Equivalents
from mutants.hunt import Outcome, Verdict
from mutants.mutant import Mutant


@dataclass(slots=True)
class Results:
    """Verdicts by what each mutant is known by.

    Args:
        place: The file in which they are kept.
        equivalents: Mutants that no test can catch.
        write: What prints.
    """

    place: Path
    equivalents: Equivalents
    write: Callable[[str], object]
    _verdicts: dict[tuple[str, str, str, str], Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.place.exists():
            for each in msgspec.json.decode(self.place.read_bytes(), type=list[Verdict]):
                self._verdicts[each.mutant.key] = each

    def mutants(self) -> list[Mutant]:
        """Those with a verdict."""
        return [each.mutant for each in self._verdicts.values()]

    def forget_survivors(self) -> None:
        """Forget what neither tests nor types caught."""
        ends = (Outcome.CAUGHT, Outcome.REFUSED)
        self._verdicts = {key: each for key, each in self._verdicts.items() if each.outcome in ends}

    def waiting(self, wanted: Iterable[Mutant]) -> list[Mutant]:
        """Those without a verdict that may be caught."""
        return [each for each in wanted if each.key not in self._verdicts and not self.equivalents.why(each)]

    def tell(self, verdict: Verdict) -> None:
        """Keep and print one."""
        self._verdicts[verdict.mutant.key] = verdict
        self.place.parent.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode([*self._verdicts.values()]), indent=1)
        self.place.write_bytes(text + b"\n")
        self.write(f"{row(verdict)}\n")

    def counts(self, wanted: Iterable[Mutant]) -> dict[str, Counter[str]]:
        """How many mutants of each package were caught, are equivalent, were not planted, or survived."""
        found: dict[str, Counter[str]] = {}
        for each in wanted:
            found.setdefault(each.package, Counter())[self._end(each)] += 1
        return found

    def _end(self, mutant: Mutant) -> str:
        if self.equivalents.why(mutant):
            return "equivalent"
        verdict = self._verdicts.get(mutant.key)
        if verdict is None:
            return "not tried"
        return "survived" if verdict.outcome is Outcome.NOT_REACHED else str(verdict.outcome)

    def percent(self, wanted: Sequence[Mutant]) -> float:
        """How many percent of those that can be caught were caught, by tests or types."""
        return _percent(sum(self.counts(wanted).values(), Counter()))

    def summary(self, wanted: Sequence[Mutant]) -> str:
        """A table by package, the worst first, and the survivors in the same order."""
        counts = self.counts(wanted)
        total = sum(counts.values(), Counter())
        order = sorted(counts, key=lambda package: (_percent(counts[package]), package))
        lines = [
            "| Package | Caught | Refused by types | Equivalent | Survivors | Found of the others |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        for package, count in [*((each, counts[each]) for each in order), ("all", total)]:
            ends = ("caught", "refused by types", "equivalent", "survived")
            numbers = " | ".join(str(count[end]) for end in ends)
            lines.append(f"| {package} | {numbers} | {_percent(count):.0f} % |")
        if skipped := total["not planted"] + total["not tried"]:
            lines.append(f"{skipped} were not tried.")
        survivors = [each for each in wanted if self._end(each) == "survived"]
        for each in sorted(survivors, key=lambda each: (order.index(each.package), each.path, each.line)):
            lines += ["", row(self._verdicts[each.key]), *_diff(each)]
        spent = [self._verdicts[each.key].spent_s for each in wanted if each.key in self._verdicts]
        mean = sum(spent) / max(1, len(spent))
        lines += ["", f"A mutant cost {mean:.2f} s of processor time, all of them {sum(spent):.0f} s."]
        return "\n".join(lines) + "\n"


def _percent(count: Counter[str]) -> float:
    found = count["caught"] + count["refused by types"]
    able = found + count["survived"]
    return 100.0 * found / able if able else 100.0


def row(verdict: Verdict) -> str:
    """What became of a mutant, in a line."""
    mutant = verdict.mutant
    end = f"{verdict.outcome} {verdict.by}".rstrip()
    if verdict.outcome is Outcome.SURVIVED:
        end += f" {verdict.ran} tests" + (f", {verdict.left} left out" if verdict.left else "")
    return f"{mutant.path}:{mutant.line}: {mutant.operator}: {end} ({verdict.spent_s:.1f} s)"


def _diff(mutant: Mutant) -> list[str]:
    before, after = mutant.before.splitlines(), mutant.after.splitlines()
    return [*(f"    - {each}" for each in before), *(f"    + {each}" for each in after)]
