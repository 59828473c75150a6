"""Processes that tests started end with the run, in whatever way it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from signal import Signals
from subprocess import Popen
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]

#: Runs pytest. A shell that starts the suite in the background has its children ignore SIGINT.
RUN = """
import signal, sys, pytest
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main())
"""

#: A test that starts a process in a session of its own, which starts another one, and waits.
STARTS = '''
import os
import subprocess
import sys
import time
from pathlib import Path

GRANDCHILD = "import time; time.sleep(300)"
CHILD = f"""
import subprocess, sys
process = subprocess.Popen([sys.executable, "-c", {GRANDCHILD!r}])
print(process.pid, flush=True)
process.wait()
"""


def test_starts():
    command = [sys.executable, "-c", CHILD]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    grandchild = child.stdout.readline().strip()
    Path("pids.new").write_text(f"{os.getpid()} {child.pid} {grandchild}")
    Path("pids.new").rename("pids")
    time.sleep(WAIT)
'''


def is_running(process: int) -> bool:
    """Whether there is such a process, and it is no zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


def until(condition: Callable[..., Any], within_s: float = 300.0) -> bool:
    """Wait for it; whether it came to be."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def start(folder: Path, *options: str, wait: int = 300) -> tuple[Popen[Any], list[int]]:
    """A run of the test, and the processes of the test, its child and its grandchild."""
    (folder / "test_it.py").write_text(STARTS.replace("WAIT", str(wait)))
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, "-q", "-p", "process_reaper", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert until((folder / "pids").exists)
    return run, [int(each) for each in (folder / "pids").read_text().split()]


@pytest.mark.slow(reason="starts pytest and waits for processes to end")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_a_run_that_is_aborted_leaves_no_process(tmp_path: Path, sent: Signals) -> None:
    """Neither the test's process nor one that this has started."""
    run, (test, child, grandchild) = start(tmp_path)
    assert (test, is_running(child), is_running(grandchild)) == (run.pid, True, True)

    run.send_signal(sent)

    run.wait(60)
    assert until(lambda: not is_running(child) and not is_running(grandchild))


@pytest.mark.slow(reason="starts pytest and waits for processes to end")
@pytest.mark.parametrize("whose", ["the worker", "the run"])
def test_neither_a_worker_nor_the_run_leaves_one(tmp_path: Path, whose: str) -> None:
    """One of them is killed: a test without its worker fails, and a worker without its run ends."""
    run, (worker, child, grandchild) = start(tmp_path, "-p", "costs", "-p", "workers", "--workers", "1")

    os.kill(worker if whose == "the worker" else run.pid, signal.SIGKILL)

    run.wait(60)
    assert until(lambda: not any(is_running(each) for each in (worker, child, grandchild)))


@pytest.mark.slow(reason="starts pytest and waits for processes to end")
def test_what_a_test_forgets_ends_with_the_run(tmp_path: Path) -> None:
    """And the run ends as it would without: the test has passed."""
    run, (_, child, grandchild) = start(tmp_path, wait=0)

    assert run.wait(60) == 0
    assert not is_running(child)
    assert not is_running(grandchild)
