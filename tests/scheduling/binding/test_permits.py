"""Pods that wait at Permit: allowed, rejected and timed out."""

import asyncio
from asyncio import Task
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from plimsoll.framework import SUCCESS
from plimsoll.scheduling.binding.permits import HeldPod, Permits, duration
from plimsoll.testing.builders import a_pod, the_info
from plimsoll.testing.fakes import FakeClock, settled


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def waiting(clock: FakeClock) -> AsyncIterator[Any]:
    """A function that makes a pod wait; returns it with the task that ends with its verdict."""
    permits = Permits(clock)
    tasks = []

    def wait(**timeouts: Any) -> tuple[Permits, HeldPod, Task[Any]]:
        held = permits.hold(the_info(a_pod("p")), "n1", timeouts)
        tasks.append(asyncio.ensure_future(permits.verdict(held)))
        return permits, held, tasks[-1]

    yield wait
    for task in tasks:
        task.cancel()


async def test_a_pod_goes_when_all_who_hold_it_have_allowed_it(waiting: Callable[..., Any]) -> None:
    """One of two is not enough; allowing twice, or by a stranger, does not count."""
    permits, held, verdict = waiting(A=10, B=10)

    held.allow("A")
    held.allow("A")
    held.allow("C")
    await settled()
    assert not verdict.done()
    assert dict(held.holders) == {"B": 10}
    held.allow("B")

    assert await verdict is SUCCESS
    assert permits.find(held.pod.uid) is None


async def test_the_first_rejection_counts(waiting: Callable[..., Any]) -> None:
    """Later answers, of the others and of its own, do not count."""
    _, held, verdict = waiting(A=10, B=10)

    held.reject("A", "no room for the gang")
    held.reject("B", "too late")
    held.allow("A")
    held.allow("B")

    status = await verdict
    assert (status.is_rejected, status.plugin, status.reasons) == (True, "A", ("no room for the gang",))


async def test_the_first_timeout_rejects(waiting: Callable[..., Any], clock: FakeClock) -> None:
    """The sentence names the plugin and how long was waited."""
    permits, held, verdict = waiting(A=90, B=20)

    await clock.advance(19.5)
    assert not verdict.done()
    assert list(permits) == [held]
    await clock.advance(0.5)

    status = await verdict
    assert status.plugin == "B"
    assert status.message == "rejected due to timeout after waiting 20s at plugin B"
    assert not list(permits)


async def test_the_timeout_of_a_plugin_that_has_allowed_does_not_count(
    waiting: Callable[..., Any], clock: FakeClock
) -> None:
    """Its timer stopped; the next one goes on from the beginning of the wait."""
    _, held, verdict = waiting(A=90, B=20)

    await clock.advance(5)
    held.allow("B")
    await clock.advance(80)
    assert not verdict.done()
    await clock.advance(5)

    assert (await verdict).message == "rejected due to timeout after waiting 1m30s at plugin A"


async def test_no_pod_waits_longer_than_a_quarter_of_an_hour(
    waiting: Callable[..., Any], clock: FakeClock
) -> None:
    """A longer request is cut."""
    _, _, verdict = waiting(A=86_400)

    await clock.advance(15 * 60)

    assert (await verdict).message == "rejected due to timeout after waiting 15m0s at plugin A"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0, "0s", id="zero"),
        pytest.param(0.5, "500ms", id="milliseconds"),
        pytest.param(1.25, "1.25s", id="fraction"),
        pytest.param(60, "1m0s", id="minute"),
        pytest.param(3600, "1h0m0s", id="hour"),
    ],
)
def test_durations_read_as_go_prints_them(seconds: float, text: str) -> None:
    """Users search for the sentence."""
    assert duration(seconds) == text
