"""Runs work in forked processes, several simultaneously, and says how each ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from forked import NURSERY

#: Seconds of wall time after which a process that says nothing is ended; the machine may have other work.
WALL_S = 180.0
#: Statuses of a process: it has done its work, or could not begin it.
DONE, BROKEN = 0, 11
#: What a process does; it says the place of each test that begins.
Work = Callable[[Connection], None]


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended: its status, what it said, and its seconds of processor time."""

    status: int
    said: list[int]
    spent_s: float


@dataclass(slots=True, eq=False)
class _Child:
    """A process as the first one sees it; ``end`` can be read when it has ended."""

    key: Any
    process: int
    end: int
    line: Connection
    said: list[int] = field(default_factory=list)
    deadline: float = field(default_factory=lambda: time.monotonic() + WALL_S)

    def listen(self) -> bool:
        """Whether it says anything more."""
        try:
            self.said.append(self.line.recv())
        except (EOFError, ConnectionError):
            self.line.close()
            return False
        self.deadline = time.monotonic() + WALL_S
        return True

    def bury(self) -> End:
        """How it ended; what it has started is ended, too."""
        while not self.line.closed and self.line.poll() and self.listen():
            pass
        self.line.close()
        os.close(self.end)
        _, status, used = os.wait4(self.process, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        return End(os.waitstatus_to_exitcode(status), self.said, used.ru_utime + used.ru_stime)


@dataclass(slots=True)
class Forks:
    """Processes that are forked from this one.

    Args:
        jobs: How many run simultaneously.
        progress: What is done with a line about the work.
    """

    jobs: int
    progress: Callable[[str], object]
    number: int = 0
    _running: dict[int, _Child] = field(default_factory=dict)

    def run(self, following: Callable[[], tuple[Any, Work] | None]) -> Iterator[tuple[Any, End]]:
        """Do what there is to do; yield the key of each when it has ended, and how.

        Args:
            following: What to do next under which key; None for nothing before something else has ended.
        """
        with selectors.DefaultSelector() as selector:
            if NURSERY.door is not None:
                selector.register(NURSERY.door, selectors.EVENT_READ)
            while self._fill(following, selector):
                for event, _ in selector.select(1.0):
                    child = event.data
                    if child is None:
                        selector.unregister(event.fileobj)
                        NURSERY.start()
                    elif event.fd == child.end:
                        selector.unregister(child.end)
                        if not child.line.closed:
                            selector.unregister(child.line)
                        del self._running[child.process]
                        yield child.key, child.bury()
                    elif not child.line.closed:
                        self._listen(child, selector)
                for child in self._running.values():
                    if time.monotonic() > child.deadline:
                        os.kill(child.process, signal.SIGKILL)

    def _listen(self, child: _Child, selector: selectors.BaseSelector) -> None:
        descriptor = child.line.fileno()
        if not child.listen():
            selector.unregister(descriptor)

    def _fill(
        self, following: Callable[[], tuple[Any, Work] | None], selector: selectors.BaseSelector
    ) -> bool:
        """Start processes up to the limit; return whether any runs."""
        while len(self._running) < self.jobs and (work := following()) is not None:
            child = self._fork(*work, [each.line for each in self._running.values()])
            self._running[child.process] = child
            selector.register(child.end, selectors.EVENT_READ, child)
            selector.register(child.line, selectors.EVENT_READ, child)
        return bool(self._running)

    def _fork(self, key: Any, run: Work, others: Iterable[Connection]) -> _Child:
        ours, theirs = Pipe(duplex=False)
        self.number += 1
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process:
            theirs.close()
            return _Child(key, process, os.pidfd_open(process), ours)
        status = BROKEN
        try:
            os.setpgid(0, 0)
            for each in (ours, *others):
                each.close()
            run(theirs)
            status = DONE
        except BaseException:  # noqa: BLE001 - the first process goes on
            self.progress(traceback.format_exc())
        finally:
            os._exit(status)
