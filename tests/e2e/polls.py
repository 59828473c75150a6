"""Waiting for what a user waits for: asked again and again, until a deadline."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

#: Seconds until something will never happen, on a machine with other work: most of it takes less than one.
PATIENCE_S = 300.0
#: Seconds between two looks: a long wait leaves the processors to what is awaited.
FIRST_PACE_S, LAST_PACE_S, GROWTH = 0.02, 0.25, 1.3


async def eventually(
    question: Callable[[], Awaitable[T]],
    holds: Callable[[T], object] = bool,
    within_s: float = PATIENCE_S,
) -> T:
    """The first answer that holds; fails with the last one that did not."""
    deadline = time.monotonic() + within_s
    pace_s = FIRST_PACE_S
    while True:
        answer = await question()
        if holds(answer):
            return answer
        assert time.monotonic() < deadline, f"still after {within_s:.0f} s: {answer!r}"
        await asyncio.sleep(pace_s)
        pace_s = min(pace_s * GROWTH, LAST_PACE_S)


async def throughout(
    question: Callable[[], Awaitable[T]], holds: Callable[[T], object], seconds: float
) -> None:
    """Make sure that every answer holds, for some seconds: for what must not happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = await question()
        assert holds(answer), f"meanwhile: {answer!r}"
        await asyncio.sleep(LAST_PACE_S)
