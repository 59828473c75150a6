"""Garbage among old objects is found every few minutes, and less often where a look takes long."""

import gc
import os
import weakref
from pathlib import Path

from plimsoll.app.machine.garbage import EVERY_S, TRIM_S, collect_until, trim_until


class Connection:
    """Refers to itself, as transports and protocols do."""

    def __init__(self) -> None:
        self.itself = self


def test_an_old_cycle_is_freed() -> None:
    """One that has outlived the young generations."""
    connection = Connection()
    gc.collect()
    gone = weakref.ref(connection)
    del connection
    gc.collect(1)
    assert gone() is not None
    pauses: list[float] = []

    def stopped(pause_s: float) -> bool:
        pauses.append(pause_s)
        return len(pauses) > 1

    collect_until(stopped, iter((0.0, 0.01)).__next__)

    assert gone() is None
    assert pauses == [EVERY_S, EVERY_S]


def test_looks_that_take_long_are_rare() -> None:
    """One of half a second, every sixteen minutes."""
    pauses: list[float] = []

    def stopped(pause_s: float) -> bool:
        pauses.append(pause_s)
        return len(pauses) > 1

    collect_until(stopped, iter((10.0, 10.5)).__next__)

    assert pauses == [EVERY_S, 1000.0]


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_freed_pages_between_others_are_returned() -> None:
    """What is left of the tables of a large object; seldom, where it takes long."""
    kept = [bytes(8192) for _ in range(4_000)]
    del kept[:3990:2], kept[:1995:2], kept[:997:2]  # seven of eight
    before = resident()
    pauses: list[float] = []

    def stopped(pause_s: float) -> bool:
        pauses.append(pause_s)
        return len(pauses) > 1

    trim_until(stopped, iter((10.0, 10.5)).__next__)

    assert before - resident() > 10_000_000
    assert pauses == [TRIM_S, 500.0]
    assert len(kept) > 500
