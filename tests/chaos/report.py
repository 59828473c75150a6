"""Reports of runs on sockets, and the verdict on what a run has recorded."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from chaos.faults import ChaosKind
from chaos.features import FEATURES
from chaos.judge import SETTLING_S, STALE_S, Judge
from chaos.observed import counted
from chaos.passage import Passage, note_identity
from chaos.run import COMMITS, REQUESTS, ChaosOutcome
from chaos.sightings import Sighting
from chaos.world import SCHEDULER
from promises.checker import Checker
from promises.findings import Facts


def report(outcome: ChaosOutcome, folder: Path) -> int:
    """Print what has happened; the exit status."""
    kinds = [kind for kind in ChaosKind if outcome.faults[kind]]
    faults = sum(outcome.faults.values())
    print(f"\n{faults} faults of {len(kinds)} kinds, {outcome.in_storms} answers in storms")
    print(table(outcome))
    for happening, count in outcome.happened.most_common():
        print(f"{count:8d} {happening}")
    print(
        f"{outcome.requests} requests, {outcome.writes} writes that were passed on, "
        f"{outcome.commits} commits seen, {outcome.attributed} of them by operators"
    )
    print(described(outcome.facts))
    for line in (*outcome.ends, *outcome.sizes):
        print(line)
    if outcome.late:
        print(f"{outcome.late} commits were seen too late to be judged in their order")
    if outcome.unclaimed:
        print(f"bindings whose author is not known: {'; '.join(outcome.unclaimed)}")
    if outcome.relists:
        print(f"{outcome.relists} lists after the API server was away: versions in between are not known")
    for each in outcome.wrong:
        print(f"VIOLATION {each}")
    for name, count in counted(outcome.wrong).items():
        print(f"{count:8d} {name}")
    print(f"{len(outcome.wrong)} violations; judge again: make chaos ARGS='--judge {folder}'")
    return int(bool(outcome.wrong))


def table(outcome: ChaosOutcome) -> str:
    """How often each kind of fault met a request about a feature, or happened while one was under way."""
    features = [each for each in FEATURES if any(name == each for _, name in outcome.by_feature)]
    lines = [f"| Fault | all | {' | '.join(features)} |", f"| --- |{' ---: |' * (1 + len(features))}"]
    for kind in ChaosKind:
        counts = [outcome.by_feature[kind, each] for each in features]
        if total := outcome.faults[kind]:
            lines.append(f"| {kind} | {total} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def described(facts: Facts) -> str:
    """Counts of what was judged."""
    phases = ", ".join(f"{name} {count}" for name, count in sorted(facts.phases.items()))
    return (
        f"{facts.bindings} bindings, {facts.evictions} evictions and deletions, "
        f"{facts.takeovers} changes of the leader; records: {phases or 'none'}"
    )


def judged_again(folder: Path) -> int:
    """Judge the streams of a run, without what only its end could tell; the exit status."""
    checker, identities = Checker(stale_s=STALE_S), dict[str, str]()
    passages = map(Passage.read, lines(folder / REQUESTS))
    writes = [each for each in passages if each.is_write and each.passed_on is not None]
    writes.sort(key=lambda each: each.passed_on or 0.0)
    for passage in writes:
        note_identity(identities, passage)
    judge = Judge(checker, SCHEDULER, identities, writes)
    latest = 0.0
    for line in lines(folder / COMMITS):
        sighting = Sighting.read(line)
        judge.see(sighting)
        if sighting.at - latest >= 1.0:
            latest = sighting.at
            judge.advance(latest - SETTLING_S)
    judge.advance(float("inf"))
    print(described(checker.facts))
    for each in checker.violations:
        print(f"VIOLATION {each}")
    print(f"{len(checker.violations)} violations, {len(judge.unclaimed)} bindings whose author is not known")
    return int(bool(checker.violations))


def lines(path: Path) -> Iterator[str]:
    """The lines of a recorded stream, of one that was cut short, too."""
    with gzip.open(path, "rt") as file:
        try:
            yield from file
        except EOFError:
            return
