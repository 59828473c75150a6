"""Runs a full garbage collection every few minutes, and returns freed pages to the system more often.

Python would run one only after eight million more allocations than deallocations (``process.THRESHOLDS``), so
a nearly idle process never would. Cut connections leave reference cycles, some 7 MiB per hour in a soak test.

glibc keeps freed pages that lie between others for ever: tables of large objects, up to 30 MB in a process of
100 MB.
"""

import ctypes
import gc
import platform
import time
from collections.abc import Callable

#: Seconds between two collections, and their maximum share of the time.
EVERY_S, SHARE = 300.0, 0.0005

#: The same for freed pages, while other threads run; it takes 6 ms for 200 MB, and 30 ms for 800 MB.
TRIM_S, TRIM_SHARE = 20.0, 0.001


def collect_until(stopped: Callable[[float], bool], clock: Callable[[], float] = time.perf_counter) -> None:
    """Collect periodically until stopped; during a collection no other thread runs.

    Args:
        stopped: Waits for a number of seconds; returns whether it was stopped within that time.
        clock: Seconds, to measure a collection with.
    """
    # Before the collector is on, the first lists are read, and their objects stay.
    _tidy_until(stopped, clock, gc.collect, EVERY_S, SHARE, is_due=gc.isenabled)


def trim_until(stopped: Callable[[float], bool], clock: Callable[[], float] = time.perf_counter) -> None:
    """Return freed pages to the system periodically until stopped; arguments as of :func:`collect_until`."""
    if platform.libc_ver()[0] != "glibc":
        return
    trim = ctypes.CDLL(None).malloc_trim
    _tidy_until(stopped, clock, lambda: trim(0), TRIM_S, TRIM_SHARE)


def _tidy_until(
    stopped: Callable[[float], bool],
    clock: Callable[[], float],
    tidy: Callable[[], object],
    every_s: float,
    share: float,
    *,
    is_due: Callable[[], bool] = lambda: True,
) -> None:
    """Tidy every so many seconds, and less often where that takes a greater share of the time."""
    pause_s = every_s
    while not stopped(pause_s):
        if is_due():
            began = clock()
            tidy()
            pause_s = max(every_s, (clock() - began) / share)
