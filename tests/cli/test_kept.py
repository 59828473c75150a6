"""A process that keeps a cluster ends as any other: exit code, output, handlers of the end."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import weakref
from itertools import product

import pytest

from plimsoll.commands import kept

#: Nothing is flushed before the end.
PROGRAM = """
import atexit, sys
from plimsoll.commands import kept

atexit.register(sys.stdout.write, "at the end\\n")
sys.stdout.write("said\\n")
kept.keep({kept})
kept.end(2)
sys.stdout.write("went on\\n")
raise SystemExit(2)
"""


@pytest.mark.parametrize(
    ("kept", "said"), [("object()", "said\nat the end\n"), ("", "said\nwent on\nat the end\n")]
)
def test_the_end_is_that_of_any_process(kept: str, said: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(kept=kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (2, said, "")


class Read:
    """What a command has read."""


@pytest.mark.parametrize("story", [*product([True, False], repeat=3)])
def test_only_the_latest_value_is_kept(story: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The one before goes as soon as another is kept, or none; and only what is kept hastens the end."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: None)
    read: list[weakref.ref[Read]] = []
    for keeps in story:
        value = Read() if keeps else None
        read += [weakref.ref(value)] if value is not None else []
        kept.keep(value)
        del value
        codes.clear()
        kept.end(7)

        assert [each() is not None for each in read] == [False] * (len(read) - keeps) + [True] * keeps
        assert codes == [7] * keeps
    kept.keep()
