"""Looks for garbage among all objects every few minutes.

Python would after eight million objects more than were freed (``process.THRESHOLDS``), so a process
that is nearly idle never does. Connections that are cut leave cycles, some 7 MiB an hour in a soak.
"""

import gc
import time
from collections.abc import Callable

#: Seconds between two looks, and the share of the time that they may take.
EVERY_S, SHARE = 300.0, 0.0005


def collect_until(stopped: Callable[[float], bool], clock: Callable[[], float] = time.perf_counter) -> None:
    """Look for garbage until it is stopped; during a look no other thread runs.

    Args:
        stopped: Waits so many seconds; whether it was stopped in that time.
        clock: Seconds, to measure a look with.
    """
    pause_s = EVERY_S
    while not stopped(pause_s):
        if not gc.isenabled():
            continue  # the first lists are read, and all of it stays
        began = clock()
        gc.collect()
        pause_s = max(EVERY_S, (clock() - began) / SHARE)
