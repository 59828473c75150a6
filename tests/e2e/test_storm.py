"""Hundreds of unschedulable pods are reported once each, at a bounded rate, without delaying others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from e2e.polls import eventually
from plimsoll.scheduling.conditions import BURST, PER_S

if TYPE_CHECKING:
    from e2e.conftest import StartGuarded
    from e2e.door import Call

pytestmark = pytest.mark.e2e

#: How many, and how many are made concurrently.
STORM, CONCURRENT = 800, 25

CONDITION, EVENT = ("patch", "", "pods/status"), ("create", "events.k8s.io", "events")


async def test_a_storm_of_unschedulable_pods_is_no_storm_of_writes(guarded: StartGuarded) -> None:
    """One condition and one event a pod; tried again for the same reason, hardly anything."""
    written: Counter[Call] = Counter()

    def count(call: Call) -> str:
        written[call] += 1
        return ""

    async with guarded("enforce", count) as (scene, _, operator):
        await scene.node("small", cpu="1")
        await scene.scheduling()
        await scene.pod("seated", cpu="100m")
        await scene.until_bound("seated")

        def attempts() -> float:
            return operator.metric("plimsoll_scheduler_schedule_attempts_total", result="unschedulable")

        began = time.monotonic()
        slots = asyncio.Semaphore(CONCURRENT)

        async def make(number: int) -> None:
            async with slots:
                await scene.pod(f"storm-{number}", cpu="950m")

        await asyncio.gather(*(make(number) for number in range(STORM)))
        await scene.pod("ordinary", cpu="1m")
        await scene.until_bound("ordinary")
        allowed = BURST + PER_S * (time.monotonic() - began) * 1.1 + 20
        assert written[CONDITION] <= allowed
        assert written[EVENT] <= allowed

        await eventually(lambda: _value(written[CONDITION]), lambda found: found >= STORM)
        await eventually(lambda: _value(written[EVENT]), lambda found: found >= STORM)
        tried = await asyncio.to_thread(attempts)
        before = Counter(written)
        await scene.speaker.request("DELETE", scene.path("pods/ordinary"))
        await eventually(lambda: asyncio.to_thread(attempts), lambda now: now >= tried + STORM)
        await asyncio.sleep(2.0)  # what was going to be written would be on its way by now

        again = Counter(written) - before
        assert again[CONDITION] <= 20
        assert again[EVENT] <= 20
        assert await operator.stop() == 0


async def _value(number: int) -> int:
    return number
