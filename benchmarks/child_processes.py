"""Processes of a benchmark: started, weighed by what the kernel says (Linux), and ended by their pid."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Seconds in which a process must have ended after SIGTERM.
STOP_S = 60.0


@contextmanager
def process(*command: str, log: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block, by force if it does not end in time."""
    with (log or Path(os.devnull)).open("wb") as sink:
        one = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)  # noqa: S603 - ours, or named
    try:
        yield one
    finally:
        if one.poll() is None:
            one.terminate()
            try:
                one.wait(STOP_S)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()


def free_port() -> int:
    """A port that no process listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def cpu_s(pid: int) -> tuple[float, float]:
    """CPU seconds of a process, and of its children that have ended; 0 when it has ended itself."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0
    a_second = os.sysconf("SC_CLK_TCK")
    own, ended = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return own / a_second, ended / a_second
