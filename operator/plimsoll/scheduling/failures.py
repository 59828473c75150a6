"""Ends attempts that place no pod: reports why, nominates if preemption makes room, requeues the pod."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from plimsoll.cluster.reservations import ReservationBook
from plimsoll.devices.bookings import DEALLOCATED, DELETED
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.plugin_calls import OverBudgetError
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Nomination
from plimsoll.framework.columns import GangMembers
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import NOT_READY, UNSCHEDULABLE
from plimsoll.scheduling.binding.pipeline import BindingPipeline
from plimsoll.scheduling.conditions import Explanations
from plimsoll.scheduling.preemption import Preemption
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod


@dataclass(eq=False)
class AttemptFailures:
    """Ends attempts that did not place their pod."""

    _served: ServedProfiles
    _queue: SchedulingQueue
    _book: ReservationBook
    _pipeline: BindingPipeline
    _preemption: Preemption
    _explanations: Explanations
    _clock: Clock
    _observer: Observer

    def crashed(self, queued: QueuedPod, scheduler: ProfileScheduler, exc: Exception, began: float) -> None:
        """Report an error of the cycle that no plugin can cause, and requeue the pod."""
        pod, problem = queued.pod, f"{type(exc).__name__}: {exc}"
        name, now = scheduler.profile.scheduler_name, self._clock.monotonic()
        self._observer.failed("scheduling", problem)
        self._observer.attempt_ended(name, AttemptOutcome.ERROR.value, now - began)
        self._explanations.explain(pod.pod, "SchedulerError", problem)
        self._queue.add_unschedulable_if_not_present(pod.uid, now)

    def broken(self, queued: QueuedPod, exc: Exception) -> None:
        """Report an internal error, forget the pod if it is assumed, and requeue it."""
        self._observer.failed("scheduling", f"{queued.pod.key}: {exc!r}")
        self._pipeline.drop_assumed(queued.pod)

    def reject(
        self, queued: QueuedPod, scheduler: ProfileScheduler, decision: Decision, began: float
    ) -> None:
        """Handle a rejected pod: write the reason, start preemption if it found victims, requeue the pod."""
        pod, name, now = queued.pod, scheduler.profile.scheduler_name, self._clock.monotonic()
        self._observer.attempt_ended(name, decision.outcome.value, now - began)
        facts = {"pod": pod.key, "profile": name, "reason": decision.message}
        self._observer.placement_told(pod.uid, "not placed", facts)
        unschedulable = decision.outcome is AttemptOutcome.UNSCHEDULABLE and decision.diagnosis is not None
        plugins = decision.diagnosis.plugins if unschedulable and decision.diagnosis else frozenset()
        if decision.error is not None:
            error = decision.error
            if isinstance(error, OverBudgetError):
                self._observer.failed("an attempt", f"{pod.key}: {error}")
            else:
                self._observer.plugin_failed(error.plugin, error.point, error.problem, error.trace)
        is_costly = isinstance(decision.error, OverBudgetError)
        queued.costly_count = queued.costly_count + 1 if is_costly else 0
        nomination = decision.nomination
        if unschedulable and nomination is not None:
            plugins |= nomination.waits_for
        given = () if nomination is None else self._pipeline.give_back(pod, nomination)
        # After an error, or without a PostFilter plugin to keep it, a nomination ends.
        node = "" if nomination is None else nomination.node
        reason = "SchedulerError"
        if unschedulable:
            reason = NOT_READY if decision.no_node_helps else UNSCHEDULABLE
        if nomination is not None and nomination.status.is_success and nomination.node:
            # Before the next decision: no other pod may count on that room, or preempt the same victims.
            self._book.nominate(queued.pod, nomination.node, name, priority=nomination.priority)
            for outranked in nomination.outranked:
                self._book.release_uid(outranked.uid)
            # The request that the pod waits for is sent first, and the nomination immediately after it.
            self.start_preemption(queued, nomination, plugins)
            self._explanations.explain(pod.pod, reason, decision.message, node)
            return
        if node == "" and not self._book.awaits_devices(queued.pod.uid):
            self._book.release_uid(queued.pod.uid)
        if given:
            self._pipeline.start(self._wait_again(queued, reason, decision.message, node, plugins, given))
            return
        self._explanations.explain(pod.pod, reason, decision.message, node)
        self._queue.add_unschedulable_if_not_present(queued.pod.uid, now, plugins)

    async def _wait_again(
        self,
        queued: QueuedPod,
        reason: str,
        message: str,
        node: str | None,
        plugins: frozenset[str],
        given: Sequence[Awaitable[str]],
    ) -> None:
        """Requeue a pod after its claims are given back; back off briefly if that fails."""
        rejected_by = frozenset[str]()
        try:
            problems = [problem for problem in await asyncio.gather(*given) if problem]
            for done in (DEALLOCATED, DELETED) if problems else ():
                message = message.replace(done, "; ".join(problems))
            self._explanations.explain(queued.pod.pod, reason, message, node)
            rejected_by = rejected_by if problems else plugins
        finally:
            self._queue.add_unschedulable_if_not_present(queued.pod.uid, self._clock.monotonic(), rejected_by)

    def start_preemption(
        self, queued: QueuedPod, nomination: Nomination, plugins: frozenset[str], *, is_alone: bool = True
    ) -> None:
        """Remove the victims of a nominated pod in a task, then requeue the pod as rejected by these plugins.

        The pod stays in flight until its victims are terminating, so that it does not preempt twice. A pod
        that is not in a gang is tried again when its last victim has left; gang members wait for their
        siblings' victims.
        """
        self._members.condemn(nomination.victims)
        self._pipeline.start(self._preempt(queued, nomination, plugins, is_alone=is_alone))

    @property
    def _members(self) -> GangMembers:
        return self._book.cache.cluster.index(GangMembers)

    async def _preempt(
        self, queued: QueuedPod, nomination: Nomination, plugins: frozenset[str], *, is_alone: bool
    ) -> None:
        """Make room, then requeue the pod until its victims leave; back off if an eviction was not sent."""
        pod, is_made = queued.pod, False
        scheduler = self._served.find(pod.pod.spec.scheduler_name)
        try:
            if scheduler is not None and pod.uid in self._queue:  # else it was removed
                is_made = await self._preemption.make_room(
                    pod, nomination, scheduler.profile, lambda: pod.uid in self._queue
                )
        finally:
            if not is_made:
                self._members.pardon(nomination.victims)
            self._queue.add_unschedulable_if_not_present(
                pod.uid, self._clock.monotonic(), plugins if is_made else frozenset()
            )
            if is_made and is_alone:
                self._preemption.leaving.expect(pod, nomination.victims)
