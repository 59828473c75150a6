"""The nursery of the tests' processes: its children are like processes that were started afresh."""

import os
import signal
import socket
import subprocess
import time
from importlib.util import find_spec
from typing import Any

import pytest
import yaml

from forked import NURSERY, PRELOADED, Forked
from plimsoll.version import __version__


def test_all_that_the_nursery_imports_is_there() -> None:
    """It passes over what one distribution lacks, so it would pass over a module that was renamed, too."""
    assert [each for each in PRELOADED if find_spec(each) is None] == []


def test_a_command_has_its_output_and_its_exit_status(tmp_path: Any) -> None:
    """As in a shell, with one file for both streams or one for each."""
    good = Forked("plimsoll", "version", output=tmp_path / "good")
    bad = Forked("plimsoll", "nonsense", output=tmp_path / "bad", errors=tmp_path / "errors")

    assert (good.wait(20), bad.wait(20)) == (0, 1)
    assert (tmp_path / "good").read_text().strip() == __version__
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


def test_a_shell_finds_commands_that_have_themselves_forked(tmp_path: Any) -> None:
    """They have its folder, its streams and its variables, and end as they should; also below others."""
    script = 'cd "$FOLDER" && python -m plimsoll version && plimsoll version > said; plimsoll nonsense'
    path = f"{NURSERY.commands}:{os.environ['PATH']}"

    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": path, "FOLDER": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stdout.strip() == (tmp_path / "said").read_text().strip() == __version__
    assert "nonsense" in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_command_ends_with_what_a_program_has_started(tmp_path: Any, number: Any, status: int) -> None:
    """A signal is passed on; one that cannot be caught ends both."""
    config = tmp_path / "config"
    one = subprocess.Popen([NURSERY.commands / "roadstead", "--kubeconfig", str(config)])
    deadline = time.monotonic() + 300
    while not config.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    server = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]

    one.send_signal(number)

    assert one.wait(60) == status
    while listens(int(server.rpartition(":")[2])):
        assert time.monotonic() < deadline, "the command goes on"
        time.sleep(0.02)


def listens(port: int) -> bool:
    """Whether a process listens on a port of loopback."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
