"""The work queue: unique keys, delays, retries, slices."""

import asyncio
import itertools
from typing import Any

import pytest

from roadstead.controllers.work_queue import FIRST_RETRY_S, WorkQueue
from roadstead.values.status_errors import StatusError


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Any:
    return Clock()


@pytest.fixture
def queue(clock: Any) -> Any:
    return WorkQueue(clock)


def test_reconciles_a_key_once_however_often_it_is_added(queue: Any) -> None:
    """A thousand changes of one object are one reconcile."""
    seen: list[Any] = []
    for _ in range(1000):
        queue.add(seen.append, "a")
    queue.add(seen.append, "b")

    queue.run_due()

    assert seen == ["a", "b"]


def test_waits_until_a_key_is_due(queue: Any, clock: Any) -> None:
    """A delayed key is reconciled when its time has come, not before."""
    seen: list[Any] = []
    queue.add(seen.append, "a", after_s=5)

    queue.run_due()
    assert seen == []
    assert queue.next_due_s() == 5
    clock.now += 5
    queue.run_due()

    assert seen == ["a"]
    assert queue.next_due_s() is None


def test_of_two_delays_the_earlier_counts(queue: Any, clock: Any) -> None:
    """A key that is wished for twice comes at the earlier time, and only then."""
    seen: list[Any] = []
    queue.add(seen.append, "a", after_s=9)
    queue.add(seen.append, "a", after_s=2)
    queue.add(seen.append, "a", after_s=7)

    clock.now += 2
    queue.run_due()
    clock.now += 100
    queue.run_due()

    assert seen == ["a"]


def test_a_restarted_delay_replaces_an_earlier_one(queue: Any, clock: Any) -> None:
    """Who changes an object twice in a row is not overtaken between the two."""
    seen: list[Any] = []
    queue.add(seen.append, "a", 0.05, restart=True)
    clock.now += 0.04
    queue.add(seen.append, "a", 0.05, restart=True)
    clock.now += 0.04
    queue.run_due()
    assert seen == []

    clock.now += 0.04
    queue.run_due()
    assert seen == ["a"]


def test_a_key_that_adds_itself_runs_again(queue: Any) -> None:
    """What is added while it runs is not lost."""
    seen: list[Any] = []

    def twice(key: Any) -> None:
        seen.append(key)
        if len(seen) == 1:
            queue.add(twice, key)

    queue.add(twice, "a")
    queue.run_due()

    assert seen == ["a", "a"]


@pytest.mark.parametrize("error", [StatusError(409, "Conflict", "stale"), ValueError("malformed")])
def test_a_failure_costs_only_its_own_key_a_delay(queue: Any, clock: Any, error: Any) -> None:
    """Other keys go on; the failed key is retried after a delay that doubles."""
    seen: list[Any] = []

    def reconcile(key: Any) -> None:
        seen.append(key)
        if key == "bad":
            raise error

    queue.add(reconcile, "bad")
    queue.add(reconcile, "good")
    queue.run_due()
    assert seen == ["bad", "good"]

    waits = []
    for _ in range(3):
        waits.append(queue.next_due_s())
        clock.now += waits[-1] + 1e-6
        queue.run_due()

    assert seen == ["bad", "good", "bad", "bad", "bad"]
    assert waits == pytest.approx([FIRST_RETRY_S, 2 * FIRST_RETRY_S, 4 * FIRST_RETRY_S], rel=1e-3)


def test_a_slow_key_rests_and_lets_others_through(queue: Any, clock: Any) -> None:
    """A reconcile that took 100 ms does not run again in the next 400 ms."""
    seen: list[Any] = []

    def slow(key: Any) -> None:
        seen.append(key)
        clock.now += 0.1
        queue.add(slow, key)

    queue.add(slow, "a")
    queue.run_due(budget_s=0.0)
    queue.run_due()

    assert seen == ["a"]
    assert queue.next_due_s() == pytest.approx(0.4)


def test_stops_at_the_end_of_its_slice(queue: Any, clock: Any) -> None:
    """Work beyond the budget is left for the next slice."""
    seen: list[Any] = []

    def reconcile(key: Any) -> None:
        seen.append(key)
        clock.now += 0.003

    for number in range(10):
        queue.add(reconcile, str(number))

    assert queue.run_due(budget_s=0.004) == 2
    assert queue.next_due_s() == 0.0


async def test_runs_in_the_event_loop_until_cancelled() -> None:
    """The running queue reconciles what is added, now or later, and lets the loop turn between slices."""
    ticks = itertools.count()
    queue = WorkQueue(lambda: next(ticks) * 0.001)
    done = asyncio.Event()
    seen: list[Any] = []

    def reconcile(key: Any) -> None:
        seen.append(key)
        if len(seen) == 50:
            done.set()

    worker = asyncio.create_task(queue.run())
    for number in range(50):
        queue.add(reconcile, str(number), after_s=0.001 * (number % 3))
    async with asyncio.timeout(300):
        await done.wait()
    worker.cancel()

    assert sorted(seen, key=int) == [str(number) for number in range(50)]


def test_keys_that_have_rested_are_forgotten(queue: Any, clock: Any) -> None:
    """Pods come and go, and their keys never come back."""

    def reconcile(_key: str) -> None:
        clock.now += 0.1

    for number in range(100):
        queue.add(reconcile, f"pod-{number}")
        queue.run_due()
        clock.now += 1.0

    assert len(queue._resting) == 1
