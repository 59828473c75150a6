"""A time-out is one failure in the list, wherever it strikes."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NamedTuple

import pytest

from time_limits import is_own

TESTS = Path(__file__).parents[1]


class Pair(NamedTuple):
    first: int
    second: int


SETTINGS = """
[pytest]
filterwarnings = error
addopts = -p no:cacheprovider -p time_limits --tb=short -q -rfE
timeout = 30
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""

#: Strikes at any point of hypothesis, its report of a failure included.
MANY = """
import random

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

rng = random.Random(5)


@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=pytest.mark.timeout(rng.uniform(0.02, 0.15))) for n in range(12)]
)
def test_late(n):
    @given(st.lists(st.integers(), max_size=30))
    @settings(deadline=None, max_examples=10**6, suppress_health_check=list(HealthCheck), database=None)
    def check(numbers):
        assert n % 2 == 0 or len(numbers) < 20

    check()


@given(st.integers())
@settings(database=None)
def test_fine(n):
    pass


def test_wrong():
    assert 1 == 2
"""

#: Strikes in a hook that wraps the making of a report.
IN_A_HOOK = """
import time

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    yield
    if item.name == "test_slow_report" and call.when == "call":
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            pass
"""

SLOW_REPORT = """
import time

import pytest


@pytest.mark.timeout(0.2)
def test_slow_report():
    pass


@pytest.mark.timeout(0.2)
def test_sleeps():
    time.sleep(20)


@pytest.fixture
def slow():
    yield
    time.sleep(20)


@pytest.mark.timeout(0.2)
def test_slow_teardown(slow):
    pass


@pytest.mark.timeout(0.2)
async def test_waits():
    import asyncio

    await asyncio.Event().wait()


def test_wrong():
    assert 1 == 2
"""


def run(folder: Path, *options: str) -> tuple[int, str]:
    """What pytest says of the tests of a folder, as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow(reason="twelve tests that take too long")
@pytest.mark.parametrize(
    "options", [(), ("-p", "costs", "-p", "workers", "--workers", "2")], ids=["alone", "workers"]
)
def test_time_outs_within_hypothesis_are_failures_of_their_tests(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Those that found a counterexample first say so; the others took too long; none spoils another."""
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_many.py").write_text(MANY)

    status, text = run(tmp_path, *options)

    failed = dict(re.findall(r"^(?:FAILED|ERROR) test_many\.py::(\S+) - (.*)$", text, re.MULTILINE))
    assert status == 1, text[-4000:]
    assert "INTERNALERROR" not in text
    assert failed.pop("test_wrong") == "assert 1 == 2"
    assert len(failed) == 12, text[-4000:]
    assert "test_fine" not in failed
    late = {name for name, why in failed.items() if "TookTooLongError: Timeout" in why}
    assert {name for name in failed if int(name[10:-1]) % 2 == 0} <= late, text[-8000:]
    others = {why for name, why in failed.items() if name not in late}
    assert all(why.startswith("assert") for why in others), others


@pytest.mark.slow(reason="four tests that take too long")
def test_a_time_out_ends_its_test_and_no_hook(tmp_path: Path) -> None:
    """In the test, in a fixture, in an event loop; never in a report that is being made."""
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "conftest.py").write_text(IN_A_HOOK)
    (tmp_path / "test_slow.py").write_text(SLOW_REPORT)

    status, text = run(tmp_path)

    assert status == 1, text
    assert "INTERNALERROR" not in text
    assert set(re.findall(r"^(FAILED|ERROR) test_slow\.py::(\w+)", text, re.MULTILINE)) == {
        ("FAILED", "test_sleeps"),
        ("FAILED", "test_waits"),
        ("ERROR", "test_slow_teardown"),
        ("FAILED", "test_wrong"),
    }
    assert "2 passed" in text


def judged(called: Callable[..., Any], module: str, caller: str) -> list[bool]:
    """Whether the frames of a module are a runner's or a test's own, when a caller calls something of it."""
    seen: list[bool] = []

    def look(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_globals["__name__"] == module:
            seen.append(is_own(frame))

    call = FunctionType((lambda: Pair(1, 2)).__code__, {"__name__": caller, "Pair": called})
    before = sys.getprofile()
    sys.setprofile(look)
    call()
    sys.setprofile(before)
    return seen


@pytest.mark.parametrize(("caller", "own"), [("hypothesis.core", False), ("plimsoll.model", True)])
def test_a_named_tuple_is_made_by_its_caller(caller: str, own: bool) -> None:
    """Its constructor has a module of its own, which is neither a runner's nor a test's."""
    assert judged(Pair, "namedtuple_Pair", caller) == [own]


@pytest.mark.parametrize(("caller", "own"), [("hypothesis.core", False), ("plimsoll.model", True)])
def test_a_generic_type_is_made_by_its_caller(caller: str, own: bool) -> None:
    """Where typing calls typing_extensions, which replaces a function of its own."""
    check = FunctionType((lambda first, second: None).__code__, {"__name__": "typing_extensions"})

    assert judged(check, "typing_extensions", caller) == [own]


@pytest.mark.parametrize(("caller", "own"), [("pluggy._callers", False), ("_pytest.python", True)])
def test_a_hook_of_a_plugin_is_not_interrupted(caller: str, own: bool) -> None:
    """What pytest calls in the plugin's name, as it calls a test, is."""
    plugin = FunctionType((lambda first, second: None).__code__, {"__name__": "pytest_asyncio.plugin"})

    assert judged(plugin, "pytest_asyncio.plugin", caller) == [own]
