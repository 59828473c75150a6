"""The scheduling loop: pops one pod after the other and tries it.

One attempt at a time, in the event loop, touching nothing but memory; what follows a decision
(:mod:`plimsoll.scheduling.binding.pipeline`) runs in tasks, for many pods at the same time.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.attempt import SchedulingAttempts
from plimsoll.scheduling.binding.pipeline import BindingPipeline
from plimsoll.scheduling.plugin_timing import PluginTimer
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.timing.signal import Signal

#: Seconds of attempts after which other tasks of the event loop run.
SLICE_S = 0.01


class AttemptTaker(Protocol):
    """Decides on pods that are not decided on by themselves and immediately."""

    def takes(self, queued: QueuedPod, scheduler: ProfileScheduler) -> bool:
        """Whether it takes a popped pod over; the queue hears from it how the attempt ends."""


class SchedulingLoop:
    """Serves the pods of all profiles.

    Args:
        queue: The waiting pods.
        work: Notified by the queue when a pod may be tried, now or later.
        attempts: Tries pods.
        pipeline: Has a slot for each pod that is being bound.
        timer: Counts and times the calls of plugins.
        clock: Time.
        takers: Asked in this order before a pod is tried by itself.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        work: Signal,
        attempts: SchedulingAttempts,
        pipeline: BindingPipeline,
        timer: PluginTimer,
        clock: Clock,
        takers: Sequence[AttemptTaker] = (),
    ) -> None:
        self._queue = queue
        self._work = work
        self._attempts = attempts
        self._pipeline = pipeline
        self._timer = timer
        self._clock = clock
        self._takers = tuple(takers)
        self._waits_since: float | None = None

    @property
    def in_flight(self) -> int:
        """Binding cycles and preemptions under way."""
        return len(self._pipeline.tasks)

    def waited_s(self, now: float) -> float:
        """Seconds that the loop has waited for bindings to end: the only wait in which pods wait with it."""
        return 0.0 if self._waits_since is None else now - self._waits_since

    async def run(self) -> None:
        """Serve until cancelled."""
        slots, turn = self._pipeline.slots, self._clock.monotonic()
        while True:
            # The slot first: nothing may happen between a pod's pop and the decision on it.
            self._waits_since = self._clock.monotonic()
            await slots.acquire()
            self._waits_since = None
            now = self._clock.monotonic()
            queued = self._queue.pop(now)
            if queued is None:
                slots.release()
                await self._until_work(now)
                turn = self._clock.monotonic()
                continue
            if not self._attempt(queued):
                slots.release()
            if self._clock.monotonic() - turn > SLICE_S:
                await asyncio.sleep(0)
                turn = self._clock.monotonic()

    async def _until_work(self, now: float) -> None:
        due = self._queue.next_due()
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._work.wait(self._work.count))]
        if due is not None:
            waits.append(asyncio.ensure_future(self._clock.sleep(max(0.0, due - now))))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _attempt(self, queued: QueuedPod) -> bool:
        """Try one pod; whether a binding was started that holds the slot.

        Whatever breaks, such as a plugin's unprintable answer, the others are served.
        """
        try:
            with self._timer.attempt(queued.pod.pod.spec.scheduler_name):
                scheduler = self._attempts.scheduler_of(queued.pod)
                if scheduler is None:
                    self._queue.remove(queued.pod.uid)
                    return False
                if any(taker.takes(queued, scheduler) for taker in self._takers):
                    return False
                return self._attempts.run(queued, scheduler)
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._attempts.broken(queued, exc)
            return False
