"""Supervision as seen by the probes: ended tasks, a hanging main loop, a shutdown that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from plimsoll.app import supervision as module
from plimsoll.app.machine.machine import Machine
from plimsoll.app.supervision import BEAT_S, STALLED_S, STUCK_S, Supervision
from plimsoll.testing.fakes import FakeClock, RememberingObserver, settled


async def for_ever() -> None:
    """A task that runs on."""
    await asyncio.Event().wait()


@pytest.fixture
async def scene() -> AsyncIterator[Any]:
    """A supervised process and its clock; tasks end with the test."""
    clock = FakeClock()
    ended: list[Any] = []
    one = Supervision(Machine(clock, terminate=ended.append), RememberingObserver())
    yield one, clock, ended
    await one.cancel()


async def test_a_process_whose_tasks_run_is_well(scene: tuple[Supervision, FakeClock, list[Any]]) -> None:
    """Nothing to say."""
    one, _, _ = scene
    one.begin("decisions", for_ever())
    assert (one.problem(), one.unready(), one.hindrance()) == ("", "", "")


@pytest.mark.parametrize("how", ["raises", "returns", "is cancelled"])
async def test_a_task_that_has_ended_makes_the_process_unready_and_broken(
    scene: tuple[Supervision, FakeClock, list[Any]], how: str
) -> None:
    """However it ended, its work is not done any more."""
    one, _, _ = scene

    async def work() -> None:
        if how == "raises":
            raise ValueError("the list is broken")
        if how == "is cancelled":
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    one.begin("other", for_ever())
    one.begin("watch of pods", work())
    async with asyncio.timeout(300):
        await one.until_one_ends(asyncio.Event())

    said = {"raises": "the list is broken", "returns": "without an error", "is cancelled": "cancelled"}[how]
    assert one.problem() == f"watch of pods has ended: {said}"
    assert one.unready() == one.problem()
    assert [name for name, _ in one.ended] == ["watch of pods"]


async def test_a_failure_that_is_no_task_of_ours_ends_the_process(
    scene: tuple[Supervision, FakeClock, list[Any]],
) -> None:
    """As when kopf says that a watcher of its own has failed, which it does not miss."""
    one, _, _ = scene
    one.begin("decisions", for_ever())
    one.fail("Watcher for schedulingpolicies has failed: no such luck")
    async with asyncio.timeout(300):
        await one.until_one_ends(asyncio.Event())

    assert one.problem() == "Watcher for schedulingpolicies has failed: no such luck"


async def test_a_main_loop_that_hangs_is_not_ready_and_then_broken_and_leads_no_more(
    scene: tuple[Supervision, FakeClock, list[Any]],
) -> None:
    """The probes and the election run in another thread: somebody must tell them."""
    one, clock, _ = scene
    clock.time += STALLED_S + 1
    assert one.unready() == "the event loop has not run for 11 s"
    assert (one.problem(), one.hindrance()) == ("", "")
    clock.time += STUCK_S
    assert one.problem() == one.hindrance() == "the event loop has not run for 71 s"

    task = asyncio.create_task(one.beat())
    await clock.advance(BEAT_S)
    assert (one.problem(), one.unready(), one.hindrance()) == ("", "", "")
    task.cancel()


async def test_the_delay_of_the_loops_is_reported(scene: tuple[Supervision, FakeClock, list[Any]]) -> None:
    """To the metrics, and in words for a renewal that was late."""
    one, clock, _ = scene
    told = []
    one._observer.loop_lagged = lambda loop, seconds: told.append((loop, seconds))  # type: ignore[method-assign] # replaced for this test
    tasks = [asyncio.create_task(one.beat()), asyncio.create_task(one.measure())]
    await clock.advance(BEAT_S)
    clock.time += 3
    await clock.advance(BEAT_S)
    for task in tasks:
        task.cancel()

    assert [round(seconds, 3) for loop, seconds in told if loop == "main"][:2] == [0, 2.5]
    assert {loop for loop, _ in told} == {"main", "election"}
    assert "its main loop was up to 2.5 s late" in one.pressure()


async def test_the_worst_delay_of_the_last_half_minute_is_named(
    scene: tuple[Supervision, FakeClock, list[Any]],
) -> None:
    """Of several the longest, as long as it is not older; a beat on time hides none."""
    one, clock, _ = scene
    task = asyncio.create_task(one.beat())
    await clock.advance(BEAT_S)
    said = []
    for late_s in (5.0, 2.0, 0.0, 18.0, 0.0, 0.0, 40.0):
        clock.time += late_s
        await clock.advance(BEAT_S)
        said.append(one.pressure().partition("was up to ")[2].partition(" s late")[0])
    task.cancel()

    assert said[:4] == ["4.5", "4.5", "4.5", "17.5"]


async def test_a_process_that_does_not_end_in_time_is_ended(
    scene: tuple[Supervision, FakeClock, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a failure, whatever it waits for: no zombie stays behind."""
    one, _, ended = scene
    monkeypatch.setattr(module, "END_S", 0.05)
    one.end()
    one.end()
    assert one.unready() == "ending"
    assert one.problem() == ""
    async with asyncio.timeout(300):
        while not ended:  # noqa: ASYNC110 - a thread's doing
            await asyncio.sleep(0.01)
    assert ended == [1]


async def test_a_task_that_was_replaced_may_end(scene: tuple[Supervision, FakeClock, list[Any]]) -> None:
    """Another one is watched under its name, such as after a second login of kopf."""
    one, _, _ = scene
    first = asyncio.create_task(for_ever())
    one.watch("kopf's login", first)
    one.watch("kopf's login", one.begin("other", for_ever()))
    waiting = asyncio.create_task(one.until_one_ends(asyncio.Event()))
    first.cancel()
    await settled()

    assert not waiting.done()
    one.fail("over")
    await settled()
    assert waiting.done()
