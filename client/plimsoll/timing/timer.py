"""Calls functions at their deadlines, all from one task.

The task sleeps until the earliest deadline, or until an earlier one is set. Functions are called in the order
of their deadlines, and for one deadline in the order in which they were set; they must not block.
"""

import asyncio
import heapq
from collections.abc import Callable, Hashable

from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: Maximum number of cancelled entries in the heap before it is rebuilt.
STALE_ENTRIES = 1024


class Timer:
    """Functions to call at deadlines, by key; requires a running ``run``.

    Args:
        clock: The clock; deadlines are seconds of its monotonic time.
        observer: Notified of functions that raise.
    """

    def __init__(self, clock: Clock, observer: Observer) -> None:
        self._clock = clock
        self._observer = observer
        self._calls: dict[Hashable, tuple[int, Callable[[], None]]] = {}  #: with the number of the entry
        self._heap: list[tuple[float, int, Hashable]] = []
        self._entries = 0
        self._sooner = Signal()

    def __len__(self) -> int:
        """The number of deadlines."""
        return len(self._calls)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._calls

    def set(self, key: Hashable, due: float, call: Callable[[], None]) -> None:
        """Call a function at a deadline, once; an earlier deadline of the same key is cancelled."""
        earliest = self.next_due()
        self._entries += 1
        self._calls[key] = (self._entries, call)
        heapq.heappush(self._heap, (due, self._entries, key))
        if len(self._heap) > 2 * len(self._calls) + STALE_ENTRIES:
            self._heap = [entry for entry in self._heap if self._is_set(entry)]
            heapq.heapify(self._heap)
        if earliest is None or due < earliest:
            self._sooner.notify()

    def cancel(self, key: Hashable) -> None:
        """Remove a key's deadline, if it has one."""
        self._calls.pop(key, None)

    def next_due(self) -> float | None:
        """The earliest deadline; None without one."""
        while self._heap and not self._is_set(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    async def run(self) -> None:
        """Call functions as they become due, until cancelled."""
        while True:
            seen = self._sooner.count
            self.call_due()
            due = self.next_due()
            if due is None:
                await self._sooner.wait(seen)
            elif (remaining_s := due - self._clock.monotonic()) <= 0.0:
                await asyncio.sleep(0)  # a function has set a deadline that is past already
            else:
                await first_of(self._clock.sleep(remaining_s), self._sooner.wait(seen))

    def call_due(self) -> None:
        """Call functions that are due; deadlines that these set wait until other tasks have run."""
        now, last = self._clock.monotonic(), self._entries
        while (due := self.next_due()) is not None and due <= now and self._heap[0][1] <= last:
            key = self._heap[0][2]
            _, call = self._calls.pop(key)
            try:
                call()
            except Exception as exc:  # noqa: BLE001 - one function's failure must not stop the timer
                self._observer.failed(f"deadline of {key}", repr(exc))

    def _is_set(self, entry: tuple[float, int, Hashable]) -> bool:
        _, number, key = entry
        return key in self._calls and self._calls[key][0] == number
