"""A Tally adds up what many runs have seen; those of several pieces of a long run are added up again."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

from simulation.faults import FaultKind
from simulation.run import Outcome
from simulation.transitions import NO_RECORDS, RARE_MOVES, of_elections, of_late_events, of_moves, of_records
from simulation.wire.faults import WireFaultKind
from simulation.world.features import Feature
from simulation.world.happenings import Happening

#: From so many seeds on everything must have happened.
ENOUGH = 300

#: What happens more seldom may be missing after the next change, and needs more directed plans.
THIN = 5


@dataclass(slots=True)
class Tally:
    """Sums over seeds.

    Attributes:
        first: The lowest seed.
        last: The highest one.
        failed: The first violation, by seed.
        faults: How often each kind happened, by its name.
        transitions: How often each was gone through, by what of (record, move, election) and its name.
        facts: What the checker has counted.
        features: How many worlds had each, by its name.
        happened: How often what features lead to has happened, by its name.
    """

    seeds: int = 0
    first: int = 0
    last: int = 0
    cpu_s: float = 0.0
    virtual_s: float = 0.0
    steps: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    transitions: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)

    def take(self, made: Outcome) -> None:
        """One seed more."""
        self.first = min(self.first or made.seed, made.seed)
        self.last = max(self.last, made.seed)
        self.seeds += 1
        self.count(made)
        if made.violations:
            self.failed[made.seed] = made.violations[0]

    def count(self, made: Outcome) -> None:
        """What a run has seen, of a seed or of a directed plan."""
        self.cpu_s += made.cpu_s
        self.virtual_s += made.virtual_s
        self.steps += made.steps
        self.faults += Counter({kind.name: number for kind, number in made.faults.items()})
        self.transitions += made.transitions
        self.facts += Counter(
            {name: count for name, count in dataclasses.asdict(made.facts).items() if isinstance(count, int)}
        )
        self.features.update(feature.name for feature in made.features)
        self.happened += Counter({each.name: number for each, number in made.happened.items()})

    def __add__(self, other: Self) -> Self:
        """Of the seeds of both."""
        parts = (self, other)
        firsts = [each.first for each in parts if each.seeds]
        return dataclasses.replace(
            self,
            seeds=self.seeds + other.seeds,
            first=min(firsts, default=0),
            last=max(self.last, other.last),
            cpu_s=self.cpu_s + other.cpu_s,
            virtual_s=self.virtual_s + other.virtual_s,
            steps=self.steps + other.steps,
            failed=self.failed | other.failed,
            faults=self.faults + other.faults,
            transitions=self.transitions + other.transitions,
            facts=self.facts + other.facts,
            features=self.features + other.features,
            happened=self.happened + other.happened,
        )

    # -- files -----------------------------------------------------------------------------------------------

    def write(self, path: Path) -> None:
        """Keep it in a file."""
        kept = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        text = json.dumps(kept, indent=2, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Self:
        """One that was kept."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        for name in ("faults", "transitions", "facts", "features", "happened"):
            kept[name] = Counter(kept[name])
        kept["failed"] = {int(seed): sentence for seed, sentence in kept["failed"].items()}
        return cls(**kept)

    # -- the report ------------------------------------------------------------------------------------------

    @property
    def line(self) -> str:
        """How far it is, in one line."""
        return (
            f"{self.seeds} seeds, {len(self.failed)} with violations, "
            f"{self.virtual_s / 3600:.1f} simulated hours, {self.cpu_s:.0f} CPU s"
        )

    def report(self) -> Iterator[str]:
        """All of it, in lines."""
        each_s = self.cpu_s / max(1, self.seeds)
        yield f"{self.line}: {each_s:.2f} CPU s a seed (seeds {self.first} to {self.last})"
        yield ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(self.facts.items()))
        yield "faults:"
        told = {kind.name: kind.value for kind in self._kinds()}
        yield from _counts(told, self.faults, told.__getitem__)
        yield "worlds with:"
        yield from _counts((each.name for each in Feature), self.features, lambda name: Feature[name].value)
        yield "what came of that:"
        yield from _counts(
            (each.name for each in Happening), self.happened, lambda name: Happening[name].value
        )
        yield "transitions of records:"
        records = self._of("record")
        yield from _counts(sorted(of_records() | set(records)), records)
        for title, known, what in (
            ("cells of the move machine in which something is decided", of_moves(), "move"),
            ("cells of the move machine for late events", of_late_events(), "move"),
            ("cells of the move machine that are met rarely", RARE_MOVES, "move"),
            ("steps of elections", of_elections(), "election"),
        ):
            seen = self._of(what)
            yield f"{title}: {sum(name in seen for name in known)} of {len(known)}"
        for what, names in self.never().items():
            if names:
                yield f"never, {what}: {'; '.join(names)}"
        for what, names in self.thin().items() if self.is_whole else ():
            if names:
                yield f"fewer than {THIN} times, {what}: {'; '.join(names)}"
        for what, names in self.strange().items():
            if names:
                yield f"not enumerated, {what}: {'; '.join(names)}"

    @property
    def is_whole(self) -> bool:
        """Whether so many seeds have run that all there is must have happened."""
        return self.first == 1 and self.last >= self.seeds >= ENOUGH

    @property
    def lacks(self) -> bool:
        """Whether a row is zero that must not be, or something has happened that is held to be impossible."""
        return any(self.strange().values()) or (self.is_whole and any(self.never().values()))

    def strange(self) -> dict[str, list[str]]:
        """What has happened and is not enumerated, by what: the enumeration, or a proof, is wrong."""
        return {
            "records": sorted(self._of("record").keys() & NO_RECORDS.keys()),
            "moves": sorted(self._of("move").keys() - of_moves() - of_late_events() - RARE_MOVES),
            "elections": sorted(self._of("election").keys() - of_elections()),
        }

    def never(self) -> dict[str, list[str]]:
        """Faults and transitions that have not happened, by what; late events need not."""
        return {
            what: [name for name, count in counts.items() if not count]
            for what, counts in self._required().items()
        }

    def thin(self) -> dict[str, list[str]]:
        """What has happened so seldom that a change may take it away, by what, with how often."""
        return {
            what: [f"{name} ({count})" for name, count in counts.items() if 0 < count < THIN]
            for what, counts in self._required().items()
        }

    def _required(self) -> dict[str, dict[str, int]]:
        """How often each has happened that must, by what."""
        elections = self._of("election")
        records, moves = self._of("record"), self._of("move")
        return {
            "faults": {kind.name: self.faults[kind.name] for kind in self._kinds()},
            "happenings": {each.name: self.happened[each.name] for each in Happening},
            "records": {name: records[name] for name in sorted(of_records())},
            "moves": {name: moves[name] for name in sorted(of_moves())},
            "elections": {name: elections[name] for name in sorted(of_elections())},
        }

    def _kinds(self) -> list[StrEnum]:
        """The kinds of faults, those of bytes where seeds ran on the wire."""
        wired = any(
            kind.name in self.faults for kind in WireFaultKind if kind.name not in FaultKind.__members__
        )
        return [*FaultKind, *(WireFaultKind if wired else ())]

    def _of(self, what: str) -> Counter[str]:
        """The transitions of something."""
        begin = f"{what}: "
        return Counter(
            {
                name.removeprefix(begin): count
                for name, count in self.transitions.items()
                if name.startswith(begin)
            }
        )


def _counts(names: Iterable[str], counts: Counter[str], told: Callable[[str], str] = str) -> Iterator[str]:
    for name in names:
        yield f"  {counts[name]:>8} {told(name)}"


def total(paths: Iterable[Path]) -> Tally:
    """The sum of those that were kept in files."""
    return sum((Tally.read(path) for path in paths), Tally())
