"""Starts ``roadstead`` in a process of its own and ends it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from roadstead.clients import RunningCluster

#: Maximum seconds until a cluster responds, on a busy machine.
START_S = 90.0

#: Maximum seconds until a process ends after SIGTERM.
END_S = 10.0


class StartError(Exception):
    """The process ended, or did not respond in time; the message has its output."""


class RunningProcess(Protocol):
    """A process with the methods of ``subprocess.Popen``."""

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""
        ...

    def wait(self, timeout: float) -> int:
        """Wait for the end.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
        """
        ...


#: Starts the command with arguments; its output goes to the file.
Launch = Callable[[Sequence[str], Path], RunningProcess]


def launch(arguments: Sequence[str], log: Path) -> RunningProcess:
    """Start ``python -m roadstead`` in a new interpreter."""
    with log.open("wb") as sink:
        return subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "roadstead", *arguments], stdout=sink, stderr=subprocess.STDOUT
        )


@contextlib.contextmanager
def running(
    folder: Path, launch: Launch = launch, **options: str | float | Path | bool
) -> Iterator[RunningCluster]:
    """A cluster in a process of its own, until the block ends.

    Args:
        folder: the folder of the kubeconfig and the log.
        launch: starts the command.
        options: those of the command, such as ``nodes=3``, ``controllers=False``, ``node_cpu="500m"``.

    Raises:
        StartError: it does not start.
    """
    path, log = folder / "kubeconfig", folder / "log"
    path.unlink(missing_ok=True)
    process = launch(("--kubeconfig", str(path), *command_line(options)), log)
    try:
        deadline = time.monotonic() + START_S
        while not path.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise StartError(f"roadstead did not start: {log.read_text(errors='replace')}")
            time.sleep(0.02)
        yield RunningCluster(path)
    finally:
        _end(process)


def command_line(options: dict[str, str | float | Path | bool]) -> list[str]:
    """Options as arguments of the command."""
    arguments = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            arguments.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            arguments += [f"--{flag}", str(value)]
    return arguments


def _end(process: RunningProcess) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_S)
