"""Workers: their reports are those of one run, and a worker that dies fails only the test that it ran."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from costs import ROOT, dearer, is_whole

TESTS = Path(__file__).parents[1]

SAMPLE = """
import os, pathlib, signal
import pytest

@pytest.fixture(scope="session")
def server(request, tmp_path_factory):
    pathlib.Path(f"started-{os.getpid()}").touch()
    yield tmp_path_factory.mktemp("server")
    pathlib.Path(f"ended-{os.getpid()}").touch()
    assert not pathlib.Path("refuse").exists(), "the server does not end"

@pytest.fixture(scope="module")
def table():
    pathlib.Path(f"table-{__name__}-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(3))
def test_fine(server, table, number, capfd):
    print("seen by the test alone")
    assert capfd.readouterr().out == "seen by the test alone\\n"

def test_skipped():
    pytest.skip("for a reason")
"""

WRONG = """
def test_wrong():
    print("said before it failed")
    assert 1 == 2
"""

#: Its browser is started by a process that does not wait for it.
BROWSER = """
import os, signal, subprocess, sys, time
from pathlib import Path
import pytest

WORKS = "import time\\nwhile True: time.process_time() < 1 or time.sleep(1)"
BEGINS = f"print(subprocess.Popen([sys.executable, '-c', {WORKS!r}], stdout=sys.stderr).pid, flush=True)"

@pytest.fixture(scope="session")
def browser():
    command = [sys.executable, "-c", f"import subprocess, sys, time; {BEGINS}; time.sleep(300)"]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    started = int(driver.stdout.readline())
    yield started
    driver.kill()
    driver.wait()
    driver.stdout.close()
    os.kill(started, signal.SIGKILL)

def test_it(browser):
    while sum(map(int, Path(f"/proc/{browser}/stat").read_text().split()[13:15])) < 80:
        time.sleep(0.05)
"""

DYING = """
import os, signal

def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)

def test_follows():
    pass
"""


def run(folder: Path, *options: str) -> tuple[int, str]:
    """The exit status and the output of a run with two workers."""
    plugins = ("-p", "no:cacheprovider", "-p", "costs", "-p", "workers", "--workers", "2")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfE", *plugins, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def with_files(folder: Path, **files: str) -> Path:
    """The folder with test files of these contents."""
    for name, content in files.items():
        (folder / f"test_{name}.py").write_text(content)
    return folder


@pytest.mark.slow(reason="starts pytest")
def test_reports_of_all_workers_are_one_run(tmp_path: Path) -> None:
    """Fixtures of a file are made once, those of the session once a worker, and ended."""
    folder = with_files(tmp_path, one=SAMPLE, two=SAMPLE, three=SAMPLE, wrong=WRONG)

    status, text = run(folder)

    assert status == 1
    assert "1 failed, 9 passed, 3 skipped" in text
    assert re.findall(r"^FAILED (.*)", text, re.MULTILINE) == ["test_wrong.py::test_wrong - assert 1 == 2"]
    assert "said before it failed" in text
    assert "seen by the test alone" not in text
    started = {path.name.partition("-")[2] for path in folder.glob("started-*")}
    assert 1 <= len(started) <= 2
    assert {path.name.partition("-")[2] for path in folder.glob("ended-*")} == started
    assert len([*folder.glob("table-*")]) == 3
    assert re.search(r"^ +\d+\.\d s  test_one\.py$", text, re.MULTILINE), "what it cost"


@pytest.mark.slow(reason="starts pytest")
@pytest.mark.skipif(sys.platform != "linux", reason="what a process has spent is read from /proc")
def test_processes_without_a_waiting_parent_count(tmp_path: Path) -> None:
    """A browser outlives the process that has started it, and ends without a trace in anybody's account."""
    _, text = run(with_files(tmp_path, browser=BROWSER))

    (file_s,) = re.findall(r"^ +(\d+\.\d) s  test_browser\.py$", text, re.MULTILINE)
    (total_s,) = re.findall(r"^(\d+) s of processor time", text, re.MULTILINE)
    assert float(file_s) >= 0.8
    assert int(total_s) + 0.5 >= float(file_s)


@pytest.mark.slow(reason="starts pytest")
def test_a_worker_that_dies_fails_its_test_and_the_others_run(tmp_path: Path) -> None:
    """The test is named; another worker takes over, also the tests that follow in the file."""
    folder = with_files(tmp_path, a=DYING, b=DYING, c=DYING, one=SAMPLE)

    status, text = run(folder)

    assert status == 1
    assert "3 failed, 6 passed, 1 skipped" in text
    assert "ended with -9 while it ran test_a.py::test_dies" in text


@pytest.mark.slow(reason="starts pytest")
def test_a_fixture_of_the_session_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    """Of the last test of its worker."""
    (tmp_path / "refuse").touch()

    status, text = run(with_files(tmp_path, one=SAMPLE))

    assert status == 1
    assert "3 passed, 1 skipped, 1 error" in text
    assert "the server does not end" in text


@pytest.mark.slow(reason="starts pytest")
def test_the_first_failure_ends_a_run_that_wants_so(tmp_path: Path) -> None:
    """As without workers."""
    folder = with_files(tmp_path, **{f"wrong{number}": WRONG for number in range(20)})

    status, text = run(folder, "-x")

    assert status == 1
    assert "!!! stopping after" in text
    assert len(re.findall(r"^FAILED", text, re.MULTILINE)) < 20


@pytest.mark.slow(reason="starts pytest")
def test_files_are_shuffled_by_seed(tmp_path: Path) -> None:
    """Whole files, the same order for the same seed."""
    folder = with_files(tmp_path, **{f"n{number}": SAMPLE for number in range(4)})

    def order(seed: int) -> list[str]:
        _, text = run(folder, "--collect-only", "--shuffle", str(seed))
        return re.findall(r"^test_n(\d)\.py::test_fine\[0\]", text, re.MULTILINE)

    assert order(1) == order(1)
    assert sorted(order(1)) == ["0", "1", "2", "3"]
    assert order(1) != order(2)


def test_what_became_dearer_is_listed_and_noise_is_not() -> None:
    before = {"a": 2.0, "b": 2.0, "c": 0.1, "gone": 9.0}
    now = {"a": 3.5, "b": 2.4, "c": 0.9, "new": 1.5}

    assert dearer(before, now) == ["a: 3.5 s, was 2.0", "new: 1.5 s, is new"]


def test_costs_are_kept_of_whole_runs_of_this_tree(tmp_path: Path) -> None:
    """A test's run in another folder has other files, so that all of these would look dearer later."""

    def kept(rootpath: Path = ROOT, **options: Any) -> bool:
        chosen: dict[str, Any] = {"keyword": "", "markexpr": "", "collectonly": False, **options}
        source = pytest.Config.ArgsSource
        config: Any = SimpleNamespace(
            rootpath=rootpath,
            option=SimpleNamespace(**chosen),
            args_source=source.TESTPATHS,
            ArgsSource=source,
        )
        return is_whole(config)

    assert kept()
    assert not kept(tmp_path)
    assert not kept(collectonly=True)
    assert not kept(keyword="binds")
