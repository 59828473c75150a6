"""A process that keeps a cluster ends as any other: exit code, output, handlers of the end."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
