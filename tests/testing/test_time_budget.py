"""The plugin that ends ``make quick`` in time."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

import time_budget


@pytest.mark.parametrize("within", [0.0, 100.0])
def test_a_test_begins_while_there_is_time(within: Any) -> None:
    """Without a budget there always is."""
    option = SimpleNamespace(within=within, begun=0.0)
    item = SimpleNamespace(config=SimpleNamespace(option=option))
    time_budget.pytest_configure(item.config)

    time_budget.pytest_runtest_setup(item)

    assert time.time() - option.begun < 100


def test_a_test_that_would_begin_too_late_is_skipped_with_the_reason() -> None:
    option = SimpleNamespace(within=40.0, begun=time.time() - 41)
    item = SimpleNamespace(config=SimpleNamespace(option=option))

    with pytest.raises(pytest.skip.Exception, match="40 seconds are over"):
        time_budget.pytest_runtest_setup(item)
