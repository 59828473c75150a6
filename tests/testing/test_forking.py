"""The nursery of the tests' processes: its children are like processes that were started afresh."""

import signal
import subprocess
from typing import Any

import pytest

import plimsoll
from forked import Forked


def test_a_command_has_its_output_and_its_exit_status(tmp_path: Any) -> None:
    """As in a shell, with one file for both streams or one for each."""
    good = Forked("plimsoll", "version", output=tmp_path / "good")
    bad = Forked("plimsoll", "nonsense", output=tmp_path / "bad", errors=tmp_path / "errors")

    assert (good.wait(20), bad.wait(20)) == (0, 1)
    assert (tmp_path / "good").read_text().strip() == plimsoll.__version__
    assert (tmp_path / "bad").read_text() == ""
    assert "nonsense" in (tmp_path / "errors").read_text()


def test_a_command_has_its_own_environment(tmp_path: Any) -> None:
    """What the test says differs from the test's own; the next one has it no more."""
    narrow = Forked("plimsoll", "--help", output=tmp_path / "narrow", environment={"COLUMNS": "60"})
    wide = Forked("plimsoll", "--help", output=tmp_path / "wide", environment={"COLUMNS": "80"})

    assert (narrow.wait(20), wide.wait(20)) == (0, 0)
    assert max(map(len, (tmp_path / "narrow").read_text().splitlines())) <= 60
    assert max(map(len, (tmp_path / "wide").read_text().splitlines())) > 70


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_signals_reach_a_command(tmp_path: Any, number: Any) -> None:
    """One that is killed has the signal's number as its status; one that is stopped runs on, and waits."""
    one = Forked("roadstead", "--kubeconfig", str(tmp_path / "config"), output=tmp_path / "log")

    one.send_signal(number)
    if number is signal.SIGSTOP:
        with pytest.raises(subprocess.TimeoutExpired):
            one.wait(0.1)
        one.kill()

    assert one.wait(20) == -signal.SIGKILL
    one.terminate()
    one.kill()
