"""Plugin calls: counted always, timed in randomly chosen attempts."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.engine.plugin_calls import METER, called, calling, replaced
from plimsoll.framework import PluginError
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.plugin_timing import SAMPLED_ONE_IN, PluginTimer
from plimsoll.testing.fakes import FakeClock


class FixedRandomness:
    """Returns a given number, over and over."""

    def __init__(self, *rolls: int) -> None:
        self._rolls = list(rolls)

    def below(self, n: int) -> int:
        assert n == SAMPLED_ONE_IN
        self._rolls.append(self._rolls.pop(0))
        return self._rolls[-1]

    def fraction(self) -> None:
        raise AssertionError


class Told(Observer):
    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.points: list[Any] = []

    def plugin_called(self, plugin: str, point: str, failed: bool, seconds: float) -> None:
        self.calls.append((plugin, point, failed, seconds))

    def point_passed(self, profile: str, point: str, failed: bool, seconds: float) -> None:
        self.points.append((profile, point, failed, seconds))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(0.0)


@pytest.fixture
def told() -> Told:
    return Told()


def call(clock: FakeClock, plugin: str, point: str, seconds: float) -> None:
    with calling(plugin, point):
        clock.time += seconds


def call_cheaply(clock: FakeClock, plugin: str, point: str, seconds: float) -> None:
    def work() -> None:
        clock.time += seconds

    called(plugin, point, work)


@pytest.mark.parametrize("way", [call, call_cheaply])
def test_calls_are_counted_whether_timed_or_not(
    way: Callable[[FakeClock, str, str, float], None], clock: FakeClock, told: Told
) -> None:
    meter = PluginTimer(clock, FixedRandomness(0, 1, 9), told)  # type: ignore[arg-type] # a fake has only what is used

    for _ in range(3):
        with meter.attempt("p"):
            way(clock, "Fit", "filter", 1.0)

    assert meter.counts == {"p": {("Fit", "filter"): 3}}
    assert told.calls == [("Fit", "filter", False, 1.0)]


def test_the_plugins_of_a_point_add_up_to_one_passage(clock: FakeClock, told: Told) -> None:
    meter = PluginTimer(clock, FixedRandomness(0), told)  # type: ignore[arg-type] # a fake has only what is used

    with meter.attempt("p"):
        call(clock, "Fit", "filter", 1.0)
        call(clock, "Fit", "score", 4.0)
        call(clock, "Taints", "filter", 2.0)
        assert told.points == []

    assert told.points == [("p", "filter", False, 3.0), ("p", "score", False, 4.0)]


def test_what_the_kernel_computes_for_several_plugins_is_shared_equally(clock: FakeClock, told: Told) -> None:
    meter = PluginTimer(clock, FixedRandomness(0, 1), told)  # type: ignore[arg-type] # a fake has only what is used

    def compute(answer: str) -> str:
        clock.time += 3.0
        return answer

    for _ in range(2):
        with meter.attempt("p"):
            assert replaced([("Fit", "score"), ("Balance", "score")], compute, "totals") == "totals"

    assert meter.counts == {"p": {("Fit", "score"): 2, ("Balance", "score"): 2}}
    assert told.calls == [("Fit", "score", False, 1.5), ("Balance", "score", False, 1.5)]
    assert told.points == [("p", "score", False, 3.0)]


def test_a_plugin_that_raises_is_timed_as_failed(clock: FakeClock, told: Told) -> None:
    meter = PluginTimer(clock, FixedRandomness(0), told)  # type: ignore[arg-type] # a fake has only what is used

    def break_down() -> None:
        with meter.attempt("p"), calling("Fit", "filter"):
            clock.time += 1.0
            raise ValueError

    with pytest.raises(PluginError, match="Fit"):
        break_down()

    assert told.calls == [("Fit", "filter", True, 1.0)]
    assert told.points == [("p", "filter", True, 1.0)]


async def test_the_binding_cycle_is_metered_as_its_attempt_and_nothing_else_is(
    clock: FakeClock, told: Told
) -> None:
    meter, go = PluginTimer(clock, FixedRandomness(0, 5), told), asyncio.Event()  # type: ignore[arg-type] # a fake has only what is used

    async def bind() -> None:
        await go.wait()
        call(clock, "Binder", "bind", 2.0)

    with meter.attempt("timed"):
        timed = asyncio.create_task(bind())
    with meter.attempt("counted"):
        counted = asyncio.create_task(bind())
    call(clock, "Binder", "bind", 7.0)  # somebody's who is no attempt, such as a plan of moves
    assert METER.get() is None
    go.set()
    await asyncio.gather(timed, counted)

    assert meter.counts == {"timed": {("Binder", "bind"): 1}, "counted": {("Binder", "bind"): 1}}
    assert told.points == [("timed", "bind", False, 2.0)]
