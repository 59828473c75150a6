"""A plugin of pytest that replaces its loop: tries each mutant in a fork, and measures what tests reach.

The process that has collected the tests forks one for each mutant, plants it there, and runs the test files
that are nearest by imports. For those that survive, what the tests reach is measured; then a fork runs those
that reach its line, the nearest and cheapest first, then others that reach its module. A failure ends it.
One that survives is tried against the rest of those that reach its line, some of each file in turn. A test
that also fails without the mutant finds nothing.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from enum import StrEnum
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

import distributions
from forked import NURSERY
from mutants.forks import BROKEN, DONE, End, Forks, Work
from mutants.functions import Functions
from mutants.mutant import Mutant
from mutants.reach import Reach, Reached, Recorder
from workers import become_worker

#: Memory that a process may have on top, in bytes.
MEMORY = 3 << 30
#: Seconds, and multiples of what it costs without a mutant, after which a test counts as one that never ends.
PATIENCE_S, PATIENCE = 2.0, 10.0
#: The status of a process in which a test failed.
FAILED = 10
#: Test files that are tried before anything is measured, and seconds that one of their tests may take.
NEAREST, UNMEASURED_S = 5, 20.0


class Outcome(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    REFUSED = "refused by types"
    SURVIVED = "survived"
    NOT_REACHED = "not reached"
    NOT_PLANTED = "not planted"


@dataclass(slots=True)
class Verdict:
    """The end of a trial.

    Attributes:
        mutant: What was planted.
        outcome: What became of it.
        by: The test that found it, and how if it does not end; what mypy says of one that is refused.
        ran: How many tests ran.
        left: How many tests reach the line, but there was no time left for them.
        spent_s: Seconds of processor time.
    """

    mutant: Mutant
    outcome: Outcome
    by: str = ""
    ran: int = 0
    left: int = 0
    spent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of processor time for the tests of a mutant, and for measuring.

    Attributes:
        line_s: For the cheapest of those that reach its line, and for the dearest.
        module_s: For others that reach its module.
        wide_s: For the rest of those that reach the line of one that has survived.
        reach_s: For measuring the test files that are not known; no file begins after it.
        near_s: For the nearest files, before anything is measured; no test begins after it.
    """

    line_s: float
    module_s: float
    wide_s: float
    reach_s: float
    near_s: float = 6.0


@dataclass(slots=True)
class Trial:
    """A mutant under test.

    Attributes:
        mutant: What is planted.
        tests: What runs, in order.
        rest: Others that reach the line, of which some run if it survives.
        is_reached: Whether a test reaches the line in its own process.
        is_planted: Whether the mutant is planted; without it, the last test of another trial runs again.
        spent_s: Seconds of processor time of the trials before it.
        ran: How many tests have run before.
        how: How the test failed that runs again.
        is_first: Whether the nearest files are tried, of which nothing is measured.
    """

    mutant: Mutant
    tests: list[str]
    rest: list[str] = field(default_factory=list)
    is_reached: bool = True
    is_planted: bool = True
    spent_s: float = 0.0
    ran: int = 0
    how: str = ""
    is_first: bool = False


@dataclass(slots=True, eq=False)
class Hunt:
    """Measures, and tries mutants, several simultaneously.

    Args:
        reach: What the tests reach.
        wanted: The mutants.
        limits: What each may cost.
        jobs: How many simultaneously.
        tell: What is done with each verdict.
        progress: What is done with a line about the work.
        nearest: The test files for a mutant, nearest first.
    """

    reach: Reach
    wanted: Sequence[Mutant]
    limits: Limits
    jobs: InitVar[int]
    tell: Callable[[Verdict], None]
    progress: Callable[[str], object]
    nearest: Callable[[Mutant], list[str]] = lambda _: []
    _forks: Forks = field(init=False)
    _items: dict[str, pytest.Item] = field(default_factory=dict)
    _by_file: dict[str, list[pytest.Item]] = field(default_factory=dict)
    _left: list[Trial] = field(default_factory=list)  #: those that the nearest files have not caught
    _functions: Functions | None = None
    _broken: set[str] = field(default_factory=set)
    _cost_s: dict[str, float] = field(default_factory=dict)
    _reaching: dict[str, dict[str, Reached]] = field(default_factory=dict)

    def __post_init__(self, jobs: int) -> None:
        self._forks = Forks(jobs, self.progress)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """An example that fails is not made smaller: that a test fails is enough."""
        quick = settings(settings.get_profile("suite"), phases=(Phase.explicit, Phase.generate))
        settings.register_profile("mutants", quick)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Measure what is not known, then try the mutants."""
        if session.testsfailed:
            return None  # pytest says what could not be collected
        self._items = {item.nodeid: item for item in session.items}
        for item in session.items:
            self._by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # noqa: SLF001 - no public way; once, before forks share it
        NURSERY.open()
        for folder in distributions.PRODUCT:
            import_all(self.reach.root / folder)
        self._functions = Functions(self.reach.root)
        self._try_all(session, [self._first_of(each) for each in self.wanted])
        files = in_turn(self.nearest(each.mutant) for each in self._left) if self._left else []
        files = [each for each in files if each in self._by_file]
        stale = [each for each in files if not self.reach.is_fresh(each)]
        self.progress(f"{len(self._left)} are left; measuring {len(stale)} of {len(files)} test files")
        self._measure(session, stale)
        for each in files:
            for name, reached in self.reach.of(each).items():
                if name in self._items:
                    self._cost_s[name] = reached.cost_s
                    for path in reached.lines:
                        self._reaching.setdefault(path, {})[name] = reached
        self._try_all(session, [self._second_of(each) for each in self._left])
        return True

    def _measure(self, session: pytest.Session, files: Iterable[str]) -> None:
        def measured(file: str) -> Work:
            def run(line: Connection) -> None:
                recorder = Recorder(self.reach.root, self._by_file[file])
                become_worker(session.config, self._forks.number, _Deaf())
                session.config.pluginmanager.register(recorder)
                recorder.start()
                _run(self._by_file[file], line.send)
                self.reach.keep(file, recorder.tests())

            return run

        waiting = [(file, measured(file)) for file in files]
        waiting.reverse()
        spent_s = 0.0

        def following() -> tuple[str, Work] | None:
            return waiting.pop() if waiting and spent_s < self.limits.reach_s else None

        if waiting:
            self.reach.read_modules()
        for file, end in self._forks.run(following):
            spent_s += end.spent_s
            self.progress(
                f"measured {file}: {end.spent_s:.1f} s" + (f", status {end.status}" if end.status else "")
            )
        if waiting:
            self.progress(f"no time left to measure the farthest {len(waiting)}")

    def _first_of(self, mutant: Mutant) -> Trial:
        """The tests of the nearest files."""
        files = [each for each in self.nearest(mutant) if each in self._by_file][:NEAREST]
        tests = [item.nodeid for each in files for item in self._by_file[each]]
        return Trial(mutant, [each for each in tests if each not in self._broken], is_first=True)

    def _second_of(self, first: Trial) -> Trial:
        """The tests that are known to reach a mutant that the nearest files have not caught."""
        trial = self.trial_of(first.mutant)
        trial.spent_s = first.spent_s
        return trial

    def _try_all(self, session: pytest.Session, trials: Sequence[Trial]) -> None:
        waiting = [*reversed(trials)]

        def following() -> tuple[Trial, Work] | None:
            while waiting:
                trial = waiting.pop()
                if trial.tests:
                    return trial, self._in_fork(session, trial)
                if trial.is_first:
                    self._left.append(trial)
                    continue
                self.tell(Verdict(trial.mutant, Outcome.NOT_REACHED))
            return None

        for trial, end in self._forks.run(following):
            again = self._judged(trial, end)
            if again is not None:
                waiting.append(again)

    def _judged(self, trial: Trial, end: End) -> Trial | None:
        """Tell the end of a trial, or what to try next."""
        trial.spent_s += end.spent_s
        if end.status == BROKEN or not end.said:
            self.tell(Verdict(trial.mutant, Outcome.NOT_PLANTED, spent_s=trial.spent_s))
            return None
        ran = end.said[-1] + 1
        test = trial.tests[ran - 1]
        if end.status == DONE and trial.is_planted and trial.is_first:
            self._left.append(trial)
            return None
        if end.status == DONE and trial.is_planted:
            if not trial.ran and (more := self._affordable(trial.rest, self.limits.wide_s)):
                rest = trial.rest[len(more) :]
                return Trial(trial.mutant, more, rest, spent_s=trial.spent_s, ran=ran)
            outcome = Outcome.SURVIVED if trial.is_reached else Outcome.NOT_REACHED
            self.tell(Verdict(trial.mutant, outcome, "", trial.ran + ran, len(trial.rest), trial.spent_s))
            return None
        if end.status == DONE:  # it passes without the mutant
            self.tell(Verdict(trial.mutant, Outcome.CAUGHT, trial.how + test, trial.ran, 0, trial.spent_s))
            return None
        if trial.is_planted:
            how = "" if end.status == FAILED else "does not end: "
            ran += trial.ran
            again = Trial(trial.mutant, [test], is_planted=False, spent_s=trial.spent_s, ran=ran, how=how)
            again.is_first = trial.is_first
            return again
        self._broken.add(test)
        following = self._first_of(trial.mutant) if trial.is_first else self.trial_of(trial.mutant)
        following.spent_s = trial.spent_s
        return following

    def trial_of(self, mutant: Mutant) -> Trial:
        """The tests for a mutant: those that reach its line, the nearest first, and others of its module.

        The dearest of its package follow the cheapest: models look at more than a hundred small tests.
        """
        reaching = self._reaching.get(mutant.path, {})
        bits = sum(1 << line for line in range(mutant.line, mutant.last + 1))
        known = {name: each for name, each in reaching.items() if name not in self._broken}
        near = {name for name, each in known.items() if each.lines[mutant.path] & bits}
        files = {name.partition("::")[0] for name in near}
        stem = Path(mutant.path).stem
        homes = mutant.homes

        def order(name: str) -> tuple[object, ...]:
            file = name.partition("::")[0]
            at_home = [not file.startswith(each) for each in homes]
            return name not in near, file not in files, stem not in file, *at_home, known[name].cost_s

        ordered = sorted(known, key=order)
        taken = [each for each in ordered if each in near]
        tests = self._affordable(taken, self.limits.line_s)
        dear = sorted(set(taken).difference(tests), key=lambda name: -known[name].cost_s)
        tests += self._affordable([each for each in dear if each.startswith(homes[1])], self.limits.line_s)
        rest = self._in_turn(set(taken).difference(tests), order)
        # Also where no test reaches the line: what a forked process runs is not measured.
        if others := [each for each in ordered if each not in near]:
            tests += self._affordable(others, self.limits.module_s)
        return Trial(mutant, tests, rest, is_reached=bool(taken))

    def _in_turn(self, tests: set[str], order: Callable[[str], tuple[object, ...]]) -> list[str]:
        """The first of each file, then the second of each: files that look alike find alike."""
        place: Counter[str] = Counter()
        turns: list[tuple[int, int, str]] = []
        for each in sorted(tests, key=order):
            file = each.partition("::")[0]
            turns.append((place[file], len(turns), each))
            place[file] += 1
        return [each for _, _, each in sorted(turns)]

    def _affordable(self, tests: list[str], limit_s: float) -> list[str]:
        """The first tests whose cost stays below a limit, and at least one if there is any."""
        spent_s = 0.0
        found: list[str] = []
        for each in tests:
            spent_s += self._cost_s[each]
            if found and spent_s > limit_s:
                break
            found.append(each)
        return found

    def _in_fork(self, session: pytest.Session, trial: Trial) -> Work:
        """What a process does that tries a mutant."""

        def run(line: Connection) -> None:
            if trial.is_planted and not (self._functions and self._functions.plant(trial.mutant)):
                os._exit(BROKEN)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            become_worker(session.config, self._forks.number, _FirstFailure())
            signal.signal(signal.SIGPROF, signal.SIG_DFL)

            def begins(place: int) -> None:
                if trial.is_first and time.process_time() - began_s > self.limits.near_s:
                    os._exit(DONE)
                line.send(place)
                cost_s = self._cost_s.get(trial.tests[place])
                patience_s = UNMEASURED_S if cost_s is None else PATIENCE_S + PATIENCE * cost_s
                signal.setitimer(signal.ITIMER_PROF, patience_s)

            began_s = time.process_time()

            _run([self._items[each] for each in trial.tests], begins)

        return run


class _Deaf:
    """Takes the reports of a worker and does nothing with them."""

    def add(self, kind: str, value: Any = None) -> None:
        """Do nothing."""


class _FirstFailure:
    """Ends the process when a test fails."""

    def add(self, kind: str, value: Any = None) -> None:
        """Look at a report."""
        if kind == "report" and value["outcome"] == "failed":
            os._exit(FAILED)


def _run(items: Sequence[pytest.Item], begins: Callable[[int], None]) -> None:
    """Run tests."""
    for place, item in enumerate(items):
        begins(place)
        following = items[place + 1] if place + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def in_turn(rows: Iterable[Sequence[str]]) -> list[str]:
    """The first of each row, then the second of each, without those that were there before."""
    turns = zip_longest(*rows, fillvalue="")
    return [*dict.fromkeys(each for turn in turns for each in turn if each)]


def import_all(folder: Path) -> None:
    """Import every module of the product, so that a mutant of any can be planted."""
    for path in sorted(folder.glob("*/**/*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[-1] != "__main__":
            with contextlib.suppress(Exception):  # what cannot be imported here runs in no test
                __import__(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
