"""A process of the soak, as the kernel shows it (Linux)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds in which a process must have ended after SIGTERM.
STOP_S = 60.0


@dataclass(slots=True)
class Figures:
    """What the kernel says of a process.

    Attributes:
        rss_mib: Resident memory.
        pss_mib: The same, where shared pages count in parts (forks of plans share pages).
        unique_mib: Pages that no other process has.
        files: Open file descriptors.
        cpu_s: CPU seconds since its start, with children that have ended.
    """

    rss_mib: float
    pss_mib: float
    unique_mib: float
    files: int
    threads: int
    cpu_s: float


@dataclass(slots=True)
class Life:
    """One process from its start to its end.

    Attributes:
        name: Who it is; a restart makes another life of the same name.
        number: Of the life, from 1.
        paused: Whether it was stopped (SIGSTOP).
        expected: Whether the soak itself wants it to end.
    """

    name: str
    number: int
    command: tuple[str, ...]
    log: Path
    port: int = 0
    paused: bool = False
    expected: bool = False
    began: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        with self.log.open("ab") as sink:
            self.process = subprocess.Popen(self.command, stdout=sink, stderr=subprocess.STDOUT)

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self.process.poll() is not None

    @property
    def age_s(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self.began

    def last_words(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1][:300] if lines else ""

    def figures(self) -> Figures | None:
        """Now; None when it has ended."""
        folder = Path(f"/proc/{self.process.pid}")
        try:
            memory = dict(_kib(folder / "smaps_rollup"))
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            files = len(list((folder / "fd").iterdir()))
        except (OSError, ValueError):
            return None
        a_second = os.sysconf("SC_CLK_TCK")
        return Figures(
            rss_mib=memory["Rss"] / 1024,
            pss_mib=memory["Pss"] / 1024,
            unique_mib=(memory["Private_Clean"] + memory["Private_Dirty"]) / 1024,
            files=files,
            threads=int(fields[17]),
            cpu_s=sum(map(int, fields[11:15])) / a_second,
        )

    def end(self) -> None:
        """SIGTERM, and SIGKILL if that does not help."""
        self.expected = True
        if self.ended:
            return
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _kib(path: Path) -> list[tuple[str, int]]:
    """The lines of a file of the kernel that end with kB."""
    found = (line.split() for line in path.read_text().splitlines() if line.endswith(" kB"))
    return [(words[0].rstrip(":"), int(words[1])) for words in found]
