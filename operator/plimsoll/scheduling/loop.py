"""The scheduling loop: pops one pod after the other and tries it.

One attempt at a time, in the event loop, touching nothing but memory; what plugins can work out before it is
done in parts, between which other tasks run. What follows a decision
(:mod:`plimsoll.scheduling.binding.pipeline`) runs in tasks, for many pods at the same time.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo, Snapshot
from plimsoll.model.columns.columns import BoolArray
from plimsoll.policies.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.attempt import AttemptFailures
from plimsoll.scheduling.binding.pipeline import TOGETHER, BindingPipeline
from plimsoll.scheduling.plugin_timing import PluginTimer
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: Seconds of attempts after which other tasks of the event loop run.
SLICE_S = 0.01


class AttemptTaker(Protocol):
    """Decides on pods that are not decided on by themselves and immediately."""

    def takes(self, queued: QueuedPod, scheduler: ProfileScheduler) -> bool:
        """Whether it takes a popped pod over; the queue hears from it how the attempt ends."""


class SchedulingLoop:
    """Serves the pods of all profiles; takers are asked in order before a pod is tried by itself."""

    def __init__(
        self,
        queue: SchedulingQueue,
        work: Signal,
        served: ServedProfiles,
        failures: AttemptFailures,
        pipeline: BindingPipeline,
        timer: PluginTimer,
        clock: Clock,
        takers: Sequence[AttemptTaker] = (),
    ) -> None:
        self._queue = queue
        self._work = work
        self._served = served
        self._failures = failures
        self._pipeline = pipeline
        self._timer = timer
        self._clock = clock
        self._takers = tuple(takers)
        self._waits_since: float | None = None

    @property
    def in_flight(self) -> int:
        """Binding cycles and preemptions under way."""
        return self._pipeline.in_flight

    def waited_s(self, now: float) -> float:
        """Seconds that the loop has waited for bindings to end: the only wait in which pods wait with it."""
        return 0.0 if self._waits_since is None else now - self._waits_since

    async def run(self) -> None:
        """Serve until cancelled."""
        slots, turn = self._pipeline.slots, self._clock.monotonic()
        while True:
            # The slot first: nothing may happen between a pod's pop and the decision on it.
            while slots.are_taken:
                self._pipeline.post_collected()
                self._waits_since = self._clock.monotonic()
                await slots.until_free(TOGETHER)
                self._waits_since = None
            slots.take()
            now = self._clock.monotonic()
            queued = self._queue.pop(now)
            if queued is None:
                slots.release()
                waits: list[Coroutine[Any, Any, object]] = [self._work.wait(self._work.count)]
                due = self._queue.next_due()
                if due is not None:
                    waits.append(self._clock.sleep(max(0.0, due - now)))
                self._pipeline.post_collected()
                await first_of(*waits)
                turn = self._clock.monotonic()
                continue
            if not await self._prepared(queued) or not self._attempt(queued):
                slots.release()
            if self._clock.monotonic() - turn > SLICE_S:
                self._pipeline.post_collected()
                await asyncio.sleep(0)
                turn = self._clock.monotonic()

    def _scheduler_of(self, queued: QueuedPod) -> ProfileScheduler | None:
        """That of a pod that is to be tried; None for one that leaves, has a node, or is not ours."""
        pod = queued.pod
        scheduler = self._served.find(pod.pod.spec.scheduler_name)
        if scheduler is None or pod.is_terminating or pod.uid in scheduler.cluster.pods:
            return None
        return scheduler

    async def _prepared(self, queued: QueuedPod) -> bool:
        """Prepare the attempt, while other tasks run in between; whether the pod is still to be tried."""
        pod, is_first = queued.pod, True
        try:
            while (scheduler := self._scheduler_of(queued)) and _works_out(scheduler, queued.pod):
                if is_first:
                    # The pod sees the cluster as it is when it is tried: what happens until then is in that.
                    self._queue.settled(pod.uid)
                    is_first = False
                self._pipeline.post_collected()
                await asyncio.sleep(0)
                if pod.uid not in self._queue:
                    return False
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._failures.broken(queued, exc)
            return False
        if not is_first:
            self._queue.resumed(pod.uid)
        return True

    def _home(self, scheduler: ProfileScheduler) -> BoolArray | None:
        """The nodes that this replica binds to itself; None where it binds to all."""
        shares = self._served.shares
        return None if shares is None else shares.home(scheduler.cluster)

    def _attempt(self, queued: QueuedPod) -> bool:
        """Try one pod; whether a binding was started that gives the slot back. No error harms other pods."""
        pod = queued.pod
        try:
            with self._timer.attempt(pod.pod.spec.scheduler_name):
                scheduler = self._scheduler_of(queued)
                if scheduler is None:
                    self._queue.remove(pod.uid)
                    return False
                for taker in self._takers:
                    if taker.takes(queued, scheduler):
                        return False
                began = self._clock.monotonic()
                try:
                    decision = schedule(scheduler, pod, self._home(scheduler))
                except Exception as exc:  # noqa: BLE001 - likewise
                    self._failures.crashed(queued, scheduler, exc, began)
                    return False
                if decision.outcome is AttemptOutcome.SCHEDULED:
                    return self._pipeline.dispatch(queued, scheduler.profile, decision, began)
                self._failures.reject(queued, scheduler, decision, began)
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._failures.broken(queued, exc)
        return False


def _works_out(scheduler: ProfileScheduler, pod: PodInfo) -> bool:
    """Let plugins work out a part of what an attempt would do in one piece; whether there is more."""
    cluster, preparing = scheduler.cluster, scheduler.profile.capabilities.preparing
    return bool(len(cluster)) and any(plugin.prepare(pod, Snapshot(cluster)) for plugin in preparing)
