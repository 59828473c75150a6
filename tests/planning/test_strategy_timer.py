"""All planners time strategies with an injected clock."""

import functools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from planning.builders import SURROUNDINGS, Named, a_rebalancing
from plimsoll.framework import PluginError
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.planning.planners import make_plan
from plimsoll.planning.strategy_run import BUDGET, PLAN_BUDGET_S, TIMER, PlanBudget, StrategyTimer
from plimsoll.strategies.consolidate_nodes import ConsolidateNodes
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.fakes import FakeClock
from strategies.builders import a_strategy


class Slow(Named):
    """Takes two seconds to begin, and one for each verdict."""

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self._clock = clock

    def candidates(self, context: Any) -> Iterator[Candidate]:
        self._clock.time += 2
        candidates = super().candidates(context)
        proposal = next(candidates, None)
        while proposal is not None:
            verdict = yield proposal
            self._clock.time += 1
            try:
                proposal = candidates.send(verdict)  # type: ignore[attr-defined] # known to exist in this test
            except StopIteration:
                return


@pytest.mark.parametrize("planner", Planner)
def test_every_planner_times_its_strategies(planner: Planner) -> None:
    """Beginning and two pods take four seconds; what a strategy takes to judge moves again adds up."""
    clock = FakeClock()
    cluster = a_cluster(
        [a_node("full", cpu="4"), a_node("free", cpu="4")],
        [a_pod(name, cpu="1", node="full", owner=f"ReplicaSet/{name}") for name in ("a", "b")],
    )
    timer = StrategyTimer(clock.monotonic)
    TIMER.set(timer)

    try:
        make_plan(replace(a_rebalancing(Slow(clock)), planner=planner), cluster, SURROUNDINGS)
    finally:
        TIMER.set(None)

    spent = clock.time - FakeClock().time
    assert timer.seconds == {"Named": spent}
    assert spent == 4 if planner is Planner.UPSTREAM else spent > 4


def test_a_strategy_that_another_one_causes_to_run_is_part_of_its_time() -> None:
    """Or the times of all strategies would add up to more than the run."""
    clock = FakeClock()
    timer = StrategyTimer(clock.monotonic)

    with timer.timed("outer"):
        clock.time += 1
        with timer.timed("inner"):
            clock.time += 2
    with timer.timed("inner"):
        clock.time += 4
    with timer.timed("inner"):
        clock.time += 8

    assert timer.seconds == {"outer": 3, "inner": 12}


@given(st.lists(st.lists(st.integers(0, 60), max_size=4), max_size=5))
def test_the_calls_of_a_plan_share_one_budget(calls: list[list[int]]) -> None:
    """Whatever passes between two calls is not the plan's; who asks after all is used is given up."""
    clock, strategy = [1_000_000.0], a_strategy(ConsolidateNodes)
    budget, used, given_up = PlanBudget(lambda: clock[0]), 0.0, []

    def made(steps: list[int]) -> None:
        nonlocal used
        for step in steps:
            clock[0] += step
            used += step
            try:
                budget.ask(strategy)
            except PluginError:
                given_up.append(True)
            else:
                given_up.append(False)
            assert given_up[-1] is (used > PLAN_BUDGET_S)
            assert BUDGET.get() is budget

    for steps in calls:
        budget.within(functools.partial(made, steps))
        assert BUDGET.get() is None
        clock[0] += 500

    assert budget.used_s == used == sum(map(sum, calls))
