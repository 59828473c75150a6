"""Computations in threads."""

import contextvars
import subprocess
import sys
import threading

import pytest

from plimsoll.app.clock import ThreadComputer

WHO = contextvars.ContextVar("WHO", default="nobody")

HANGS = """
import asyncio, time
from plimsoll.app.clock import ThreadComputer

async def main():
    asyncio.ensure_future(ThreadComputer().compute(lambda: time.sleep(60)))
    await asyncio.sleep(0.1)

asyncio.run(main())
"""


async def test_a_result_and_a_failure_come_back() -> None:
    """From another thread, which sees the context of the caller."""
    WHO.set("me")
    computer = ThreadComputer()

    thread, who = await computer.compute(lambda: (threading.current_thread(), WHO.get()))
    assert thread is not threading.current_thread()
    assert who == "me"
    with pytest.raises(ZeroDivisionError):
        await computer.compute(lambda: 1 // 0)


def test_a_computation_that_hangs_does_not_keep_the_process() -> None:
    """SIGTERM ends the operator, whatever a plugin does."""
    assert subprocess.run([sys.executable, "-c", HANGS], timeout=30, check=False).returncode == 0
