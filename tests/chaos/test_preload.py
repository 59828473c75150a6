"""The preloaded library moves the wall clock alone, and lets one name fail."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from chaos.preload import NAME, Control, preloaded

PROGRAM = f"""
import socket, sys, time
def said():
    try:
        found = socket.getaddrinfo("{NAME}", 443)[0][4][0]
    except OSError as exc:
        found = exc.args[0] == socket.EAI_AGAIN
    print(time.time(), time.monotonic(), found, flush=True)
said()
sys.stdin.readline()
said()
"""


def test_a_process_sees_another_time_and_no_names(tmp_path: Path) -> None:
    """From one call to the next, without a restart."""
    library = preloaded(tmp_path)
    if library is None:
        pytest.skip("no C compiler is installed")
    control = Control.at(tmp_path / "control")
    with subprocess.Popen(
        [sys.executable, "-S", "-c", PROGRAM],
        env=control.environment(library),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        first = process.stdout.readline().split()
        control.write(ahead_s=-3600, no_names=True)
        process.stdin.write("\n")
        process.stdin.flush()
        second = process.stdout.readline().split()

    assert abs(float(first[0]) - time.time()) < 600.0
    assert -3600.0 <= float(second[0]) - float(first[0]) < -3000.0
    assert 0.0 <= float(second[1]) - float(first[1]) < 600.0
    assert (first[2], second[2]) == ("127.0.0.1", "True")
