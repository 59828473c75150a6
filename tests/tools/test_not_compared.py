"""The summary of a run names every comparison that was left out, with its reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]

SAMPLE = """
import pytest

@pytest.mark.skipif(True, reason="recordings were not compared; cases took their place")
@pytest.mark.parametrize("number", [1, 2])
def test_recorded(number):
    assert False

def test_that_runs():
    pass
"""


def summary_of(folder: Path, *options: str) -> str:
    """What pytest prints of the sample, with nothing but the plugin."""
    (folder / "test_sample.py").write_text(SAMPLE)
    command = [sys.executable, "-m", "pytest", "-p", "not_compared", "-p", "no:cacheprovider", *options, "."]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_each_reason_is_printed_once_with_its_tests(tmp_path: Path) -> None:
    """In a section of its own, whatever the verbosity, and with parallel workers as well."""
    for options in (("-q",), ("-p", "workers", "-p", "costs", "--workers", "1")):
        summary = summary_of(tmp_path, *options)

        assert "not compared" in summary
        assert summary.count("recordings were not compared; cases took their place (2 tests)") == 1


def test_a_run_that_skips_nothing_says_nothing(tmp_path: Path) -> None:
    """No empty section."""
    assert "not compared" not in summary_of(tmp_path, "-k", "runs")


def test_this_suite_has_the_plugin(pytestconfig: Any) -> None:
    """Registered by the conftest.py of the checkout."""
    assert pytestconfig.pluginmanager.hasplugin("not_compared")
