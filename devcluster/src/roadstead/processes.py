"""Starts ``roadstead`` in a process of its own and ends it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from roadstead.clients import RunningCluster

#: Seconds until a cluster answers, on a busy machine.
START_S = 90.0

#: Seconds that a process has to end after SIGTERM.
END_S = 10.0


class StartError(Exception):
    """The process ended, or did not answer in time; the message holds its output."""


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Iterator[RunningCluster]:
    """A cluster in a process of its own, until the block ends.

    Args:
        folder: an empty folder for the kubeconfig and the log.
        options: of the command ``roadstead``, such as ``"--nodes", "3"``.

    Raises:
        StartError: it does not start.
    """
    path, log = folder / "kubeconfig", folder / "log"
    command = [sys.executable, "-m", "roadstead", "--kubeconfig", str(path), *options]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)  # noqa: S603 - our own command
    try:
        deadline = time.monotonic() + START_S
        while not path.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise StartError(f"roadstead did not start: {log.read_text(errors='replace')}")
            time.sleep(0.02)
        yield RunningCluster(path)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
