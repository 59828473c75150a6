"""Computations in threads."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from plimsoll.app.machine.clock import SWITCH_S, ThreadComputer

WHO = contextvars.ContextVar("WHO", default="nobody")

HANGS = """
import asyncio, time
from plimsoll.app.machine.clock import ThreadComputer

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


async def test_the_lock_changes_hands_more_often_while_a_thread_computes() -> None:
    """The loop waits for it several times for each pod; afterwards all is as before."""
    before, computer = sys.getswitchinterval(), ThreadComputer()

    during = await asyncio.gather(*(computer.compute(sys.getswitchinterval) for _ in range(2)))

    assert during == [pytest.approx(SWITCH_S)] * 2
    assert sys.getswitchinterval() == before > SWITCH_S


def test_a_computation_that_hangs_does_not_keep_the_process() -> None:
    """SIGTERM ends the operator, whatever a plugin does."""
    assert subprocess.run([sys.executable, "-c", HANGS], timeout=300, check=False).returncode == 0
