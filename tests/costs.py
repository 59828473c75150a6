"""A pytest plugin that says what a run cost: processor time, the dearest files, and which became dearer.

Seconds are of processor time, of the tests and of all processes that they started. Figures of whole runs of
committed trees are kept in ``.test-costs.json``; a run is compared with the nearest earlier commit that has
some. Tests of ``tests/e2e`` share servers: what one of these does while a test runs counts as the test's.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
from operator import itemgetter
from pathlib import Path

import pytest

from forked import NURSERY, spent_by

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".test-costs.json"

#: Files to list, commits to keep, and how much dearer a file must be to be listed: noise is less.
DEAREST, COMMITS, RATIO, SECONDS = 20, 10, 1.3, 1.0


class Hooks:
    """The hooks that this plugin adds."""

    @pytest.hookspec
    def pytest_unit_spent(self, path: str, seconds: float) -> None:
        """A worker (tests/workers.py) has run tests of a file, which took these seconds of processor time."""

    @pytest.hookspec
    def pytest_unseen_spent(self, seconds: float) -> None:
        """Processes have ended with a worker that no parent has waited for, such as a browser's."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add them."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_configure(config: pytest.Config) -> None:
    """Count the runs of workers."""
    if config.option.workers:
        config.pluginmanager.register(Costs(config), "costs-of-files")


def spent_s() -> float:
    """Seconds of processor time of this process and of all that it has started, also by the nursery."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    return total + sum(map(spent_by, _below(os.getpid()))) + NURSERY.spent_s()


def _below(process: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += map(int, task.read_text(encoding="utf-8").split())
        except OSError:
            continue  # the thread has ended
    return [*found, *(each for one in found for each in _below(one))]


class Costs:
    """What the files of one run cost."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._files: dict[str, float] = {}
        self._collected_s = self._unseen_s = 0.0

    def pytest_collection_finish(self) -> None:
        """Collecting is over."""
        self._collected_s = spent_s()

    def pytest_unit_spent(self, path: str, seconds: float) -> None:
        """Count a unit."""
        self._files[path] = self._files.get(path, 0.0) + seconds

    def pytest_unseen_spent(self, seconds: float) -> None:
        """Count what this process cannot know."""
        self._unseen_s += seconds

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Print the costs, and keep those of a whole run."""
        write = terminalreporter.write_line
        terminalreporter.section("costs")
        total = spent_s() + self._unseen_s
        write(
            f"{total:.0f} s of processor time, {self._collected_s:.0f} of them for collecting; the dearest:"
        )
        for path, seconds in sorted(self._files.items(), key=itemgetter(1), reverse=True)[:DEAREST]:
            write(f"{seconds:6.1f} s  {path}")
        kept, commit = read(KEPT), _git("rev-parse", "HEAD")
        measured = (each for each in _git("rev-list", "HEAD", "-n", "500").split() if kept.get(each))
        earlier = next((each for each in measured if each != commit), "")
        for line in dearer(kept[earlier], self._files)[:DEAREST] if earlier else ():
            write(f"dearer than at {earlier[:9]}: {line}")
        if commit and not exitstatus and is_whole(self._config) and not _git("status", "--porcelain"):
            newest = {commit: self._files, **{name: kept[name] for name in kept if name != commit}}
            KEPT.write_text(json.dumps(dict([*newest.items()][:COMMITS])), encoding="utf-8")


def is_whole(config: pytest.Config) -> bool:
    """Whether all tests of this tree are to run: tests of this plugin run those of other folders."""
    option = config.option
    if config.rootpath != ROOT or option.collectonly:
        return False
    return not (option.keyword or option.markexpr or config.args_source is config.ArgsSource.ARGS)


def dearer(before: dict[str, float], now: dict[str, float]) -> list[str]:
    """A line for each file that takes clearly more than before, or is new and not cheap; the worst first."""
    rises = {path: seconds - before.get(path, 0.0) for path, seconds in now.items()}
    listed = sorted(rises, key=lambda path: -rises[path])
    return [
        f"{path}: {now[path]:.1f} s, " + (f"was {before[path]:.1f}" if path in before else "is new")
        for path in listed
        if rises[path] > SECONDS and now[path] > RATIO * before.get(path, 0.0)
    ]


def read(path: Path) -> dict[str, dict[str, float]]:
    """The figures that were kept, by commit; none if the file is not there or is not of this kind."""
    try:
        found: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def _git(*args: str) -> str:
    """What git prints; "" where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
