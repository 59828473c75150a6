"""A signal wakes all that wait, and no reader misses a change that it has not seen."""

import asyncio

from plimsoll.testing.fakes import settled
from plimsoll.timing.signal import Signal


async def test_all_that_wait_are_woken() -> None:
    """One notification serves every reader."""
    signal = Signal()
    readers = [asyncio.ensure_future(signal.wait()) for _ in range(3)]
    await settled()
    assert not any(reader.done() for reader in readers)

    signal.notify()

    assert await asyncio.gather(*readers) == [1, 1, 1]


async def test_a_notification_before_the_wait_is_not_missed() -> None:
    """A reader that passes the count that it has seen returns immediately when there was one since."""
    signal = Signal()
    seen = signal.count
    signal.notify()
    signal.notify()

    assert await asyncio.wait_for(signal.wait(seen), 60) == 2


async def test_without_a_count_only_a_later_notification_wakes() -> None:
    """What happened before the wait is the past."""
    signal = Signal()
    signal.notify()
    reader = asyncio.ensure_future(signal.wait())
    await settled()

    assert not reader.done()

    signal.notify()
    assert await reader == 2


async def test_until_returns_only_when_the_condition_holds() -> None:
    """It is checked immediately, and after each notification."""
    signal, state = Signal(), {"synced": 0}
    reader = asyncio.ensure_future(signal.until(lambda: state["synced"] == 2))
    for expected in (1, 2):
        await settled()
        assert not reader.done()
        state["synced"] = expected
        signal.notify()

    await reader
    await signal.until(lambda: True)


async def test_a_cancelled_reader_leaves_nothing_behind() -> None:
    """The others are woken as if it had never waited."""
    signal = Signal()
    leaving, staying = asyncio.ensure_future(signal.wait()), asyncio.ensure_future(signal.wait())
    await settled()

    leaving.cancel()
    await settled()
    assert len(signal._waiters) == 1
    signal.notify()

    assert await staying == 1
    assert leaving.cancelled()
