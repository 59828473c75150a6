"""A pytest plugin that skips the tests for which there is no time left.

``make quick`` runs the tests that are nearest to a change first, and as many of them as it has time for.
"""

from __future__ import annotations

import time
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the budget."""
    parser.getgroup("budget").addoption(
        "--within", type=float, default=0.0, metavar="SECONDS", help="begin no test later; 0: no limit"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count, before workers are forked."""
    config.option.begun = time.time()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Skip a test for which there is no time left."""
    option = item.config.option
    if option.within and time.time() > option.begun + option.within:
        pytest.skip(f"{option.within:.0f} seconds are over")
