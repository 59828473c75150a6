"""The scheduling loop: pops one pod after the other and tries it.

One attempt runs at a time in the event loop and touches nothing but memory. Work that plugins can do in
advance is split into parts, between which other tasks run. The steps after a decision
(:mod:`plimsoll.scheduling.binding.pipeline`) run in tasks, for many pods concurrently.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.plugin_calls import OverBudgetError, called
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PluginError, PodInfo, Snapshot
from plimsoll.model.heavy_memory import apart
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.binding.pipeline import TOGETHER, BindingPipeline
from plimsoll.scheduling.failures import AttemptFailures
from plimsoll.scheduling.plugin_timing import PluginTimer
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: Seconds of attempts after which the loop yields to other tasks.
SLICE_S = 0.01

#: Owners of an ordinary pod, which has one or two: all of them are counted when the pod is assumed.
MOST_OWNERS = 256


class AttemptTaker(Protocol):
    """Decides on pods that need more than one immediate, individual decision."""

    def takes(self, queued: QueuedPod, scheduler: ProfileScheduler) -> bool:
        """Whether the taker has taken a popped pod over; then it reports the attempt's end to the queue."""


class SchedulingLoop:
    """Serves the pods of all profiles; offers each pod to the takers before it is tried individually."""

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
        """Seconds that the loop has waited for a free slot: the only wait that also delays pods."""
        return 0.0 if self._waits_since is None else now - self._waits_since

    async def run(self) -> None:
        """Run until cancelled."""
        slots, turn = self._pipeline.slots, self._clock.monotonic()
        while True:
            # Acquire the slot first: nothing may happen between a pod's pop and its decision.
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

    async def _prepared(self, queued: QueuedPod) -> bool:
        """Prepare the attempt while other tasks run in between; returns whether to still try the pod."""
        pod, is_first = queued.pod, True
        try:
            while (scheduler := self._served.to_try(pod)) and _works_out(scheduler, pod):
                if is_first:
                    # The attempt sees the cluster as of its start, so earlier events need not be recorded.
                    self._queue.settled(pod.uid)
                    is_first = False
                self._pipeline.post_collected()
                await asyncio.sleep(0)
                if pod.uid not in self._queue:
                    return False
        except PluginError as exc:
            if scheduler is not None:
                decision = scheduler.broken(pod, exc)
                self._failures.reject(queued, scheduler, decision, self._clock.monotonic())
            return False
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._failures.broken(queued, exc)
            return False
        if not is_first:
            self._queue.resumed(pod.uid)
        return True

    def _attempt(self, queued: QueuedPod) -> bool:
        """Try one pod; returns whether a binding took over the slot. Errors do not affect other pods."""
        pod = queued.pod
        try:
            with apart(_is_large(pod)), self._timer.attempt(pod.pod.spec.scheduler_name):
                scheduler = self._served.to_try(pod)
                if scheduler is None:
                    self._queue.remove(pod.uid)
                    return False
                for taker in self._takers:
                    if taker.takes(queued, scheduler):
                        return False
                began = self._clock.monotonic()
                budget = self._timer.budget
                budget.begin(pod.uid)
                try:
                    decision = schedule(scheduler, pod)
                except Exception as exc:  # noqa: BLE001 - likewise
                    self._failures.crashed(queued, scheduler, exc, began)
                    return False
                finally:
                    budget.end()
                    self._timer.ended(scheduler.profile.scheduler_name, self._clock.monotonic() - began)
                if decision.outcome is AttemptOutcome.SCHEDULED:
                    return self._pipeline.dispatch(queued, scheduler.profile, decision, began)
                if budget.was_spent and decision.error is None:
                    decision = scheduler.broken(pod, OverBudgetError())  # in its last call of a plugin
                self._failures.reject(queued, scheduler, decision, began)
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._failures.broken(queued, exc)
        return False


def _works_out(scheduler: ProfileScheduler, pod: PodInfo) -> bool:
    """Let plugins do a part of an attempt's work in advance; returns whether there is more."""
    snapshot = Snapshot(scheduler.cluster)
    for plugin in scheduler.profile.capabilities.preparing if len(snapshot) else ():
        with apart(_is_large(pod)):
            if called(plugin.name, "prepare", plugin.prepare, pod, snapshot):
                return True
    return False


def _is_large(pod: PodInfo) -> bool:
    """Whether the pod names so much that deciding on it and assuming it makes many small objects."""
    return pod.template.is_heavy or len(pod.pod.metadata.owner_references) > MOST_OWNERS
