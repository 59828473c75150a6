"""Appends lines to standard output or to a file, and returns when they are on the disk."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

STANDARD_OUTPUT = "-"


class AuditFile:
    """A file of lines; it is opened for each write, so that it may be rotated by renaming.

    Args:
        path: The file, or ``-`` for standard output.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    async def write(self, lines: Sequence[str]) -> None:
        """Append lines in a thread; raises OSError when they may not be there."""
        await asyncio.to_thread(self._append, "".join(f"{each}\n" for each in lines).encode())

    def _append(self, text: bytes) -> None:
        if self._path == STANDARD_OUTPUT:
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
            return
        with Path(self._path).open("ab+") as file:
            if _is_torn(file.fileno()):
                file.write(b"\n")  # the rest of a line whose writer died
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _is_torn(descriptor: int) -> bool:
    """Whether the last line of an open file has no end."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
