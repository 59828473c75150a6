"""Queues the keys that controllers and kubelets reconcile.

Place in the flow: an object changes -> the handler of a subscription adds a key -> the queue calls
``reconcile(key)`` -> the controller reads objects and writes changes.

A handler runs inside another write, so it may only add keys. Keys are unique: a thousand changes of one
ReplicaSet's pods are one reconcile. Work is done in slices of a few milliseconds between which the event
loop serves requests, so ten thousand pods that start simultaneously do not stall the server. A reconcile
that is slow, because its object owns thousands of pods, waits before it runs again.

A reconcile whose write waits for a webhook ends there and is run again with the answer, on the objects of
that moment; reconciles are made to be repeated.
"""

import asyncio
import heapq
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Protocol

from roadstead.store.api import StatusError
from roadstead.store.progress import Progress, Unanswered

logger = logging.getLogger(__name__)

Reconcile = Callable[[str], None]
Task = tuple[Reconcile, str]

SLICE_S = 0.004
"""Seconds for which the queue works before the event loop serves requests."""
FIRST_RETRY_S, LAST_RETRY_S = 0.02, 20.0
"""A reconcile that fails is tried again after the first delay, doubled each time up to the last."""
REST_FACTOR, LONGEST_REST_S = 4.0, 1.0
"""After a reconcile its key rests for so many times as long as it took, and not longer than that."""


class Asking(Protocol):
    """Lets the writes of a reconcile ask webhooks."""

    def trying(self, progress: Progress) -> AbstractContextManager[None]:
        """As ``Api.trying``."""
        ...

    def answer(self, unanswered: Unanswered, progress: Progress) -> Awaitable[None]:
        """As ``WebhookCaller.answer``."""
        ...


class WorkQueue:
    """Unique keys, each with the function that reconciles it, due now or later.

    Args:
        clock: the time in seconds since the epoch; tests pass their own.
        asking: lets writes ask webhooks; without it they ask none.
    """

    def __init__(self, clock: Callable[[], float] = time.time, asking: Asking | None = None) -> None:
        self.clock = clock
        self._asking = asking
        self._progress: dict[Task, Progress] = {}
        self._waiting: dict[Task, asyncio.Task[None]] = {}
        self._due: dict[Task, None] = {}
        self._later: dict[Task, float] = {}
        self._heap: list[tuple[float, int, Task]] = []
        self._failures: dict[Task, int] = {}
        self._resting: dict[Task, float] = {}
        self._sequence = itertools.count()
        self._wake = asyncio.Event()

    def add(self, reconcile: Reconcile, key: str, after_s: float = 0.0, *, restart: bool = False) -> None:
        """Queue ``reconcile(key)``; of several delays the earliest counts, or this one with ``restart``."""
        task = (reconcile, key)
        if restart:
            self._due.pop(task, None)
            self._later.pop(task, None)
        if task in self._due:
            return
        now = self.clock()
        at = now + after_s
        if rest := self._resting.get(task):
            at = max(at, rest)
        if at <= now:
            self._later.pop(task, None)
            self._due[task] = None
        elif at < self._later.get(task, float("inf")):
            self._later[task] = at
            heapq.heappush(self._heap, (at, next(self._sequence), task))
        else:
            return
        self._wake.set()

    def run_due(self, budget_s: float = float("inf")) -> int:
        """Reconcile due keys for about ``budget_s``; return their number."""
        count, end = 0, self.clock() + budget_s
        self._promote()
        while self._due:
            task = next(iter(self._due))
            del self._due[task]
            self._run(task)
            count += 1
            if self.clock() >= end:
                break
            if not self._due:
                self._promote()
        return count

    def wake(self) -> None:
        """Look again at what is due, after the clock was moved."""
        self._wake.set()

    def next_due_s(self) -> float | None:
        """Seconds until a key is due: 0 now, None never."""
        if self._due:
            return 0.0
        while self._heap and self._later.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - self.clock()) if self._heap else None

    async def run(self) -> None:
        """Reconcile until cancelled."""
        try:
            while True:
                self._wake.clear()
                wait_s = self.next_due_s()
                if wait_s == 0.0:
                    self.run_due(SLICE_S)
                    await asyncio.sleep(0)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()
        finally:
            for waiting in self._waiting.values():
                waiting.cancel()

    def _promote(self) -> None:
        """Move keys that have become due from later to now."""
        now = self.clock()
        while self._heap and self._heap[0][0] <= now:
            at, _, task = heapq.heappop(self._heap)
            if self._later.get(task) == at:
                del self._later[task]
                self._due[task] = None

    def _run(self, task: Task) -> None:
        """Reconcile one key; a failure delays that key only."""
        reconcile, key = task
        self._resting.pop(task, None)
        started = self.clock()
        if task in self._waiting:
            return  # the answers queue it
        progress = self._progress.pop(task, None) or Progress()
        try:
            with self._trying(progress):
                reconcile(key)
        except Unanswered as unanswered:
            answers = self._get_answers(task, progress, unanswered)
            self._waiting[task] = asyncio.create_task(answers, name="answers of webhooks")
        except StatusError as error:
            logger.debug("%s %s: %s", reconcile.__qualname__, key, error)
            self._retry(task)
        except Exception:
            logger.exception("%s %s", reconcile.__qualname__, key)
            self._retry(task)
        else:
            self._failures.pop(task, None)
            self._rest(task, self.clock() - started)

    def _trying(self, progress: Progress) -> AbstractContextManager[None]:
        return nullcontext() if self._asking is None else self._asking.trying(progress)

    async def _get_answers(self, task: Task, progress: Progress, unanswered: Unanswered) -> None:
        """Get the answers that a reconcile waits for, and queue it again."""
        assert self._asking is not None
        try:
            await self._asking.answer(unanswered, progress)
        finally:
            self._progress[task] = progress
            del self._waiting[task]
            self.add(*task)

    def _retry(self, task: Task) -> None:
        """Schedule the next attempt of a failed task."""
        failures = self._failures.get(task, 0)
        self._failures[task] = failures + 1
        self.add(*task, after_s=min(FIRST_RETRY_S * 2 ** min(failures, 16), LAST_RETRY_S))

    def _rest(self, task: Task, took_s: float) -> None:
        """Delay the next run of a slow task, also if it was queued while it ran."""
        rest_s = min(took_s * REST_FACTOR, LONGEST_REST_S)
        if rest_s < SLICE_S:
            return
        now = self.clock()
        while self._resting and next(iter(self._resting.values())) <= now:
            del self._resting[next(iter(self._resting))]  # otherwise keys of deleted objects would stay
        self._resting[task] = now + rest_s
        if task in self._due:
            del self._due[task]
            self.add(*task)
