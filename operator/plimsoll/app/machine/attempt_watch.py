"""Watches the processor time of scheduling attempts from another thread."""

import threading
import time
from collections.abc import Callable
from weakref import ReferenceType, ref

from plimsoll.engine.plugin_calls import AttemptBudget

#: Seconds between two looks.
LOOK_S = 0.25


class AttemptWatch:
    """Notes attempts that take more processor time than they may.

    Args:
        cpu_s: Returns the processor time of the thread that makes the attempts, in seconds.
    """

    def __init__(self, cpu_s: Callable[[], float]) -> None:
        self._cpu_s = cpu_s
        self._seen = 0
        self._began = 0.0

    def look(self, budget: AttemptBudget) -> None:
        """Note the present attempt if it has taken too much since an earlier look."""
        attempt = budget.attempt
        if not attempt:
            return
        now = self._cpu_s()
        if attempt != self._seen:
            self._seen, self._began = attempt, now
        elif budget.used_s + now - self._began > budget.most_s:
            budget.spent = attempt


def watch_attempts(budget: AttemptBudget) -> None:
    """Watch the attempts that the calling thread makes, in a thread of its own."""
    clock = time.pthread_getcpuclockid(threading.get_ident())
    watch, watched = AttemptWatch(lambda: time.clock_gettime(clock)), ref(budget)
    threading.Thread(target=_run, args=(watch, watched), name="attempt watch", daemon=True).start()


def _run(watch: AttemptWatch, watched: "ReferenceType[AttemptBudget]") -> None:
    while (budget := watched()) is not None:
        watch.look(budget)
        del budget
        time.sleep(LOOK_S)
