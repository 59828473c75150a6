"""Runs a full garbage collection every few minutes.

Python would run one only after eight million more allocations than deallocations (``process.THRESHOLDS``), so
a nearly idle process never would. Cut connections leave reference cycles, some 7 MiB per hour in a soak test.
"""

import gc
import time
from collections.abc import Callable

#: Seconds between two collections, and their maximum share of the time.
EVERY_S, SHARE = 300.0, 0.0005


def collect_until(stopped: Callable[[float], bool], clock: Callable[[], float] = time.perf_counter) -> None:
    """Collect periodically until stopped; during a collection no other thread runs.

    Args:
        stopped: Waits for a number of seconds; returns whether it was stopped within that time.
        clock: Seconds, to measure a collection with.
    """
    pause_s = EVERY_S
    while not stopped(pause_s):
        if not gc.isenabled():
            continue  # the first lists are read, and their objects stay
        began = clock()
        gc.collect()
        pause_s = max(EVERY_S, (clock() - began) / SHARE)
