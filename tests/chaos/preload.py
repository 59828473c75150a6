"""Control moves the wall clock of one operator, and lets its look-up of the API server's name fail."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

#: The name by which operators know the API server; what is preloaded resolves it to loopback.
NAME = "plimsoll-chaos.test"

SOURCE = Path(__file__).with_name("preload.c")

#: Seconds that the wall clock is ahead, and whether names are not resolved.
LAYOUT = struct.Struct("=qq")


def preloaded(folder: Path) -> Path | None:
    """Compile what operators preload; None without a compiler, and clocks and names are left alone."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "preload.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


@dataclass(frozen=True, slots=True)
class Control:
    """What the preloaded library of one process reads, at each of its calls."""

    path: Path
    memory: mmap.mmap

    @classmethod
    def at(cls, path: Path) -> Control:
        """A new one: the clock is right, and names are resolved."""
        path.write_bytes(bytes(LAYOUT.size))
        with path.open("r+b") as file:
            return cls(path, mmap.mmap(file.fileno(), LAYOUT.size))

    def environment(self, library: Path) -> dict[str, str]:
        """The variables of the process."""
        return {"LD_PRELOAD": str(library), "CHAOS_CONTROL": str(self.path)}

    def write(self, *, ahead_s: int | None = None, no_names: bool | None = None) -> None:
        """Step the clock, or change whether names are resolved."""
        ahead, without = LAYOUT.unpack(self.memory)
        ahead = ahead if ahead_s is None else ahead_s
        without = without if no_names is None else int(no_names)
        self.memory[:] = LAYOUT.pack(ahead, without)
