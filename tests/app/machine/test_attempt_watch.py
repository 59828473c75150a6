"""Attempts that take too much processor time are noted from another thread."""

import time

import pytest

from plimsoll.app.machine import attempt_watch
from plimsoll.app.machine.attempt_watch import AttemptWatch, watch_attempts
from plimsoll.engine.plugin_calls import BUDGET_S, AttemptBudget


def test_only_an_attempt_that_takes_too_much_is_noted() -> None:
    """Many short attempts, or the time between them, are no long one."""
    used = 0.0
    budget, watch = AttemptBudget(), AttemptWatch(lambda: used)

    for _ in range(5):
        budget.begin("short")
        watch.look(budget)
        used += BUDGET_S
        watch.look(budget)
        budget.end()
        used += BUDGET_S
        watch.look(budget)
        assert not budget.was_spent
    budget.begin("long")
    watch.look(budget)
    used += BUDGET_S + 0.1
    watch.look(budget)
    assert budget.spent == budget.attempt
    budget.end()
    assert budget.was_spent
    assert budget.spent != budget.attempt
    budget.begin("next")
    assert budget.spent != budget.attempt


def test_the_parts_of_an_attempt_count_together() -> None:
    """An attempt that waits for others between its parts; the next one begins from nothing."""
    used = 0.0
    budget, watch = AttemptBudget(), AttemptWatch(lambda: used)

    with budget.part("p", 1.5):
        watch.look(budget)
        used += 0.6
        watch.look(budget)
        assert budget.spent == budget.attempt
    budget.begin("next")
    watch.look(budget)
    used += 0.6
    watch.look(budget)
    assert budget.spent != budget.attempt


def test_a_thread_counts_processor_time_not_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was paused, or had no processor, has taken nothing."""
    monkeypatch.setattr(attempt_watch, "LOOK_S", 0.005)
    budget = AttemptBudget()
    watch_attempts(budget)

    budget.begin("p", 0.05)
    time.sleep(0.2)
    assert budget.spent != budget.attempt
    until = time.thread_time() + 2.0
    while budget.spent != budget.attempt and time.thread_time() < until:
        sum(range(1000))
    budget.end()
    assert budget.was_spent
