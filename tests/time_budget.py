"""A pytest plugin that skips the tests for which there is no time left.

``make quick`` runs the tests that are nearest to a change first, and as many of them as it has time for.
"""

from __future__ import annotations

import time
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the budget."""
    add = parser.getgroup("budget").addoption
    add("--within", type=float, default=0.0, metavar="SECONDS", help="begin no test later; 0: no limit")
    add("--begun", type=float, default=0.0, help="when the time began, in seconds since 1970; 0: now")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count in the first process; xdist hands the moment to its workers."""
    config.option.begun = config.option.begun or time.time()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Skip a test for which there is no time left."""
    option = item.config.option
    if option.within and time.time() > option.begun + option.within:
        pytest.skip(f"{option.within:.0f} seconds are over")
