"""Trials run tests against a copy of the tree in which one fault at a time is planted.

The tests that cover the fault's line run, the nearest and cheapest first, until one of them fails. A test
that also fails without the fault finds nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from coverage_map import CoverageMap
from distributions import FOLDERS
from planter.faults import Fault, Place, place_of, places, planted

#: Folders whose tests start processes.
SLOW = ("tests/e2e/", "tests/deploy/")
#: What tests need that the repository does not hold.
LINKED = (".tools", ".site")
#: Seconds of wall time after which a test file that does not end is ended.
PATIENCE_S = 600.0


class Outcome(StrEnum):
    """What became of a fault."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a trial.

    Attributes:
        fault: What was planted.
        place: Where; None if the code is gone.
        outcome: What became of it.
        by: The test that found it, or that did not end within its time.
        ran: The test files that ran.
        left: How many test files cover the line, but there was no time left for them.
        spent_s: Seconds of processor time.
    """

    fault: Fault
    place: Place | None
    outcome: Outcome
    by: str = ""
    ran: tuple[str, ...] = ()
    left: int = 0
    spent_s: float = 0.0


@dataclass(slots=True)
class Scratch:
    """A copy of the tree in a folder of its own, with at most one fault in it.

    Args:
        root: The repository.
        folder: Where the copy goes; it must not exist.
    """

    root: Path
    folder: Path

    def make(self) -> None:
        """Copy what the repository holds, new files included, and the compiled kernel."""
        listed = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
        done = subprocess.run(listed, cwd=self.root, capture_output=True, text=True, check=True)  # noqa: S603 - git is the user's
        kernels = self.root.glob("core/plimsoll/engine/kernel/_kernel*")
        names = [
            *filter(None, done.stdout.split("\0")),
            *(str(each.relative_to(self.root)) for each in kernels),
        ]
        for name in names:
            source, target = self.root / name, self.folder / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for name in LINKED:
            if (self.root / name).exists():
                (self.folder / name).symlink_to(self.root / name)

    @contextlib.contextmanager
    def with_fault(self, fault: Fault, place: Place) -> Iterator[None]:
        """Plant a fault, and take it out afterwards."""
        path = self.folder / place.path
        text = path.read_text(encoding="utf-8")
        try:
            self._put(path, planted(fault, place.line, text))
            yield
        finally:
            self._put(path, text)

    @staticmethod
    def _put(path: Path, text: str) -> None:
        """Write a module. Its bytecode goes: it would count as fresh if a second brought both texts."""
        path.write_text(text, encoding="utf-8")
        for each in path.parent.glob(f"__pycache__/{path.stem}.*"):
            each.unlink()

    def failing(self, test: str, cap_s: float) -> str:
        """The first test that fails; what was to run if that does not end; empty if all pass.

        Args:
            test: What pytest is to run, a file or a single test.
            cap_s: Seconds of processor time that each process has.
        """
        kept = self.folder.with_name(f"{self.folder.name}.pytest")
        shutil.rmtree(kept, ignore_errors=True)
        sources = os.pathsep.join(str(self.folder / each) for each in (*FOLDERS, "devcluster/src"))
        limits = (int(cap_s), int(cap_s) + 5)
        process = subprocess.Popen(  # noqa: S603 - what the user asked for
            [sys.executable, "-m", "pytest", "-x", "-q", "-o", f"cache_dir={kept}", test],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": ""},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limits),  # noqa: PLW1509 - no threads here
        )
        try:
            process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return test
        if process.returncode in (0, 5):  # passed, or skipped by a mark
            return ""
        failed = kept / "v" / "cache" / "lastfailed"  # the summary cuts names that have blanks
        return next(iter(json.loads(failed.read_text("utf-8"))), test) if failed.exists() else test


@dataclass(slots=True)
class Trials:
    """Tries faults one after the other.

    Args:
        scratch: The copy of the tree.
        found: Which test files cover which lines.
        cap_s: Seconds of processor time for a fault; a test file that has begun goes on, for as long at most.
    """

    scratch: Scratch
    found: CoverageMap
    cap_s: float
    _broken: set[str] = field(default_factory=set)
    _covered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for each in self.found.values():
            for tests in each.tests.values():
                self._covered.update(tests)

    def of(self, fault: Fault) -> Verdict:
        """Try one."""
        place = place_of(fault, self.scratch.folder)
        if place is None:
            return Verdict(fault, None, Outcome.GONE)
        begun = _spent_s()
        ran: list[str] = []
        waiting = self.covering(fault, place)
        while waiting and _spent_s() - begun < self.cap_s:
            ran.append(waiting.pop(0))
            with self.scratch.with_fault(fault, place):
                failed = self.scratch.failing(ran[-1], self.cap_s)
            if failed and failed not in self._broken:
                if not self.scratch.failing(failed, self.cap_s):
                    spent_s = _spent_s() - begun
                    return Verdict(fault, place, Outcome.CAUGHT, failed, tuple(ran), len(waiting), spent_s)
                self._broken.add(failed)
        return Verdict(fault, place, Outcome.SURVIVED, "", tuple(ran), len(waiting), _spent_s() - begun)

    def covering(self, fault: Fault, place: Place) -> list[str]:
        """The test files that cover a fault, in the order in which they run.

        First come those that cover the line after it, too, which for a condition is the branch that it
        decides about; then those that start no processes, those of the package, those named like the module,
        and those that cover little.
        """
        measured = self.found.get(place.path)
        around = max(places(fault, place.path, measured.text), default=None) if measured else None
        if measured is None or around is None:
            return []
        first = around[1].line
        after = first + len(fault.old)
        tests = set[str]().union(*(measured.tests.get(line, ()) for line in range(first, after)))
        stem = Path(place.path).stem

        def order(test: str) -> tuple[object, ...]:
            return (
                test not in measured.tests.get(after, ()),
                test.startswith(SLOW),
                not test.startswith(f"tests/{fault.package}/"),
                stem not in test,
                self._covered[test],
                test,
            )

        return sorted((each for each in tests if (self.scratch.folder / each).exists()), key=order)


def _spent_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
