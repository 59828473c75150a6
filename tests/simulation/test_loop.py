"""The virtual event loop: time moves by timers, the seed orders what is ready, nothing leaves the process."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from simulation.loop import PROCESS, EndlessRunError, OutsideWorldError, StandstillError, VirtualLoop
from simulation.replica import Life, ReplicaClock


def ran(work: Coroutine[Any, Any, Any], seed: int = 1) -> Any:
    """What it returns, on a loop of its own."""
    loop = VirtualLoop(Random(seed))
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


async def order(count: int) -> list[int]:
    """The order in which tasks that are ready together run."""
    seen: list[int] = []

    async def note(number: int) -> None:
        seen.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(note(number))
    return seen


def test_an_hour_takes_no_time_and_ends_on_the_second() -> None:
    """Time moves to the next timer."""

    async def wait() -> float:
        await asyncio.sleep(3600.0)
        return asyncio.get_running_loop().time()

    assert ran(wait()) == pytest.approx(3600.0, abs=1e-3)


def test_the_seed_orders_what_is_ready() -> None:
    """Equal seeds order equally, others differ."""
    orders = [tuple(ran(order(8), seed)) for seed in (1, 1, 2)]

    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(8))


@pytest.mark.parametrize(
    "escape",
    [
        pytest.param(lambda: asyncio.to_thread(int), id="thread"),
        pytest.param(lambda: asyncio.open_connection("127.0.0.1", 9), id="socket"),
        pytest.param(lambda: asyncio.create_subprocess_exec("true"), id="process"),
    ],
)
def test_what_would_leave_the_process_is_refused(escape: Any) -> None:
    """With an error, not with a run that cannot be repeated."""

    async def leave() -> None:
        await escape()

    with pytest.raises(OutsideWorldError):
        ran(leave())


def test_a_wait_that_nothing_ends_is_found() -> None:
    """No timer, and nothing ready."""

    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StandstillError):
        ran(wait())


def test_a_run_without_an_end_is_given_up() -> None:
    """Each step may wait for a timer, so that time goes on, and the run would still take hours."""

    async def again() -> None:
        asyncio.get_running_loop().most_steps = 1000  # type: ignore[attr-defined] # a loop in virtual time
        for _ in itertools.count():
            await asyncio.sleep(1.0)

    with pytest.raises(EndlessRunError, match="given up after 1,000 steps"):
        ran(again())


def test_a_process_that_is_held_stands_still_at_any_await_and_goes_on() -> None:
    """Its timers are over by then, as after SIGCONT."""

    async def scene() -> list[float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        life, ticks = Life("a", 0), list[float]()

        async def tick() -> None:
            while True:
                await asyncio.sleep(1.0)
                ticks.append(round(loop.time(), 2))

        context = contextvars.copy_context()
        context.run(PROCESS.set, life)
        task = loop.create_task(tick(), context=context)
        await asyncio.sleep(2.5)
        life.is_held = True
        await asyncio.sleep(10.0)
        loop.release(life)
        await asyncio.sleep(2.0)
        task.cancel()
        return ticks

    assert ran(scene()) == [1.0, 2.0, 12.5, 13.5]


@pytest.mark.parametrize("is_dead", [False, True])
def test_a_task_of_a_living_process_that_fails_unseen_is_noted(is_dead: bool) -> None:
    """What a killed process had not looked at went with its memory."""
    life = Life("red", 0)
    loop = VirtualLoop(Random(1))

    async def fail() -> None:
        raise ValueError("unseen")

    async def begin() -> None:
        context = contextvars.copy_context()
        context.run(PROCESS.set, life)
        loop.create_task(fail(), name="failing", context=context)
        await asyncio.sleep(1)

    try:
        life.is_dead = is_dead
        loop.run_until_complete(begin())
        gc.collect()
    finally:
        loop.close()

    noted = ["a task of red.0, failing, has failed unseen: ValueError('unseen')"]
    assert loop.unseen == ([] if is_dead else noted)


def test_a_clock_whose_rate_changes_in_a_slow_step_counts_the_step_once() -> None:
    """Else a lease is taken seconds too early, without a fault of the operator (seed 893)."""
    loop = VirtualLoop(Random(1))
    clock = ReplicaClock(loop, 0.0, 1.1)
    process = PROCESS.set(Life("red", 0))
    try:
        clock.slow_down(1, 12.0, lambda: None)
        after_the_step = clock.monotonic()
        clock.run_at(1.0)

        assert clock.monotonic() == after_the_step == pytest.approx(12.0 * 1.1)
    finally:
        PROCESS.reset(process)
        loop.close()
