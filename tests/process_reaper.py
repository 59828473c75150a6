"""A pytest plugin that ends the processes of tests when the run ends, however it ends.

Fixtures end what they start, but a run that is killed runs no fixture. So each process that runs tests marks
its environment, which the processes that it starts inherit, and starts a reaper: this file as a program. The
reaper reads a pipe whose other end closes with the run, then ends every process that bears the mark, also
those that other processes started.

Linux only: elsewhere the environment of other processes cannot be read, and no reaper is started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

#: The variable that marks processes, and where their environment is read.
MARK, PROCESSES = "PLIMSOLL_TEST_RUN", Path("/proc")

#: Seconds that processes have to end by themselves.
PATIENCE_S = 5.0


def pytest_configure(config: Any) -> None:
    """Mark this process and start its reaper; workers (tests/workers.py) are forked later."""
    if not PROCESSES.is_dir():
        return
    mark = uuid.uuid4().hex
    command = [sys.executable, "-S", "-E", __file__, mark]
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    reaper = subprocess.Popen(command, stdin=subprocess.PIPE, env=unmarked, start_new_session=True)
    before, os.environ[MARK] = os.environ.get(MARK), mark

    def end() -> None:
        if before is None:
            del os.environ[MARK]
        else:
            os.environ[MARK] = before
        reaper.communicate()

    config.add_cleanup(end)


def marked(mark: str) -> list[int]:
    """The processes that bear a mark."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for each in PROCESSES.iterdir():
        if each.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                if wanted in (each / "environ").read_bytes().split(b"\0"):
                    found.append(int(each.name))
    return found


def reap(mark: str) -> None:
    """End the processes that bear a mark, and those that they start meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    asked: set[int] = set()
    while left := marked(mark):
        is_over = time.monotonic() > deadline
        for process in left:
            if is_over or process not in asked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL if is_over else signal.SIGTERM)
        asked.update(left)
        time.sleep(0.05)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    reap(sys.argv[1])
