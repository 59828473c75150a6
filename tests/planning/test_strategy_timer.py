"""All planners time strategies with an injected clock."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from planning.builders import SURROUNDINGS, Named, a_rebalancing
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.planning.planners import make_plan
from plimsoll.planning.strategy_run import TIMER, StrategyTimer
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.fakes import FakeClock


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
