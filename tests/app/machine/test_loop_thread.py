"""A loop in another thread: results, errors, cancellation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from plimsoll.app.machine.loop_thread import LoopThread


async def test_work_runs_there_and_its_outcome_comes_back() -> None:
    """Results and errors alike."""

    async def where() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    async def broken() -> None:
        raise ValueError("no")

    async with LoopThread("election") as thread:
        assert await thread.run(where()) == "election"
        with pytest.raises(ValueError, match="no"):
            await thread.run(broken())


async def test_work_that_is_cancelled_has_ended_when_the_caller_goes_on() -> None:
    """So that nothing of it happens later: the lease is given away after the election has ended."""
    steps = []
    begun = threading.Event()

    async def slow() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            steps.append("ended")

    async with LoopThread("election") as thread:
        task = asyncio.create_task(thread.run(slow()))
        await asyncio.to_thread(begun.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        steps.append("gone on")

    assert steps == ["ended", "gone on"]


async def test_a_context_is_entered_and_left_there() -> None:
    """As a connection must be, which belongs to its loop."""
    threads = []

    @asynccontextmanager
    async def context() -> AsyncIterator[Any]:
        threads.append(threading.current_thread().name)
        yield "value"
        threads.append(threading.current_thread().name)

    async with LoopThread("election") as thread, thread.entered(context()) as value:
        assert value == "value"

    assert threads == ["election", "election"]
